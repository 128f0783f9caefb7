package io.daegi.guard;

import java.lang.System.Logger.Level;
import java.time.Clock;
import java.time.Duration;
import java.util.Objects;
import java.util.function.Supplier;

/** Accepts only users admitted by the waiting room. One per process is enough: it caches daegi's keys. */
public final class Guard {
    private static final System.Logger LOG = System.getLogger(Guard.class.getName());

    private final Builder config;
    private final JwksClient keys;
    private final InternalClient internal;

    private Guard(Builder config) {
        Http http = new Http(config.timeout);
        this.config = config;
        this.keys = new JwksClient(http, config.publicUrl, config.keyTtl, config.minFetchInterval, config.clock);
        this.internal = config.internalUrl == null ? null : new InternalClient(http, config.internalUrl);
    }

    /** Returns a builder for the daegi at this public URL, as this service reaches it. */
    public static Builder builder(String publicUrl) {
        return new Builder(publicUrl);
    }

    /**
     * Checks a pass for {@code item}.
     *
     * @throws RefusedException with the reason if the pass is refused
     */
    public Entry check(String item, String pass) {
        Entry entry = read(item, pass);
        confirm(item, pass);
        return entry;
    }

    /**
     * Checks a request for {@code item} and chooses between its passes.
     *
     * <p>A browser may send two, one in its cookie and one in the URL. A link must neither sign a user out nor replace them by
     * another user. Therefore a valid cookie wins unless the URL carries a pass of the same user that expires later. A pass
     * that was not chosen is not stored.
     *
     * @throws RefusedException with the reason if the request is refused; if both passes are, the reason of the one in the URL
     */
    public Authorization authorize(String item, PassSource source) {
        String inUrl = source.inUrl();
        if (inUrl.isEmpty()) {
            return new Authorization(check(item, source.stored()), null);
        }
        if (source.stored().isEmpty()) {
            return new Authorization(check(item, inUrl), inUrl);
        }
        ReadResult urlResult = ReadResult.from(() -> read(item, inUrl));
        ReadResult storedResult = ReadResult.from(() -> read(item, source.stored()));
        if (storedResult.isPreferredOver(urlResult)) {
            return confirmed(item, new Authorization(storedResult.entry, null), source.stored(), urlResult, inUrl, inUrl);
        }
        if (urlResult.refusal != null) {
            throw urlResult.refusal;
        }
        return confirmed(item, new Authorization(urlResult.entry, inUrl), inUrl, storedResult, source.stored(), null);
    }

    /** Uses the second pass if the first one was revoked. */
    private Authorization confirmed(String item, Authorization first, String pass, ReadResult second, String other, String keep) {
        try {
            confirm(item, pass);
            return first;
        } catch (RefusedException refused) {
            if (refused.refusal() != Refusal.PASS_REVOKED || second.refusal != null) {
                throw refused;
            }
            confirm(item, other);
            return new Authorization(second.entry, keep);
        }
    }

    /** The result of an offline check: an entry, or the refusal. */
    private record ReadResult(Entry entry, RefusedException refusal) {
        static ReadResult from(Supplier<Entry> read) {
            try {
                return new ReadResult(read.get(), null);
            } catch (RefusedException refused) {
                return new ReadResult(null, refused);
            }
        }

        /** Returns whether this pass, of a cookie, is preferred over the one in the URL. */
        boolean isPreferredOver(ReadResult inUrl) {
            if (refusal != null || inUrl.refusal != null) {
                return refusal == null;
            }
            boolean sameUser = entry.userId().equals(inUrl.entry.userId());
            return !sameUser || inUrl.entry.expiresAt() <= entry.expiresAt();
        }
    }

    private Entry read(String item, String pass) {
        if (pass.isEmpty()) {
            throw new RefusedException(Refusal.PASS_MISSING);
        }
        PublishedKey key = key(Claims.kidOf(pass));
        return Claims.entry(pass, key, item, config.clock.instant().getEpochSecond(), config.clockSkew.toSeconds());
    }

    private void confirm(String item, String pass) {
        if (config.online && !hasEntry(item, pass)) {
            throw new RefusedException(Refusal.PASS_REVOKED);
        }
    }

    /**
     * Ends an entry, for example after the order was placed, so that daegi can admit the next user. Idempotent.
     *
     * @return whether this call ended the entry
     * @throws DaegiUnavailableException if daegi is unreachable; the entry then ends when the pass expires
     */
    public boolean complete(Entry entry) {
        if (internal == null) {
            throw new IllegalStateException("internalUrl is not configured; it is required to complete entries");
        }
        return internal.complete(entry.itemId(), entry.token());
    }

