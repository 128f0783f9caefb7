package io.daegi.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.daegi.DaegiProcess;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The client with a real daegi. */
class RealRoomTest {
    private static DaegiProcess daegi;
    private static WaitingRoom room;

    @BeforeAll
    static void open() throws Exception {
        daegi = new DaegiProcess();
        daegi.admin("POST", "opera/manually", "{\"itemName\":\"Opera\",\"remainCount\":100,\"waitingQueueEnabled\":true}");
        // No ticket of this line is admitted.
        daegi.admin("PATCH", "opera/policy", "{\"tokensPerTick\":0,\"lanes\":[{\"name\":\"members\",\"weight\":30}]}");
        room = WaitingRoom.builder(daegi.publicUrl).internalUrl(daegi.internalUrl).build();
    }

    @AfterAll
    static void close() throws Exception {
        if (daegi != null) {
            daegi.close();
        }
    }

    @Test
    void aUserJoinsIsAdmittedAndOrders() throws Exception {
        Ticket joined = room.join("concert", "kim");
        assertEquals(joined.token(), room.join("concert", "kim").token(), "one ticket per user");
        RecordingListener listener = new RecordingListener();
        room.follow(joined, listener);
        Ticket enterable = (Ticket) listener.await("enterable");
        assertNotNull(enterable.pass());
        assertTrue(enterable.passExpiresAt().isAfter(Instant.now()));
        Verdict verdict = room.verifyPass("concert", enterable.pass());
        assertEquals(List.of(true, "kim"), List.of(verdict.valid(), verdict.userId()));
        assertTrue(room.verify("concert", joined.token()).valid());
        assertTrue(room.complete("concert", joined.token()));
        assertFalse(room.completePass("concert", enterable.pass()), "it has already ended");
        assertEquals(TicketStatus.COMPLETED, ((Ticket) listener.await("end")).status());
        assertEquals("COMPLETED", room.verify("concert", joined.token()).reason());
    }

    @Test
    void aWaitingUserIsPolledAndLeaves() {
        Ticket joined = room.join("opera", "lee");
        Ticket waiting = room.poll("opera", joined.token(), Duration.ofMillis(100));
        assertEquals(TicketStatus.WAITING, waiting.status());
        assertTrue(waiting.position() > 0 && waiting.pollAfterMs() > 0, waiting.toString());
        assertNull(waiting.pass());
        room.leave("opera", joined.token());
        room.leave("opera", joined.token());
        assertEquals(TicketStatus.LEFT, room.poll("opera", joined.token()).status());
    }

    @Test
    void anInvitationCodeLeadsToItsLane() throws Exception {
        String expiresAt = Instant.now().plusSeconds(3600).toString();
        JsonNode made = daegi.admin("POST", "opera/invitations", "{\"lane\":\"members\",\"expiresAt\":\"" + expiresAt + "\"}");
        String code = made.path("codes").path(0).asText().toLowerCase(Locale.ROOT);
        assertEquals("members", room.join("opera", new JoinRequest("cho").withCode(code)).lane());
        ProblemException used = assertThrows(ProblemException.class, () -> room.join("opera", new JoinRequest("han").withCode(code)));
        assertEquals("INVALID_CODE 403 false", used.code() + " " + used.status() + " " + used.isTransient());
        DaegiProcess.eventually("the line shows its lanes", Duration.ofSeconds(20), () -> {
            List<LaneView> lanes = room.line("opera").lanes();
            return lanes.size() == 2 && lanes.get(1).name().equals("members") && lanes.get(1).waitingCount() == 1;
        });
    }

    @Test
    void aResetLineIsAProblemOfItsSubscriptions() throws Exception {
        daegi.admin("POST", "ballet/manually", "{\"itemName\":\"Ballet\",\"remainCount\":100,\"waitingQueueEnabled\":true}");
        daegi.admin("PATCH", "ballet/policy", "{\"tokensPerTick\":0}");
        RecordingListener listener = new RecordingListener();
        room.follow(room.join("ballet", "park"), listener);
        listener.await("ticket");
        daegi.admin("POST", "ballet/reset", "{}");
        assertEquals("LINE_RESTARTED", ((ProblemException) listener.await("problem")).code());
    }

    @Test
    void unknownItemsAndForgedTokensAreProblems() {
        assertEquals("ITEM_NOT_FOUND", assertThrows(ProblemException.class, () -> room.join("nothing", "kim")).code());
        assertEquals("INVALID_TOKEN", assertThrows(ProblemException.class, () -> room.poll("concert", "kim-concert-1")).code());
        assertEquals("INVALID_REQUEST", assertThrows(ProblemException.class, () -> room.join("concert", "not a user")).code());
    }
}
