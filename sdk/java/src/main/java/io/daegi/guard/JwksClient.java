package io.daegi.guard;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.System.Logger.Level;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.spec.X509EncodedKeySpec;
import java.time.Clock;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Fetches and caches daegi's public keys (JWKS), so that checking a pass needs no call. The keys are fetched again when they
 * are older than {@code keyTtl}, or when a pass names an unknown key id, because daegi may have rotated its keys.
 */
final class JwksClient {
    private static final System.Logger LOG = System.getLogger(JwksClient.class.getName());
    /** Prefix of the 32 bytes of an Ed25519 key in its X.509 encoding (RFC 8410). */
    private static final byte[] X509 = HexFormat.of().parseHex("302a300506032b6570032100");

    private record KeySet(Map<String, PublicKey> keys, Long fetchedAt) {}

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
    PublicKey find(String kid) {
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

    private Map<String, PublicKey> fetch() {
        JsonNode set = http.get(url).path("keys");
        if (!set.isArray()) {
            throw new DaegiUnavailableException(url + " did not return a key set");
        }
        Map<String, PublicKey> keys = new HashMap<>();
        for (JsonNode published : set) {
            PublicKey key = usable(published);
            if (key != null && published.path("kid").isTextual()) {
                keys.put(published.path("kid").textValue(), key);
            }
        }
        return keys;
    }

    /** Imports an Ed25519 key. Returns null for keys of other types, which the set may contain. */
    private static PublicKey usable(JsonNode published) {
        if (!published.path("kty").asText().equals("OKP") || !published.path("crv").asText().equals("Ed25519")) {
            return null;
        }
        try {
            byte[] x = Base64.getUrlDecoder().decode(published.path("x").asText());
            byte[] encoded = new byte[X509.length + x.length];
            System.arraycopy(X509, 0, encoded, 0, X509.length);
            System.arraycopy(x, 0, encoded, X509.length, x.length);
            return KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded));
        } catch (GeneralSecurityException | IllegalArgumentException unusable) {
            return null;
        }
    }

    /** Returns whether {@code since} is at least {@code age} away. The absolute difference covers a clock that was set back. */
    private boolean isOlderThan(Long since, Duration age) {
        return since == null || Math.abs(clock.millis() - since) >= age.toMillis();
    }
}
