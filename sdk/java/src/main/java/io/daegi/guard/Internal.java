package io.daegi.guard;

import java.util.Map;

/** daegi's internal listener, which knows more than a pass can say. */
final class Internal {
    private final Http http;
    private final String address;

    Internal(Http http, String address) {
        this.http = http;
        this.address = address;
    }

    /** Whether the holder of this pass may be inside now. */
    boolean isInside(String item, String pass) {
        return http.post(url(item, "verify"), Map.of("pass", pass)).path("valid").asBoolean();
    }

    /** Ends an entry, and answers whether it had not ended yet. */
    boolean complete(String item, String token) {
        return http.post(url(item, "complete"), Map.of("token", token)).path("released").asBoolean();
    }

    private String url(String item, String what) {
        return address + "/internal/v1/item/" + item + "/entry/" + what;
    }
}
