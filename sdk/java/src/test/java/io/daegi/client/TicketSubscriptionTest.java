package io.daegi.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Subscriptions against a small server. */
@Timeout(60)
class TicketSubscriptionTest {
    private static final Duration LONG = Duration.ofSeconds(40);
    private static final Duration SHORT = Duration.ofMillis(200);

    private final RecordingListener listener = new RecordingListener();
    private StubRoom stub;
    private WaitingRoom room;

    @BeforeEach
    void open() throws IOException {
        stub = new StubRoom();
        room = room(new EventStream.Timeouts(LONG, LONG, LONG));
    }

    @AfterEach
    void close() {
        stub.close();
    }

    private WaitingRoom room(EventStream.Timeouts timeouts) {
        return WaitingRoom.builder(stub.url()).streamTimeouts(timeouts).build();
    }

    private TicketSubscription follow() {
        return room.follow("concert", "kim-concert-1", listener);
    }

    private static String ticket(String status) {
        return "{\"itemId\":\"concert\",\"token\":\"kim-concert-1\",\"status\":\"" + status + "\",\"pollAfterMs\":1}";
    }

    private static String event(String status) {
        return "event: ticket\ndata: " + ticket(status) + "\n\n";
    }

    private void assertEvents(String... names) throws InterruptedException {
        for (String name : names) {
            assertEquals(name, listener.next());
        }
    }

    @Test
    void aStreamIsFollowedToTheEndOfTheTicket() throws Exception {
        stub.stream(": keep-alive\n\n", event("WAITING"), event("ENTERABLE") + "event: page\ndata: {}\n\n", event("ENTERABLE"), event("COMPLETED"), event("LEFT"));
        follow();
        assertEvents(
                "connection LIVE", "ticket WAITING", "ticket ENTERABLE", "enterable ENTERABLE", "ticket ENTERABLE", "ticket COMPLETED",
                "end COMPLETED");
        StubRoom.Received request = stub.next();
        assertEquals("GET /api/v1/item/concert/waiting-queue/me/events", request.method() + " " + request.target());
        assertEquals("text/event-stream", request.headers().getFirst("accept"));
        assertEquals("Bearer kim-concert-1", request.headers().getFirst("authorization"));
        assertTrue(listener.events.isEmpty() && stub.received.isEmpty(), "nothing follows the end");
    }

    @Test
    void aStreamContinuesAfterTheLastEventWhenTheServerSaidSo() throws Exception {
        stub.stream("retry: 20\nid: 17\n" + event("WAITING")).stream(event("WAITING")).stream(event("LEFT"));
        follow();
        assertEvents("connection LIVE", "ticket WAITING");
        Connection lost = (Connection) listener.take().value();
        assertEquals(new Connection(Connection.State.LOST, Duration.ofMillis(20)), lost);
        assertEvents("connection LIVE", "ticket WAITING");
        lost = (Connection) listener.take().value();
        assertEquals(new Connection(Connection.State.LOST, Duration.ofSeconds(1)), lost, "the default, because this stream had no delay");
        assertEvents("connection LIVE", "ticket LEFT", "end LEFT");
        assertNull(stub.next().headers().getFirst("last-event-id"));
        assertEquals("17", stub.next().headers().getFirst("last-event-id"));
    }

    @Test
    void aProblemInAStreamIsTheLastEvent() throws Exception {
        stub.stream(event("WAITING"), "event: problem\ndata: {\"code\":\"LINE_RESTARTED\",\"status\":410,\"detail\":\"reset\"}\n\n");
        follow();
        assertEvents("connection LIVE", "ticket WAITING", "problem LINE_RESTARTED");
        stub.next();
        assertTrue(stub.received.isEmpty(), "no further request");
    }

    @Test
    void aReplacedStreamIsFollowedByPolls() throws Exception {
        stub.stream("event: problem\ndata: {\"code\":\"RATE_LIMITED\",\"status\":429}\n\n").json(200, ticket("WAITING")).json(200, ticket("LEFT"));
        follow();
        assertEvents("connection LIVE", "connection POLLING", "ticket WAITING", "ticket LEFT", "end LEFT");
    }

    @Test
    void aRefusedStreamIsFollowedByPolls() throws Exception {
        stub.json(503, "{\"code\":\"UNAVAILABLE\"}").json(200, ticket("WAITING")).json(200, ticket("EXPIRED"));
        follow();
        assertEvents("connection POLLING", "ticket WAITING", "ticket EXPIRED", "end EXPIRED");
        stub.next();
        assertEquals("/api/v1/item/concert/waiting-queue/me", stub.next().target());
    }

    @Test
    void aProxyWithoutStreamsIsFollowedByPolls() throws Exception {
        stub.json(200, ticket("WAITING")).json(200, ticket("ABANDONED"));
        follow();
        assertEvents("connection POLLING", "ticket ABANDONED", "end ABANDONED");
    }

