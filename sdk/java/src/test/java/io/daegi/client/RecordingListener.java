package io.daegi.client;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Records the events of a subscription. */
class RecordingListener implements TicketListener {
    /** An event: its name and its value. */
    record Event(String name, Object value) {}

    final BlockingQueue<Event> events = new LinkedBlockingQueue<>();

    @Override
    public void onTicket(Ticket ticket) {
        events.add(new Event("ticket", ticket));
    }

    @Override
    public void onEnterable(Ticket ticket) {
        events.add(new Event("enterable", ticket));
    }

    @Override
    public void onEnd(Ticket ticket) {
        events.add(new Event("end", ticket));
    }

    @Override
    public void onConnection(Connection connection) {
        events.add(new Event("connection", connection));
    }

    @Override
    public void onProblem(ProblemException problem) {
        events.add(new Event("problem", problem));
    }

    /** Waits for the next event and returns its name with the status, state or code. */
    String next() throws InterruptedException {
        Event event = take();
        if (event.value() instanceof Ticket ticket) {
            return event.name() + " " + ticket.status();
        }
        if (event.value() instanceof Connection connection) {
            return event.name() + " " + connection.state();
        }
        return event.name() + " " + ((ProblemException) event.value()).code();
    }

    Event take() throws InterruptedException {
        Event event = events.poll(20, TimeUnit.SECONDS);
        if (event == null) {
            throw new AssertionError("no event within 20 s");
        }
        return event;
    }

    /** Waits for an event with this name and returns its value. */
    Object await(String name) throws InterruptedException {
        Event event = take();
        while (!event.name().equals(name)) {
            event = take();
        }
        return event.value();
    }
}
