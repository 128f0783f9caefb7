package io.daegi.guard;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Passes with invented key ids while daegi is slow. */
class UnknownKeyTest {
    private static final int THREADS = 8;

    @Test
    void unknownKeyIdsBlockAtMostOneThreadOnceKeysAreCached() throws Exception {
        JsonNode vectors = new ObjectMapper().readTree(Files.readString(Path.of("../vectors/guard.json")));
        JsonNode valid = vectors.path("scenarios").path(0).path("steps").path(0);
        CountDownLatch release = new CountDownLatch(1);
        ExecutorService servlets = Executors.newFixedThreadPool(THREADS);
        try (StubDaegi daegi = new StubDaegi()) {
            daegi.keys = vectors.path("keySets").path("first");
            Clock clock = Clock.fixed(Instant.ofEpochSecond(valid.path("now").asLong()), ZoneOffset.UTC);
            Guard guard = Guard.builder(daegi.url())
                    .clock(clock)
                    .minFetchInterval(Duration.ZERO)
                    .timeout(Duration.ofSeconds(30))
                    .build();
            guard.check("concert", valid.path("pass").asText());
            daegi.beforeKeys = release;

            var checks = new ExecutorCompletionService<Refusal>(servlets);
            List<Future<Refusal>> all = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                all.add(checks.submit(() -> refusalOf(guard)));
            }
            for (int done = 0; done < THREADS - 1; done++) {
                Future<Refusal> next = checks.poll(10, TimeUnit.SECONDS);
                assertTrue(next != null, (THREADS - done) + " threads wait for daegi");
                assertEquals(Refusal.PASS_INVALID, next.get());
            }
            guard.check("concert", valid.path("pass").asText());
            release.countDown();
            for (Future<Refusal> refusal : all) {
                assertEquals(Refusal.PASS_INVALID, refusal.get(10, TimeUnit.SECONDS));
            }
        } finally {
            release.countDown();
            servlets.shutdownNow();
        }
    }

    private static Refusal refusalOf(Guard guard) {
        String header = "{\"alg\":\"EdDSA\",\"kid\":\"invented\"}";
        String part = Base64.getUrlEncoder().withoutPadding().encodeToString(header.getBytes(StandardCharsets.UTF_8));
        try {
            guard.check("concert", part + ".e30.AA");
            return null;
        } catch (RefusedException refused) {
            return refused.refusal();
        }
    }
}
