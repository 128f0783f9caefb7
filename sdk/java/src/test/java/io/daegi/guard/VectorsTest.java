package io.daegi.guard;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Map;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Runs the vectors of sdk/vectors, which the guards for other languages run, too. */
class VectorsTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNode VECTORS = vectors();

    private static JsonNode vectors() {
        try {
            return JSON.readTree(Files.readString(Path.of("../vectors/guard.json")));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    @TestFactory
    Stream<DynamicTest> scenarios() {
        Stream<JsonNode> scenarios = StreamSupport.stream(VECTORS.path("scenarios").spliterator(), false);
        return scenarios.map(scenario -> DynamicTest.dynamicTest(scenario.path("name").asText(), () -> run(scenario)));
    }

    private static void run(JsonNode scenario) throws IOException {
        try (StubDaegi daegi = new StubDaegi()) {
            ManualClock clock = new ManualClock();
            Guard guard = guard(scenario.path("config"), daegi, clock);
            for (JsonNode step : scenario.path("steps")) {
                clock.now = Instant.ofEpochSecond(step.path("now").asLong());
                daegi.keys = VECTORS.path("keySets").get(step.path("keys").asText());
                daegi.verdict = step.path("verdict").isObject() ? step.path("verdict") : null;
                assertEquals(step.path("expect"), outcome(guard, step));
                assertEquals(step.path("keyFetches").asInt(), daegi.keyFetches);
                assertEquals(step.path("onlineChecks").asInt(), daegi.onlineChecks);
            }
        }
    }

    private static Guard guard(JsonNode config, StubDaegi daegi, Clock clock) {
        return Guard.builder(daegi.url())
                .internalUrl(daegi.url())
                .online(config.path("online").asBoolean())
                .onUnavailable(config.path("onUnavailable").asText().equals("failOpen") ? OnUnavailable.FAIL_OPEN : OnUnavailable.FAIL_CLOSED)
                .clockSkew(Duration.ofSeconds(config.path("clockSkewSeconds").asLong()))
                .keyTtl(Duration.ofSeconds(config.path("keyTtlSeconds").asLong()))
                .minFetchInterval(Duration.ofSeconds(config.path("minFetchIntervalSeconds").asLong()))
                .clock(clock)
                .build();
    }

    private static JsonNode outcome(Guard guard, JsonNode step) throws IOException {
        try {
            Entry entry = guard.check(step.path("item").asText(), step.path("pass").asText());
            JsonNode actual = JSON.valueToTree(Map.of("entry", entry));
            ((com.fasterxml.jackson.databind.node.ObjectNode) actual.path("entry")).put("token", entry.token());
            // Parsed again, so that numbers have the same node type.
            return JSON.readTree(actual.toString());
        } catch (RefusedException refused) {
            return JSON.valueToTree(Map.of("refused", refused.refusal().name()));
        }
    }

    @Test
    void aPassIsFoundInEachOfItsSources() {
        assertFalse(VECTORS.path("passSources").isEmpty());
        for (JsonNode vector : VECTORS.path("passSources")) {
            assertEquals(vector.path("pass").asText(), passSource(vector).pass(), vector.toString());
        }
    }

    @TestFactory
    Stream<DynamicTest> requests() {
        Stream<JsonNode> requests = StreamSupport.stream(VECTORS.path("requests").spliterator(), false);
        return requests.map(request -> DynamicTest.dynamicTest(request.path("name").asText(), () -> {
            try (StubDaegi daegi = new StubDaegi()) {
                ManualClock clock = new ManualClock();
                clock.now = Instant.ofEpochSecond(request.path("now").asLong());
                daegi.keys = VECTORS.path("keySets").get(request.path("keys").asText());
                assertEquals(request.path("expect"), admitted(Guard.builder(daegi.url()).clock(clock).build(), request));
            }
        }));
    }

    private static JsonNode admitted(Guard guard, JsonNode request) throws IOException {
        var admitted = JSON.createObjectNode();
        try {
            Authorization authorization = guard.authorize(request.path("item").asText(), passSource(request));
            admitted.put("userId", authorization.entry().userId());
            admitted.put("expiresAt", authorization.entry().expiresAt());
            admitted.put("keeps", authorization.keep());
        } catch (RefusedException refused) {
            admitted.put("refused", refused.refusal().name());
        }
        // Parsed again, so that numbers have the same node type.
        return JSON.readTree(admitted.toString());
    }

    private static PassSource passSource(JsonNode vector) {
        String[] target = vector.path("target").asText().split("\\?", 2);
        String query = target.length == 2 ? target[1] : null;
        return PassSource.find(query, name -> vector.path("headers").path(name).textValue(), vector.path("item").asText());
    }

    @Test
    void browsersAreRedirectedAndOtherClientsGetAProblem() throws IOException {
        assertFalse(VECTORS.path("responses").isEmpty());
        for (JsonNode vector : VECTORS.path("responses")) {
            Refusal refusal = Refusal.valueOf(vector.path("code").asText());
            Refusal.Response response =
                    refusal.toResponse(vector.path("accept").asText(), vector.path("waitingPage").asText());
            assertEquals(vector.path("status").asInt(), response.status());
            assertEquals(vector.path("headers"), JSON.valueToTree(response.headers()));
            JsonNode body = response.body().isEmpty() ? JSON.nullNode() : JSON.readTree(response.body());
            assertEquals(vector.path("body"), body);
        }
    }

    /** A clock that a test controls. */
    private static final class ManualClock extends Clock {
        private volatile Instant now = Instant.EPOCH;

        @Override
        public Instant instant() {
            return now;
        }

        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            return this;
        }
    }
}
