package io.daegi.guard;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;

/** Stub of the endpoints that a guard calls: public keys and online checks. */
final class StubDaegi implements AutoCloseable {
    private final HttpServer server;
    /** Null: responds with 503. */
    volatile JsonNode keys;

    volatile JsonNode verdict;
    /** The response with keys waits for this latch. */
    volatile CountDownLatch beforeKeys = new CountDownLatch(0);

    volatile int keyFetches;
    volatile int onlineChecks;

    StubDaegi() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/.well-known/jwks.json", exchange -> {
            keyFetches++;
            await(beforeKeys);
            send(exchange, keys);
        });
        server.createContext("/internal/v1/item/concert/entry/verify", exchange -> {
            onlineChecks++;
            send(exchange, verdict);
        });
        server.start();
    }

    String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    private static void send(HttpExchange exchange, JsonNode json) throws IOException {
        try (exchange) {
            byte[] body = json == null ? new byte[0] : json.toString().getBytes(StandardCharsets.UTF_8);
            exchange.getRequestBody().readAllBytes();
            exchange.sendResponseHeaders(json == null ? 503 : 200, body.length == 0 ? -1 : body.length);
            exchange.getResponseBody().write(body);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        beforeKeys.countDown();
        server.stop(0);
    }
}
