package io.daegi.guard;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.System.Logger.Level;
import java.time.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Fetches and caches daegi's public keys (JWKS), so that checking a pass needs no call. The keys are fetched again when they
 * are older than {@code keyTtl}, or when a pass names an unknown key id, because daegi may have rotated its keys.
 */
final class JwksClient {
    private static final System.Logger LOG = System.getLogger(JwksClient.class.getName());

    private record KeySet(Map<String, PublishedKey> keys, Long fetchedAt) {}

    private final Http http;
    private final String url;
    private final Duration keyTtl;
    private final Duration minFetchInterval;
    private final Clock clock;
    private volatile KeySet known = new KeySet(Map.of(), null);
    /** Held during a fetch, so that concurrent requests share one. */
    private final ReentrantLock fetchLock = new ReentrantLock();

    private Long lastFetch;

    JwksClient(Http http, String publicUrl, Duration keyTtl, Duration minFetchInterval, Clock clock) {
        this.http = http;
        this.url = publicUrl + "/.well-known/jwks.json";
        this.keyTtl = keyTtl;
        this.minFetchInterval = minFetchInterval;
        this.clock = clock;
    }

    /** Returns the key with this id, or null if daegi does not publish it. */
    PublishedKey find(String kid) {
        KeySet before = known;
        if (before.fetchedAt == null) {
            fetchLock.lock();
            fetchIfDueAndUnlock();
        } else if ((!before.keys.containsKey(kid) || isOlderThan(before.fetchedAt, keyTtl)) && fetchLock.tryLock()) {
            // One thread fetches; the others use the cached keys. Otherwise passes with invented key ids
            // would hold all threads of a server while daegi is slow.
            fetchIfDueAndUnlock();
        }
        KeySet now = known;
        if (now.fetchedAt == null) {
            throw new DaegiUnavailableException("no keys fetched yet");
        }
        return now.keys.get(kid);
    }

    /** Fetches unless the last attempt is more recent than {@code minFetchInterval}. On failure the cached keys stay valid. */
    private void fetchIfDueAndUnlock() {
        try {
            if (isOlderThan(lastFetch, minFetchInterval)) {
                lastFetch = clock.millis();
                known = new KeySet(fetch(), lastFetch);
            }
        } catch (DaegiUnavailableException error) {
            LOG.log(Level.WARNING, "fetching daegi's public keys failed, using cached keys: " + error.getMessage());
        } finally {
            fetchLock.unlock();
        }
    }

    private Map<String, PublishedKey> fetch() {
        JsonNode set = http.get(url).path("keys");
        if (!set.isArray()) {
            throw new DaegiUnavailableException(url + " did not return a key set");
        }
        Map<String, PublishedKey> keys = new HashMap<>();
        for (JsonNode published : set) {
            PublishedKey key = PublishedKey.parse(published);
            if (key != null && published.path("kid").isTextual()) {
                keys.put(published.path("kid").textValue(), key);
            }
        }
        return keys;
    }

    /** Returns whether {@code since} is at least {@code age} away. The absolute difference covers a clock that was set back. */
    private boolean isOlderThan(Long since, Duration age) {
        return since == null || Math.abs(clock.millis() - since) >= age.toMillis();
    }
}
