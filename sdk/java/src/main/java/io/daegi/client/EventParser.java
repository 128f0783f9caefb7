package io.daegi.client;

import java.util.StringJoiner;
import java.util.function.BiConsumer;

/** Parses the lines of a stream of server-sent events. */
final class EventParser {
    private final BiConsumer<String, String> events;
    private String name = "";
    private StringJoiner data = new StringJoiner("\n");
    private boolean hasData;
    /** Kept over connections, for resuming. */
    private String lastEventId = "";
    /** The delay before reconnecting as last sent by the server, in milliseconds; null if it sent none. */
    private Long retryMs;

    /** Events go to a consumer of name and data. */
    EventParser(BiConsumer<String, String> events) {
        this.events = events;
    }

    String lastEventId() {
        return lastEventId;
    }

    Long retryMs() {
        return retryMs;
    }

    /** Begins a new connection. */
    void reset() {
        retryMs = null;
        beginEvent();
    }

    /** Parses one line without its end. */
    void line(String line) {
        if (line.isEmpty()) {
            dispatch();
            return;
        }
        int colon = line.indexOf(':');
        String field = colon < 0 ? line : line.substring(0, colon);
        String value = colon < 0 ? "" : line.substring(colon + 1);
        value = value.startsWith(" ") ? value.substring(1) : value;
        switch (field) {
            case "data" -> {
                data.add(value);
                hasData = true;
            }
            case "event" -> name = value;
            case "id" -> lastEventId = value;
            case "retry" -> retryMs = value.matches("[0-9]{1,9}") ? Long.valueOf(value) : retryMs;
            default -> {
                // Comments, which keep the connection open, have an empty field name.
            }
        }
    }

    private void dispatch() {
        if (hasData) {
            events.accept(name, data.toString());
        }
        beginEvent();
    }

    private void beginEvent() {
        name = "";
        data = new StringJoiner("\n");
        hasData = false;
    }
}
