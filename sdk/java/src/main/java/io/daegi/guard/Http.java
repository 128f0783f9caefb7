package io.daegi.guard;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;

/** HTTP client for daegi's JSON endpoints. */
final class Http {
    private final HttpClient client;
    private final Duration timeout;

    Http(Duration timeout) {
        this.timeout = timeout;
        this.client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(timeout).build();
    }

    JsonNode get(String url) {
        return send(HttpRequest.newBuilder(URI.create(url)));
    }

    JsonNode post(String url, Object body) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url)).header("content-type", "application/json");
        return send(request.POST(HttpRequest.BodyPublishers.ofString(Json.text(body))));
    }

    private JsonNode send(HttpRequest.Builder request) {
        HttpRequest built = request.timeout(timeout).build();
        try {
            var response = client.send(built, BodyHandlers.ofByteArray());
            if (response.statusCode() != 200) {
                throw new DaegiUnavailableException(built.uri() + " responded with " + response.statusCode());
            }
            return Json.read(response.body());
        } catch (IOException error) {
            throw new DaegiUnavailableException(built.uri() + ": " + error, error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new DaegiUnavailableException("interrupted", error);
        }
    }
}
