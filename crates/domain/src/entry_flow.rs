//! How entries come and go: what the leader observes of a lane once per round, from which pods estimate when
//! slots become free.
//!
//! All fields are integers, so that the memory store and Lua compute the same numbers
//! (`crates/store/src/redis/scripts/prelude/entry_flow.lua`).

use crate::Millis;

/// Ends from which on the older half of the observations counts half: enough for an error of 5 %, few enough to
/// follow a shop that becomes slower.
pub const MAX_ENDS: u64 = 800;

/// The entries of a lane and how long they last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryFlow {
    /// When the leader observed last.
    pub at: Millis,
    /// Entries at that time.
    pub entered: u64,
    /// Tickets that were admitted until then.
    pub admitted: u64,
    /// Entries that had expired until then.
    pub expired: u64,
    /// How long the entries lasted in sum that had ended before they expired, until then, in milliseconds.
    pub spent: u64,
    /// When the leader first observed the latest admission; 0 for none.
    pub admitted_at: Millis,
    /// The sum of the ages of all entries, in milliseconds.
    pub ages: u64,
    /// The sum of the times that entries lasted while they were observed, in milliseconds.
    pub lasted: u64,
    /// Entries that ended before they expired, in that time.
    pub early: u64,
    /// How long those entries lasted in sum, in milliseconds.
    pub early_lasted: u64,
    /// Entries that expired, in that time.
    pub lapsed: u64,
}

/// The counts of a lane that the leader observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryCounts {
    /// Entries.
    pub entered: u64,
    /// Tickets that were admitted so far.
    pub admitted: u64,
    /// Entries that expired so far.
    pub expired: u64,
    /// How long the entries lasted in sum that ended before they expired, in milliseconds.
    pub spent: u64,
}

impl EntryFlow {
    /// Returns the flow after an observation at `now`. A time before the last observation, because of clock
    /// skew, changes nothing.
    ///
    /// An expired entry had the age of the pass time.
    #[must_use]
    pub fn after(flow: Option<Self>, counts: EntryCounts, ttl_ms: Millis, now: Millis) -> Self {
        let EntryCounts { entered, admitted, expired, spent } = counts;
        let Some(last) = flow else {
            let admitted_at = if entered > 0 { now } else { 0 };
            let none = Self::default();
            return Self { at: now, entered, admitted, expired, spent, admitted_at, ..none };
        };
        if now < last.at {
            return last;
        }
        let passed = last.entered * (now - last.at);
        let new = admitted.saturating_sub(last.admitted);
        let lapsed = expired.saturating_sub(last.expired);
        let early = (last.entered + new).saturating_sub(entered).saturating_sub(lapsed);
        let early_lasted = spent.saturating_sub(last.spent);
        let ages = (last.ages + passed).saturating_sub(lapsed * ttl_ms + early_lasted);
        let ages = ages.min(entered * ttl_ms);
        let flow = Self {
            at: now,
            entered,
            admitted,
            expired,
            spent,
            admitted_at: if new > 0 { now } else { last.admitted_at },
            ages,
            lasted: last.lasted + passed,
            early: last.early + early,
            early_lasted: last.early_lasted + early_lasted,
            lapsed: last.lapsed + lapsed,
        };
        flow.halved()
    }

    /// Halves what was observed until it has at most [`MAX_ENDS`] ends.
    fn halved(mut self) -> Self {
        while self.early + self.lapsed > MAX_ENDS {
            self.lasted /= 2;
            self.early /= 2;
            self.early_lasted /= 2;
            self.lapsed /= 2;
        }
        self
    }

    /// Returns the stored form: all fields in order, separated by colons.
    #[must_use]
    pub fn to_text(self) -> String {
        let Self { at, entered, admitted, expired, spent, admitted_at, ages, .. } = self;
        let Self { lasted, early, early_lasted, lapsed, .. } = self;
        let now = format!("{at}:{entered}:{admitted}:{expired}:{spent}:{admitted_at}:{ages}");
        format!("{now}:{lasted}:{early}:{early_lasted}:{lapsed}")
    }

    /// Parses the stored form. Returns `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(':').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        let flow = Self {
            at: next()?,
            entered: next()?,
            admitted: next()?,
            expired: next()?,
            spent: next()?,
            admitted_at: next()?,
            ages: next()?,
            lasted: next()?,
            early: next()?,
            early_lasted: next()?,
            lapsed: next()?,
        };
        numbers.next().is_none().then_some(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Millis = 600_000;

    fn counts(entered: u64, admitted: u64, expired: u64, spent: u64) -> EntryCounts {
        EntryCounts { entered, admitted, expired, spent }
    }

    #[test]
    fn ages_and_ends_are_observed() {
        let flow = EntryFlow::after(None, counts(0, 0, 0, 0), TTL, 1_000);
        let flow = EntryFlow::after(Some(flow), counts(10, 10, 0, 0), TTL, 2_000);
        assert_eq!((flow.admitted_at, flow.ages), (2_000, 0));
        let flow = EntryFlow::after(Some(flow), counts(10, 10, 0, 0), TTL, 62_000);
        assert_eq!((flow.ages, flow.lasted, flow.early), (600_000, 600_000, 0));
        // Half of them complete, and two new ones follow.
        let flow = EntryFlow::after(Some(flow), counts(7, 12, 0, 305_000), TTL, 63_000);
        assert_eq!((flow.early, flow.lapsed, flow.admitted_at), (5, 0, 63_000));
        assert_eq!((flow.ages, flow.early_lasted), (305_000, 305_000));
        assert_eq!(EntryFlow::parse(&flow.to_text()), Some(flow));
    }

    #[test]
    fn entries_that_expire_leave_the_ages_of_the_others() {
        let flow = EntryFlow::after(None, counts(1, 1, 0, 0), TTL, 0);
        let flow = EntryFlow::after(Some(flow), counts(2, 2, 0, 0), TTL, 300_000);
        let flow = EntryFlow::after(Some(flow), counts(1, 2, 1, 0), TTL, 600_000);
        assert_eq!((flow.ages, flow.lapsed, flow.early), (300_000, 1, 0));
    }

    #[test]
    fn old_observations_fade_and_skewed_clocks_change_nothing() {
        let mut flow = EntryFlow::after(None, counts(10, 10, 0, 0), TTL, 0);
        for second in 1..=2_000 {
            let counts = counts(10, 10 + second, 0, second * 10_000);
            flow = EntryFlow::after(Some(flow), counts, TTL, second * 1_000);
        }
        assert!(flow.early <= MAX_ENDS && flow.early > MAX_ENDS / 2 - 1);
        assert_eq!(flow.early_lasted / flow.early / 100, 100, "entries last 10 s");
        assert_eq!(EntryFlow::after(Some(flow), counts(0, 0, 0, 0), TTL, 5_000), flow);
        assert_eq!(EntryFlow::parse("1:2:3"), None);
    }
}