    /** Completes an entry. Logs a failure instead of throwing, because the response must not change: the entry expires. */
    public void tryComplete(Entry entry) {
        try {
            complete(entry);
        } catch (DaegiUnavailableException error) {
            LOG.log(Level.WARNING, "entry not completed, it ends when its pass expires: " + error.getMessage());
        }
    }

    /** Returns the URL of the item's waiting page. */
    public String waitingPage(String item) {
        return config.browserUrl + "/wait/" + item;
    }

    /** Returns the {@code Set-Cookie} header that stores a pass in the browser. */
    public String cookie(Entry entry, String pass) {
        long seconds = Math.max(0, entry.expiresAt() - config.clock.instant().getEpochSecond());
        return PassSource.cookie(entry.itemId(), pass, seconds, config.browserUrl.startsWith("https:"));
    }

    /** Returns the key, or null if no keys are available and the guard fails open. */
    private PublishedKey key(String kid) {
        try {
            PublishedKey key = keys.find(kid);
            if (key == null) {
                throw new RefusedException(Refusal.PASS_INVALID);
            }
            return key;
        } catch (DaegiUnavailableException error) {
            if (config.onUnavailable == OnUnavailable.FAIL_CLOSED) {
                throw new RefusedException(Refusal.UNAVAILABLE);
            }
            return null;
        }
    }

    /** Returns whether the entry has not ended since the pass was signed. */
    private boolean hasEntry(String item, String pass) {
        try {
            return internal.hasEntry(item, pass);
        } catch (DaegiUnavailableException error) {
            LOG.log(Level.WARNING, "online check of a pass failed: " + error.getMessage());
            if (config.onUnavailable == OnUnavailable.FAIL_CLOSED) {
                throw new RefusedException(Refusal.UNAVAILABLE);
            }
            return true;
        }
    }

    /** Configuration of a guard. Only the public URL is required. */
    public static final class Builder {
        private final String publicUrl;
        private String browserUrl;
        private String internalUrl;
        private boolean online;
        private OnUnavailable onUnavailable = OnUnavailable.FAIL_CLOSED;
        private Duration clockSkew = Duration.ofSeconds(5);
        private Duration keyTtl = Duration.ofSeconds(300);
        private Duration minFetchInterval = Duration.ofSeconds(5);
        private Duration timeout = Duration.ofSeconds(2);
        private Clock clock = Clock.systemUTC();

        private Builder(String publicUrl) {
            this.publicUrl = trimSlashes(publicUrl);
            this.browserUrl = this.publicUrl;
        }

        /** daegi's public URL as browsers reach it. Redirects to the waiting page use it. Default: the public URL. */
        public Builder browserUrl(String url) {
            browserUrl = trimSlashes(url);
            return this;
        }

        /** daegi's internal URL. Required to complete entries and to check online. */
        public Builder internalUrl(String url) {
            internalUrl = trimSlashes(url);
            return this;
        }

        /** Also checks with daegi, for each request, that the entry has not ended. */
        public Builder online(boolean enabled) {
            online = enabled;
            return this;
        }

        /** What to do while daegi is unreachable. Default: fail closed. */
        public Builder onUnavailable(OnUnavailable choice) {
            onUnavailable = Objects.requireNonNull(choice);
            return this;
        }

        /** Tolerated difference between the clocks of daegi and this service. Default: 5 s. */
        public Builder clockSkew(Duration tolerance) {
            clockSkew = tolerance;
            return this;
        }

        /** Age at which keys are fetched again. Default: 5 minutes. */
        public Builder keyTtl(Duration ttl) {
            keyTtl = ttl;
            return this;
        }

        /** Minimum time between two fetches of keys, whatever key ids passes name. Default: 5 s. */
        public Builder minFetchInterval(Duration interval) {
            minFetchInterval = interval;
            return this;
        }

        /** Timeout of one call to daegi. Default: 2 s. */
        public Builder timeout(Duration duration) {
            timeout = duration;
            return this;
        }

        /** Another clock, for example one that a test controls. */
        public Builder clock(Clock other) {
            clock = other;
            return this;
        }

        /** Builds the guard. The first pass triggers the first fetch of keys. */
        public Guard build() {
            if (online && internalUrl == null) {
                throw new IllegalStateException("internalUrl is not configured; it is required to check online");
            }
            return new Guard(this);
        }

        private static String trimSlashes(String url) {
            return url.replaceAll("/+$", "");
        }
    }
}