    @Test
    void aProxyThatBuffersStreamsIsFollowedByPolls() throws Exception {
        room = room(new EventStream.Timeouts(LONG, SHORT, LONG));
        stub.answer(exchange -> {
            StubRoom.begin(exchange);
            Thread.sleep(60_000);
        });
        stub.json(200, ticket("LEFT"));
        follow();
        assertEvents("connection LIVE", "connection POLLING", "ticket LEFT", "end LEFT");
    }

    @Test
    void aSilentStreamIsReplacedByAnother() throws Exception {
        room = room(new EventStream.Timeouts(LONG, LONG, SHORT));
        CountDownLatch closed = new CountDownLatch(1);
        stub.answer(exchange -> {
            StubRoom.begin(exchange);
            StubRoom.write(exchange, "retry: 1\n" + event("WAITING"));
            awaitDisconnect(exchange, closed);
        });
        stub.stream(event("LEFT"));
        follow();
        assertEvents("connection LIVE", "ticket WAITING", "connection LOST", "connection LIVE", "ticket LEFT", "end LEFT");
        assertTrue(closed.await(10, TimeUnit.SECONDS), "the silent connection is closed");
    }

    @Test
    void aRoomThatDoesNotRespondIsTriedAgainAndThenPolled() throws Exception {
        room = room(new EventStream.Timeouts(SHORT, LONG, LONG));
        for (int i = 0; i < 3; i++) {
            stub.answer(exchange -> Thread.sleep(60_000));
        }
        stub.json(200, ticket("LEFT"));
        follow();
        assertEvents("connection LOST", "connection LOST", "connection LOST", "connection POLLING", "ticket LEFT", "end LEFT");
    }

    @Test
    void theDelayThatTheServerAsksForIsKept() throws Exception {
        stub.json(200, "not a stream").json(503, "{\"code\":\"UNAVAILABLE\"}", "retry-after", "2").json(200, ticket("LEFT"));
        follow();
        Connection lost = (Connection) listener.take().value();
        assertEquals(new Connection(Connection.State.LOST, Duration.ofSeconds(2)), lost, "and not the shorter backoff");
        assertEvents("connection POLLING", "ticket LEFT", "end LEFT");
    }

    @Test
    void aMalformedEventIsAFailureAndNotTheEnd() throws Exception {
        stub.stream("event: ticket\ndata: {\n\n").stream(event("LEFT"));
        follow();
        assertEvents("connection LIVE", "connection LOST", "connection LIVE", "ticket LEFT", "end LEFT");
    }

    @Test
    void aClosedSubscriptionHasNoFurtherEventsAndClosesItsConnection() throws Exception {
        CountDownLatch closed = new CountDownLatch(1);
        stub.answer(exchange -> {
            StubRoom.begin(exchange);
            StubRoom.write(exchange, event("WAITING"));
            awaitDisconnect(exchange, closed);
        });
        TicketSubscription subscription = follow();
        assertEvents("connection LIVE", "ticket WAITING");
        subscription.close();
        assertTrue(closed.await(10, TimeUnit.SECONDS), "the connection is closed");
        assertTrue(listener.events.isEmpty());
    }

    /** Writes until the client has closed the connection. */
    private static void awaitDisconnect(HttpExchange exchange, CountDownLatch closed)
            throws InterruptedException, IOException {
        Thread.sleep(500);
        for (int i = 0; i < 100; i++) {
            try {
                // Without an end of a line, so that the client does not count it.
                StubRoom.write(exchange, ":");
            } catch (IOException disconnected) {
                closed.countDown();
                return;
            }
            Thread.sleep(50);
        }
    }

    @Test
    void aFailingListenerDoesNotEndItsSubscription() throws Exception {
        Logger.getLogger(TicketSubscription.class.getName()).setFilter(record -> !record.getMessage().contains("listener"));
        stub.stream(event("WAITING"), event("LEFT"));
        room.follow("concert", "kim-concert-1", new RecordingListener() {
            @Override
            public void onTicket(Ticket ticket) {
                listener.onTicket(ticket);
                throw new IllegalStateException("the page is gone");
            }

            @Override
            public void onEnd(Ticket ticket) {
                listener.onEnd(ticket);
            }
        });
        assertEvents("ticket WAITING", "ticket LEFT", "end LEFT");
    }

    @Test
    void delaysAreSpread() {
        for (int failures = 0; failures < 40; failures++) {
            long most = Math.min(10_000, 500L << Math.min(failures, 10));
            long delay = Backoff.afterFailure(failures).toMillis();
            assertTrue(delay >= most / 2 && delay <= most, failures + ": " + delay);
        }
        for (int i = 0; i < 100; i++) {
            long delay = Backoff.untilPoll(Json.read("{\"pollAfterMs\":30000,\"opensInMs\":1000}", Ticket.class)).toMillis();
            assertTrue(delay >= 1_300 && delay < 4_000, "after the opening: " + delay);
        }
        assertEquals(Duration.ofMillis(700), Backoff.untilPoll(Json.read("{\"pollAfterMs\":700,\"opensInMs\":1000}", Ticket.class)));
        assertEquals(Duration.ofSeconds(5), Backoff.untilPoll(Json.read("{}", Ticket.class)));
    }
}
