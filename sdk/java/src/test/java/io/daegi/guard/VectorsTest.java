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

/** What sdk/vectors says, this guard does. The same vectors are read by the guards in Rust and Node. */
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
    Stream<DynamicTest> stories() {
        Stream<JsonNode> stories = StreamSupport.stream(VECTORS.path("stories").spliterator(), false);
        return stories.map(story -> DynamicTest.dynamicTest(story.path("name").asText(), () -> live(story)));
    }

    private static void live(JsonNode story) throws IOException {
        try (StubDaegi daegi = new StubDaegi()) {
            Turned clock = new Turned();
            Guard guard = guard(story.path("setup"), daegi, clock);
            for (JsonNode step : story.path("steps")) {
                clock.now = Instant.ofEpochSecond(step.path("now").asLong());
                daegi.keys = VECTORS.path("keySets").get(step.path("keys").asText());
                daegi.verdict = step.path("verdict").isObject() ? step.path("verdict") : null;
                assertEquals(step.path("expect"), told(guard, step));
                assertEquals(step.path("keysAsked").asInt(), daegi.keysAsked);
                assertEquals(step.path("verdictsAsked").asInt(), daegi.verdictsAsked);
            }
        }
    }

    private static Guard guard(JsonNode setup, StubDaegi daegi, Clock clock) {
        return Guard.of(daegi.url())
                .internal(daegi.url())
                .online(setup.path("online").asBoolean())
                .whenAway(setup.path("whenAway").asText().equals("letIn") ? WhenAway.LET_IN : WhenAway.REFUSE)
                .clockSkew(Duration.ofSeconds(setup.path("clockSkewSeconds").asLong()))
                .refresh(Duration.ofSeconds(setup.path("refreshSeconds").asLong()))
                .pause(Duration.ofSeconds(setup.path("pauseSeconds").asLong()))
                .clock(clock)
                .build();
    }

    private static JsonNode told(Guard guard, JsonNode step) throws IOException {
        try {
            Entry entry = guard.check(step.path("item").asText(), step.path("pass").asText());
            JsonNode said = JSON.valueToTree(Map.of("entry", entry));
            ((com.fasterxml.jackson.databind.node.ObjectNode) said.path("entry")).put("token", entry.token());
            // Read again, so that numbers are of the same kind.
            return JSON.readTree(said.toString());
        } catch (RefusedException refused) {
            return JSON.valueToTree(Map.of("refused", refused.refusal().name()));
        }
    }

    @Test
    void aPassIsFoundWhereItMayBe() {
        assertFalse(VECTORS.path("carriers").isEmpty());
        for (JsonNode vector : VECTORS.path("carriers")) {
            assertEquals(vector.path("pass").asText(), carrier(vector).pass(), vector.toString());
        }
    }

    @TestFactory
    Stream<DynamicTest> requests() {
        Stream<JsonNode> requests = StreamSupport.stream(VECTORS.path("requests").spliterator(), false);
        return requests.map(request -> DynamicTest.dynamicTest(request.path("name").asText(), () -> {
            try (StubDaegi daegi = new StubDaegi()) {
                Turned clock = new Turned();
                clock.now = Instant.ofEpochSecond(request.path("now").asLong());
                daegi.keys = VECTORS.path("keySets").get(request.path("keys").asText());
                assertEquals(request.path("expect"), admitted(Guard.of(daegi.url()).clock(clock).build(), request));
            }
        }));
    }

    private static JsonNode admitted(Guard guard, JsonNode request) throws IOException {
        var admitted = JSON.createObjectNode();
        try {
            Admission admission = guard.admit(request.path("item").asText(), carrier(request));
            admitted.put("userId", admission.entry().userId());
            admitted.put("expiresAt", admission.entry().expiresAt());
            admitted.put("keeps", admission.keep());
        } catch (RefusedException refused) {
            admitted.put("refused", refused.refusal().name());
        }
        // Read again, so that numbers are of the same kind.
        return JSON.readTree(admitted.toString());
    }

    private static Carrier carrier(JsonNode vector) {
        String[] target = vector.path("target").asText().split("\\?", 2);
        String query = target.length == 2 ? target[1] : null;
        return Carrier.find(query, name -> vector.path("headers").path(name).textValue(), vector.path("item").asText());
    }

    @Test
    void peopleAreSentToTheWaitingPageAndProgramsAreTold() throws IOException {
        assertFalse(VECTORS.path("answers").isEmpty());
        for (JsonNode vector : VECTORS.path("answers")) {
            Refusal refusal = Refusal.valueOf(vector.path("code").asText());
            Refusal.Answer answer =
                    refusal.answer(vector.path("accept").asText(), vector.path("waitingPage").asText());
            assertEquals(vector.path("status").asInt(), answer.status());
            assertEquals(vector.path("headers"), JSON.valueToTree(answer.headers()));
            JsonNode body = answer.body().isEmpty() ? JSON.nullNode() : JSON.readTree(answer.body());
            assertEquals(vector.path("body"), body);
        }
    }

    /** A clock that a test turns. */
    private static final class Turned extends Clock {
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
