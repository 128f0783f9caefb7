package io.daegi.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Single calls of the client against a small server. */
class WaitingRoomTest {
    private static final String TICKET = """
            {"itemId":"concert","userId":"kim","token":"kim-concert-1","status":"WAITING","position":3,"waitingCount":7,"lineState":"LOBBY",
             "opensAt":"2026-11-20T20:00:00+09:00","opensInMs":90000,"cohortRank":null,"lane":"members","etaSeconds":{"p50":10,"p90":20.5},
             "pollAfterMs":5173,"pass":null,"passExpiresAt":null,"entryUrl":null,"somethingNew":true}""";

    private StubRoom stub;
    private WaitingRoom room;

    @BeforeEach
    void open() throws IOException {
        stub = new StubRoom();
        room = WaitingRoom.builder(stub.url() + "/").internalUrl(stub.url()).build();
    }

    @AfterEach
    void close() {
        stub.close();
    }

    @Test
    void aJoinSendsUserAndCodeInTheBodyAndAnEarlierTokenInAHeader() throws Exception {
        Ticket ticket = stubbed(201, TICKET).join("concert", new JoinRequest("김").withCode("AB12-초대").withToken("old"));
        StubRoom.Received request = stub.next();
        assertEquals("POST /api/v1/item/concert/waiting-queue", request.method() + " " + request.target());
        assertEquals("{\"userId\":\"김\",\"code\":\"AB12-초대\"}", request.body());
        assertEquals("Bearer old", request.headers().getFirst("authorization"));
        assertEquals("application/json", request.headers().getFirst("content-type"));
        assertEquals(
                new Ticket(
                        "concert", "kim", "kim-concert-1", TicketStatus.WAITING, 3L, 7, LineState.LOBBY,
                        Instant.parse("2026-11-20T11:00:00Z"), 90_000L, null, "members", new Eta(10, 20.5), 5173, null, null, null),
                ticket);
    }

    @Test
    void aPlainJoinHasNoCodeAndNoToken() throws Exception {
        stubbed(200, TICKET).join("concert", "kim");
        StubRoom.Received request = stub.next();
        assertEquals("{\"userId\":\"kim\"}", request.body());
        assertFalse(request.headers().containsKey("authorization"));
    }

    @Test
    void secretsAreNotPartOfTheText() {
        String text = stubbed(200, TICKET.replace("\"pass\":null", "\"pass\":\"secret-pass\"")).poll("concert", "kim-concert-1").toString();
        assertTrue(text.contains("kim") && !text.contains("secret-pass") && !text.contains("kim-concert-1"), text);
        String join = new JoinRequest("kim", "secret-code", "secret-token").toString();
        assertFalse(join.contains("secret"), join);
    }

    @Test
    void aPollSendsTheTokenInAHeaderAndTheDelayInTheQuery() throws Exception {
        stubbed(200, TICKET).poll("concert", "kim-concert-1", Duration.ofSeconds(20));
        StubRoom.Received request = stub.next();
        assertEquals("GET /api/v1/item/concert/waiting-queue/me?waitMs=20000", request.method() + " " + request.target());
        assertEquals("Bearer kim-concert-1", request.headers().getFirst("authorization"));
    }

    @Test
    void aLeaveIsADeleteAndItsResponseMayBeEmpty() throws Exception {
        stub.answer(exchange -> StubRoom.send(exchange, 204, "text/plain", ""));
        room.leave("concert", "kim-concert-1");
        StubRoom.Received request = stub.next();
        assertEquals("DELETE /api/v1/item/concert/waiting-queue/me", request.method() + " " + request.target());
        assertEquals("Bearer kim-concert-1", request.headers().getFirst("authorization"));
    }

    @Test
    void aLineHasItsOpeningAndItsLanes() {
        Line line = stubbed(200, """
                {"itemId":"concert","itemName":"Friday","lineState":"SOMETHING_NEW","waitingCount":2,"enteredCount":1,"admittedPerSecond":0.5,
                 "opensAt":null,"opensInMs":null,"lobbyAt":"2026-11-20T10:00:00Z","lobbyInMs":5,"closesAt":null,"order":"draw",
                 "lanes":[{"name":"standard","waitingCount":1,"sharePercent":70,"first":false},
                          {"name":"vip","waitingCount":1,"sharePercent":null,"first":true}]}""").line("concert");
        assertEquals(LineState.UNKNOWN, line.lineState(), "a state of a newer server");
        assertEquals(OpeningOrder.DRAW, line.order());
        assertEquals(Instant.parse("2026-11-20T10:00:00Z"), line.lobbyAt());
        assertEquals(List.of(new LaneView("standard", 1, 70, false), new LaneView("vip", 1, null, true)), line.lanes());
        assertEquals(List.of(), stubbed(200, "{\"itemId\":\"concert\",\"lineState\":\"OPEN\"}").line("concert").lanes());
    }

