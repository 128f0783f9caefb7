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
 * The keys that daegi publishes. They are kept, so that checking a pass asks nobody; they are fetched anew when they are
 * old, or when a pass names one that is not known: daegi may have begun to sign with it.
 */
final class Keys {
    private static final System.Logger LOG = System.getLogger(Keys.class.getName());
    /** What comes before the 32 bytes of an Ed25519 key in its X.509 form (RFC 8410). */
    private static final byte[] X509 = HexFormat.of().parseHex("302a300506032b6570032100");

    private record Known(Map<String, PublicKey> keys, Long fetched) {}

    private final Http http;
    private final String url;
    private final Duration refresh;
    private final Duration pause;
    private final Clock clock;
    private volatile Known known = new Known(Map.of(), null);
    /** Held while daegi is asked: one question for all who wait for it. */
    private final ReentrantLock asking = new ReentrantLock();

    private Long asked;

    Keys(Http http, String room, Duration refresh, Duration pause, Clock clock) {
        this.http = http;
        this.url = room + "/.well-known/jwks.json";
        this.refresh = refresh;
        this.pause = pause;
        this.clock = clock;
    }

    /** The key of this id, or null if daegi does not publish it. */
    PublicKey find(String kid) {
        Known before = known;
        if (before.fetched == null) {
            asking.lock();
            askAndUnlock();
        } else if ((!before.keys.containsKey(kid) || isOver(before.fetched, refresh)) && asking.tryLock()) {
            // One thread fetches; every other thread answers from the known keys. Otherwise passes with invented key ids
            // would hold all threads of a server while daegi is slow.
            askAndUnlock();
        }
        Known now = known;
        if (now.fetched == null) {
            throw new AwayException("no keys were ever had");
        }
        return now.keys.get(kid);
    }

    /** Asks, unless daegi was asked a moment ago, with or without success. What is known stays known meanwhile. */
    private void askAndUnlock() {
        try {
            if (isOver(asked, pause)) {
                asked = clock.millis();
                known = new Known(fetch(), asked);
            }
        } catch (AwayException away) {
            LOG.log(Level.WARNING, "the waiting room's keys cannot be fetched: " + away.getMessage());
        } finally {
            asking.unlock();
        }
    }

    private Map<String, PublicKey> fetch() {
        JsonNode set = http.get(url).path("keys");
        if (!set.isArray()) {
            throw new AwayException(url + " is no key set");
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

    /** The key, or null: a set may hold keys of other kinds, for others. */
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

    /** Whether this was so long ago. A clock that was set back must not make it last for ever. */
    private boolean isOver(Long since, Duration age) {
        return since == null || Math.abs(clock.millis() - since) >= age.toMillis();
    }
}
