package io.daegi.guard;

import java.lang.System.Logger.Level;
import java.security.PublicKey;
import java.time.Clock;
import java.time.Duration;
import java.util.Objects;
import java.util.function.Supplier;

/** Lets in only who was let in by the waiting room. One per process is enough: it keeps daegi's keys. */
public final class Guard {
    private static final System.Logger LOG = System.getLogger(Guard.class.getName());

    private final Builder setup;
    private final Keys keys;
    private final Internal internal;

    private Guard(Builder setup) {
        Http http = new Http(setup.timeout);
        this.setup = setup;
        this.keys = new Keys(http, setup.room, setup.refresh, setup.pause, setup.clock);
        this.internal = setup.internal == null ? null : new Internal(http, setup.internal);
    }

    /** A guard for the daegi at this public address, as this service reaches it. */
    public static Builder of(String room) {
        return new Builder(room);
    }

    /**
     * Whether somebody with this pass is let in to {@code item}.
     *
     * @throws RefusedException if they are not, and why
     */
    public Entry check(String item, String pass) {
        Entry entry = read(item, pass);
        confirm(item, pass);
        return entry;
    }

    /**
     * Checks a request for {@code item} and decides which of its passes counts.
     *
     * <p>A browser may bring two: one in its cookie and one in the address. A link must neither log a person out nor make
     * them another person. So the cookie counts while it is good, unless the address brings a pass of the same user that
     * expires later. A pass that does not count is not kept.
     *
     * @throws RefusedException if the request is refused, and why; where both passes are refused, why the one in the address is
     */
    public Admission admit(String item, Carrier brought) {
        String address = brought.address();
        if (address.isEmpty()) {
            return new Admission(check(item, brought.kept()), null);
        }
        if (brought.kept().isEmpty()) {
            return new Admission(check(item, address), address);
        }
        Read added = Read.of(() -> read(item, address));
        Read known = Read.of(() -> read(item, brought.kept()));
        if (known.isBetterThan(added)) {
            return confirmed(item, new Admission(known.entry, null), brought.kept(), added, address, address);
        }
        if (added.refusal != null) {
            throw added.refusal;
        }
        return confirmed(item, new Admission(added.entry, address), address, known, brought.kept(), null);
    }

    /** Takes the second pass if the first one was revoked. */
    private Admission confirmed(String item, Admission first, String pass, Read second, String other, String keep) {
        try {
            confirm(item, pass);
            return first;
        } catch (RefusedException refused) {
            if (refused.refusal() != Refusal.PASS_REVOKED || second.refusal != null) {
                throw refused;
            }
            confirm(item, other);
            return new Admission(second.entry, keep);
        }
    }

    /** What a pass proves without an online check: an entry, or why there is none. */
    private record Read(Entry entry, RefusedException refusal) {
        static Read of(Supplier<Entry> read) {
            try {
                return new Read(read.get(), null);
            } catch (RefusedException refused) {
                return new Read(null, refused);
            }
        }

        /** Whether this pass, of a cookie, counts more than that of an address. */
        boolean isBetterThan(Read address) {
            if (refusal != null || address.refusal != null) {
                return refusal == null;
            }
            boolean samePerson = entry.userId().equals(address.entry.userId());
            return !samePerson || address.entry.expiresAt() <= entry.expiresAt();
        }
    }

    private Entry read(String item, String pass) {
        if (pass.isEmpty()) {
            throw new RefusedException(Refusal.PASS_MISSING);
        }
        PublicKey key = key(Claims.kidOf(pass));
        return Claims.entry(pass, key, item, setup.clock.instant().getEpochSecond(), setup.clockSkew.toSeconds());
    }

    private void confirm(String item, String pass) {
        if (setup.online && !isInside(item, pass)) {
            throw new RefusedException(Refusal.PASS_REVOKED);
        }
    }

    /**
     * The person is done, such as with their order: makes room for the next one. Completing twice is no mistake.
     *
     * @return whether this call ended the entry
     * @throws AwayException if daegi cannot be reached; the entry then ends when the pass expires
     */
    public boolean complete(Entry entry) {
        if (internal == null) {
            throw new IllegalStateException("the guard was not told daegi's internal address");
        }
        return internal.complete(entry.itemId(), entry.token());
    }