    @Test
    void aProblemHasACodeADelayAndTheTimesOfTheOpening() {
        stub.json(409, "{\"code\":\"NOT_OPEN_YET\",\"detail\":\"too early\",\"opensAt\":\"2026-11-20T11:00:00Z\",\"lobbyAt\":null}", "retry-after", "30");
        ProblemException early = assertThrows(ProblemException.class, () -> room.join("concert", "kim"));
        assertEquals("NOT_OPEN_YET 409 too early", early.code() + " " + early.status() + " " + early.getMessage());
        assertEquals(Duration.ofSeconds(30), early.retryAfter());
        assertEquals(Instant.parse("2026-11-20T11:00:00Z"), early.opensAt());
        assertNull(early.lobbyAt());
        assertFalse(early.isTransient());
        stub.json(503, "{\"code\":\"STORE_FULL\"}");
        ProblemException full = assertThrows(ProblemException.class, () -> room.join("concert", "kim"));
        assertNull(full.retryAfter());
        assertTrue(full.isTransient());
    }

    @Test
    void aProxyThatAnswersInsteadIsUnavailable() {
        stub.answer(exchange -> StubRoom.send(exchange, 502, "text/html", "<h1>Bad Gateway</h1>", "retry-after", "Fri, 20 Nov 2026 10:00:00 GMT"));
        ProblemException proxy = assertThrows(ProblemException.class, () -> room.poll("concert", "kim-concert-1"));
        assertEquals("UNAVAILABLE 502", proxy.code() + " " + proxy.status());
        assertNull(proxy.retryAfter(), "a date");
        for (String body : List.of("<h1>Welcome to this hotel</h1>", "null", "")) {
            stub.answer(exchange -> StubRoom.send(exchange, 200, "text/html", body));
            assertThrows(UncheckedIOException.class, () -> room.poll("concert", "kim-concert-1"), body);
        }
    }

    @Test
    void anUnreachableRoomAndAnInterruptAreExceptions() {
        WaitingRoom nowhere = WaitingRoom.builder("http://127.0.0.1:1").build();
        assertThrows(UncheckedIOException.class, () -> nowhere.join("concert", "kim"));
        Thread.currentThread().interrupt();
        assertThrows(UncheckedIOException.class, () -> nowhere.join("concert", "kim"));
        assertTrue(Thread.interrupted(), "the thread is still interrupted");
    }

    @Test
    void aSlowRoomIsAnExceptionAfterTheTimeout() {
        stub.answer(exchange -> Thread.sleep(60_000));
        WaitingRoom hasty = WaitingRoom.builder(stub.url()).timeout(Duration.ofMillis(100)).build();
        assertThrows(UncheckedIOException.class, () -> hasty.line("concert"));
    }

    @Test
    void servicesVerifyAndCompleteByTokenOrPass() throws Exception {
        Verdict valid = stubbed(200, "{\"valid\":true,\"userId\":\"kim\",\"expiresAt\":\"2026-11-16T15:58:00.719Z\"}").verify("concert", "t");
        assertEquals(new Verdict(true, "kim", Instant.parse("2026-11-16T15:58:00.719Z"), null), valid);
        assertRequest("/internal/v1/item/concert/entry/verify", "{\"token\":\"t\"}");
        Verdict ended = stubbed(200, "{\"valid\":false,\"reason\":\"COMPLETED\"}").verifyPass("concert", "p");
        assertEquals(new Verdict(false, null, null, "COMPLETED"), ended);
        assertRequest("/internal/v1/item/concert/entry/verify", "{\"pass\":\"p\"}");
        assertTrue(stubbed(200, "{\"released\":true}").complete("concert", "t"));
        assertRequest("/internal/v1/item/concert/entry/complete", "{\"token\":\"t\"}");
        assertFalse(stubbed(200, "{\"released\":false}").completePass("concert", "p"));
        assertRequest("/internal/v1/item/concert/entry/complete", "{\"pass\":\"p\"}");
    }

    @Test
    void mistakesOfTheCallerAreExceptions() {
        assertThrows(IllegalStateException.class, () -> WaitingRoom.builder(stub.url()).build().verify("concert", "t"));
        assertThrows(IllegalArgumentException.class, () -> room.join("a/b", "kim"));
        assertThrows(IllegalArgumentException.class, () -> room.follow("a/b", "t", ticket -> {}));
        assertTrue(stub.received.isEmpty());
    }

    private WaitingRoom stubbed(int status, String body) {
        stub.json(status, body);
        return room;
    }

    private void assertRequest(String target, String body) throws InterruptedException {
        StubRoom.Received request = stub.next();
        assertEquals("POST " + target + " " + body, request.method() + " " + request.target() + " " + request.body());
    }
}
