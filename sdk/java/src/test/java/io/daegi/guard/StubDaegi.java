package io.daegi.guard;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

/** daegi as far as a guard knows it: published keys and verdicts. */
final class StubDaegi implements AutoCloseable {
    private final HttpServer server;
    /** Null: it is away. */
    volatile JsonNode keys;

    volatile JsonNode verdict;
    volatile int keysAsked;
    volatile int verdictsAsked;

    StubDaegi() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/.well-known/jwks.json", exchange -> {
            keysAsked++;
            say(exchange, keys);
        });
        server.createContext("/internal/v1/item/concert/entry/verify", exchange -> {
            verdictsAsked++;
            say(exchange, verdict);
        });
        server.start();
    }

    String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    private static void say(HttpExchange exchange, JsonNode what) throws IOException {
        try (exchange) {
            byte[] body = what == null ? new byte[0] : what.toString().getBytes(StandardCharsets.UTF_8);
            exchange.getRequestBody().readAllBytes();
            exchange.sendResponseHeaders(what == null ? 503 : 200, body.length == 0 ? -1 : body.length);
            exchange.getResponseBody().write(body);
        }
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
