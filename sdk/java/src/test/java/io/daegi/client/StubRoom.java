package io.daegi.client;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A small server that answers requests with what a test has prepared, in order. */
final class StubRoom implements AutoCloseable {
    /** A request that the server received. */
    record Received(String method, String target, Headers headers, String body) {
        JsonNode json() throws IOException {
            return new ObjectMapper().readTree(body);
        }
    }

    /** Writes a response. */
    interface Answer {
        void write(HttpExchange exchange) throws IOException, InterruptedException;
    }

    final BlockingQueue<Received> received = new LinkedBlockingQueue<>();
    private final Queue<Answer> answers = new ArrayDeque<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final HttpServer server;

    StubRoom() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", this::handle);
        server.start();
    }

    String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    /** Prepares the response to a further request. */
    synchronized StubRoom answer(Answer answer) {
        answers.add(answer);
        return this;
    }

    StubRoom json(int status, String body, String... headers) {
        return answer(exchange -> send(exchange, status, "application/json", body, headers));
    }

    /** Prepares a stream of events, which ends after these chunks. */
    StubRoom stream(String... chunks) {
        return answer(exchange -> {
            begin(exchange);
            for (String chunk : chunks) {
                write(exchange, chunk);
            }
            exchange.close();
        });
    }

    static void send(HttpExchange exchange, int status, String type, String body, String... headers) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("content-type", type);
        for (int i = 0; i < headers.length; i += 2) {
            exchange.getResponseHeaders().set(headers[i], headers[i + 1]);
        }
        exchange.sendResponseHeaders(status, bytes.length == 0 ? -1 : bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    static void begin(HttpExchange exchange) throws IOException {
        exchange.getResponseHeaders().set("content-type", "text/event-stream");
        exchange.sendResponseHeaders(200, 0);
        exchange.getResponseBody().flush();
    }

    static void write(HttpExchange exchange, String chunk) throws IOException {
        exchange.getResponseBody().write(chunk.getBytes(StandardCharsets.UTF_8));
        exchange.getResponseBody().flush();
    }

    private void handle(HttpExchange exchange) throws IOException {
        String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        received.add(new Received(exchange.getRequestMethod(), exchange.getRequestURI().toString(), exchange.getRequestHeaders(), body));
        Answer answer;
        synchronized (this) {
            answer = answers.poll();
        }
        try {
            if (answer == null) {
                send(exchange, 500, "text/plain", "no answer is prepared");
            } else {
                answer.write(exchange);
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    /** Returns the next request. */
    Received next() throws InterruptedException {
        Received next = received.poll(10, TimeUnit.SECONDS);
        if (next == null) {
            throw new AssertionError("no request within 10 s");
        }
        return next;
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
