package io.daegi.guard;

import java.util.Map;

/** Client of daegi's internal listener, which knows whether an entry has ended. */
final class InternalClient {
    private final Http http;
    private final String baseUrl;

    InternalClient(Http http, String baseUrl) {
        this.http = http;
        this.baseUrl = baseUrl;
    }

    /** Returns whether the entry of this pass is still live. */
    boolean hasEntry(String item, String pass) {
        return http.post(url(item, "verify"), Map.of("pass", pass)).path("valid").asBoolean();
    }

    /** Ends an entry. Returns false if it had already ended. */
    boolean complete(String item, String token) {
        return http.post(url(item, "complete"), Map.of("token", token)).path("released").asBoolean();
    }

    private String url(String item, String operation) {
        return baseUrl + "/internal/v1/item/" + item + "/entry/" + operation;
    }
}