    /** Completes after the work was done. Its answer stands: an entry that cannot be completed expires. */
    public void completeOrLog(Entry entry) {
        try {
            complete(entry);
        } catch (AwayException away) {
            LOG.log(Level.WARNING, "an entry was not completed: " + away.getMessage());
        }
    }

    /** Where people wait for this item. */
    public String waitingPage(String item) {
        return setup.pages + "/wait/" + item;
    }

    /** The {@code Set-Cookie} in which a browser keeps a pass. */
    public String cookie(Entry entry, String pass) {
        long seconds = Math.max(0, entry.expiresAt() - setup.clock.instant().getEpochSecond());
        return Carrier.cookie(entry.itemId(), pass, seconds, setup.pages.startsWith("https:"));
    }

    /** The key, or null if nobody can say and everybody with a pass is let in. */
    private PublicKey key(String kid) {
        try {
            PublicKey key = keys.find(kid);
            if (key == null) {
                throw new RefusedException(Refusal.PASS_INVALID);
            }
            return key;
        } catch (AwayException away) {
            if (setup.whenAway == WhenAway.REFUSE) {
                throw new RefusedException(Refusal.UNAVAILABLE);
            }
            return null;
        }
    }

    /** Offline is enough for most: a pass is short-lived. Online knows what happened since. */
    private boolean isInside(String item, String pass) {
        try {
            return internal.isInside(item, pass);
        } catch (AwayException away) {
            LOG.log(Level.WARNING, "the waiting room cannot be asked about a pass: " + away.getMessage());
            if (setup.whenAway == WhenAway.REFUSE) {
                throw new RefusedException(Refusal.UNAVAILABLE);
            }
            return true;
        }
    }

    /** What a guard is told. Everything but the address has a default. */
    public static final class Builder {
        private final String room;
        private String pages;
        private String internal;
        private boolean online;
        private WhenAway whenAway = WhenAway.REFUSE;
        private Duration clockSkew = Duration.ofSeconds(5);
        private Duration refresh = Duration.ofSeconds(300);
        private Duration pause = Duration.ofSeconds(5);
        private Duration timeout = Duration.ofSeconds(2);
        private Clock clock = Clock.systemUTC();

        private Builder(String room) {
            this.room = trimmed(room);
            this.pages = this.room;
        }

        /** daegi's public address as people reach it, if it is another: the waiting page is there. */
        public Builder pages(String address) {
            pages = trimmed(address);
            return this;
        }

        /** daegi's internal address. Needed to complete entries and to check online. */
        public Builder internal(String address) {
            internal = trimmed(address);
            return this;
        }

        /** Also asks daegi whether the entry was completed, given back or taken away since. */
        public Builder online(boolean asks) {
            online = asks;
            return this;
        }

        /** What to do when daegi does not answer: refuse, if nothing else is said. */
        public Builder whenAway(WhenAway choice) {
            whenAway = Objects.requireNonNull(choice);
            return this;
        }

        /** By how much the clocks of daegi and this service may differ: 5 s. */
        public Builder clockSkew(Duration most) {
            clockSkew = most;
            return this;
        }

        /** How old the keys may be before they are fetched anew: 5 minutes. */
        public Builder refresh(Duration age) {
            refresh = age;
            return this;
        }

        /** The least time between two questions for keys, whatever passes people bring: 5 s. */
        public Builder pause(Duration least) {
            pause = least;
            return this;
        }

        /** How long daegi may take to answer: 2 s. */
        public Builder timeout(Duration most) {
            timeout = most;
            return this;
        }

        /** Another clock, such as one that a test turns. */
        public Builder clock(Clock other) {
            clock = other;
            return this;
        }

        /** The guard. Nothing is fetched before the first pass comes. */
        public Guard build() {
            if (online && internal == null) {
                throw new IllegalStateException("checking online needs daegi's internal address");
            }
            return new Guard(this);
        }

        private static String trimmed(String address) {
            return address.replaceAll("/+$", "");
        }
    }
}
