package io.daegi.guard;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;

/** daegi as far as a guard knows it: published keys and verdicts. */
final class StubDaegi implements AutoCloseable {
    private final HttpServer server;
    /** Null: it is away. */
    volatile JsonNode keys;

    volatile JsonNode verdict;
    /** Keys are sent after this. */
    volatile CountDownLatch beforeKeys = new CountDownLatch(0);

    volatile int keysAsked;
    volatile int verdictsAsked;

    StubDaegi() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/.well-known/jwks.json", exchange -> {
            keysAsked++;
            await(beforeKeys);
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
