package io.daegi.client;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** Requests with JSON bodies, and their responses. */
final class Http {
    private final HttpClient client;

    Http(HttpClient client) {
        this.client = client;
    }

    HttpClient client() {
        return client;
    }

    /** Begins a request. Tokens are sent in a header, so that they are not logged with URLs. The token may be null. */
    static HttpRequest.Builder request(String url, String token) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url)).header("accept", "application/json");
        return token == null ? request : request.header("authorization", "Bearer " + token);
    }

    static HttpRequest.Builder post(HttpRequest.Builder request, Object body) {
        return request.header("content-type", "application/json").POST(BodyPublishers.ofString(Json.text(body)));
    }

    /** Returns the body of a successful response. */
    String send(HttpRequest request) {
        try {
            return successful(client.send(request, BodyHandlers.ofString()));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new UncheckedIOException(new InterruptedIOException("interrupted while calling " + request.uri().getPath()));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    CompletableFuture<String> sendAsync(HttpRequest request) {
        return client.sendAsync(request, BodyHandlers.ofString()).thenApply(Http::successful);
    }

    static String successful(HttpResponse<String> response) {
        if (response.statusCode() / 100 != 2) {
            throw ProblemException.fromResponse(response.statusCode(), response.headers(), response.body());
        }
        return response.body();
    }

    /** Returns the delay of {@code Retry-After} in seconds; null if there is none, or a date. */
    static Duration retryAfter(HttpHeaders headers) {
        String seconds = headers.firstValue("retry-after").orElse("");
        return seconds.matches("[0-9]{1,9}") ? Duration.ofSeconds(Long.parseLong(seconds)) : null;
    }
}
