package io.daegi;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/** A real daegi process for one test class, with helpers for tests. */
public final class DaegiProcess {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String ADMIN = "admin-token-of-the-guard-tests";
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    public final String publicUrl = "http://127.0.0.1:" + freePort();
    public final String internalUrl = "http://127.0.0.1:" + freePort();
    private final Process process;

    /** Starts a process with an item `concert` that admits quickly. */
    public DaegiProcess() throws Exception {
        ProcessBuilder builder = new ProcessBuilder(command()).inheritIO().redirectOutput(ProcessBuilder.Redirect.DISCARD);
        builder.environment().clear();
        process = builder.start();
        eventually("daegi is ready", Duration.ofSeconds(60), () -> get(internalUrl + "/readyz").statusCode() == 200);
        admin("POST", "concert/manually", "{\"itemName\":\"Friday\",\"remainCount\":100,\"waitingQueueEnabled\":true}");
        admin("PATCH", "concert/policy", "{\"tokensPerTick\":10}");
    }

    private List<String> command() {
        String address = "127.0.0.1:";
        return List.of(
                binary().toString(), "--store", "memory", "--kafka", "off", "--log", "error", "--tick-ms", "100",
                "--lease-ms", "500", "--admin-token", ADMIN,
                "--public-addr", address + URI.create(publicUrl).getPort(),
                "--internal-addr", address + URI.create(internalUrl).getPort());
    }

    private static Path binary() {
        String given = System.getenv("DAEGI_BIN");
        String target = System.getenv().getOrDefault("CARGO_TARGET_DIR", "../../target");
        Path path = given == null ? Path.of(target, "debug", "daegi") : Path.of(given);
        if (!Files.exists(path)) {
            throw new IllegalStateException(path + " is missing: cargo test --workspace builds it");
        }
        return path;
    }

    private static int freePort() {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Retries until the condition holds or the timeout is over. Tests never sleep for a fixed time. */
    public static void eventually(String what, Duration timeout, Callable<Boolean> holds) throws Exception {
        Instant deadline = Instant.now().plus(timeout);
        while (!tried(holds)) {
            if (Instant.now().isAfter(deadline)) {
                throw new AssertionError(what + ": not within " + timeout);
            }
            Thread.sleep(50);
        }
    }

    private static boolean tried(Callable<Boolean> holds) throws Exception {
        try {
            return holds.call();
        } catch (IOException notYet) {
            return false;
        }
    }

    public static HttpResponse<String> get(String url) throws IOException, InterruptedException {
        return HTTP.send(HttpRequest.newBuilder(URI.create(url)).build(), BodyHandlers.ofString());
    }

    /** Calls the admin API for an item and returns the response. */
    public JsonNode admin(String method, String path, String body) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(internalUrl + "/internal/admin/v1/waiting-item/" + path))
                .header("authorization", "Bearer " + ADMIN)
                .header("content-type", "application/json")
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build();
        HttpResponse<String> response = HTTP.send(request, BodyHandlers.ofString());
        if (response.statusCode() / 100 != 2) {
            throw new AssertionError(path + ": " + response.statusCode() + " " + response.body());
        }
        return JSON.readTree(response.body());
    }

    /** Joins as this user and waits until they are admitted. */
    public AdmittedUser admit(String user) throws Exception {
        String line = publicUrl + "/api/v1/item/concert/waiting-queue";
        HttpRequest join = HttpRequest.newBuilder(URI.create(line))
                .header("user-id", user)
                .POST(HttpRequest.BodyPublishers.noBody())
                .build();
        JsonNode ticket = JSON.readTree(HTTP.send(join, BodyHandlers.ofString()).body());
        AdmittedUser admitted = new AdmittedUser(line + "/" + ticket.path("token").asText());
        eventually("the ticket is ENTERABLE", Duration.ofSeconds(20), () -> admitted.status().equals("ENTERABLE"));
        return admitted;
    }

    /** A user with a ticket. */
    public record AdmittedUser(String ticketUrl) {
        private JsonNode ticket() throws IOException, InterruptedException {
            return JSON.readTree(get(ticketUrl).body());
        }

        public String status() throws IOException, InterruptedException {
            return ticket().path("status").asText();
        }

        public String pass() throws IOException, InterruptedException {
            return ticket().path("pass").asText();
        }

        public void awaitCompleted() throws Exception {
            eventually("completed", Duration.ofSeconds(20), () -> status().equals("COMPLETED"));
        }
    }

    public void close() throws InterruptedException {
        process.destroy();
        if (!process.waitFor(20, TimeUnit.SECONDS)) {
            process.destroyForcibly();
        }
    }
}
