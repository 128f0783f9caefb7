//! How long a ticket waits: the ETA of a position, from everything that a snapshot of its line shows.
//!
//! Three things hold a ticket back: the quota of each tick, the slots of `maxActive`, and the stock. The wait is
//! the longest of the three. The quota is known; when slots become free is estimated from how long entries
//! lasted so far ([`EntryFlow`]), and no entry lasts longer than the pass time. What is not known yet makes the
//! range wider: an estimate that begins late and moves earlier is better than the opposite. Why:
//! `docs/adr/027-estimate-of-the-wait.md`.

use crate::lane::share::{LaneShare, shares};
use crate::{EntryFlow, Eta, Item, Lane, Millis, Rate, Settings, line_rules};

/// How far the 10th and the 90th percentile of a normal distribution are from its mean, in standard deviations.
const TENTH: f64 = 1.2816;

/// How much slower than its quota a line is taken to be at the 90th percentile, in percent: ticks come late and
/// users return.
const QUOTA_MARGIN: f64 = 1.03;

/// What the model of entries that end early leaves out, as a part of the wait.
const MARGIN: f64 = 0.15;

/// How far the number of entries that end without a purchase may be from what is expected, as a part of it.
const UNSOLD_ERROR: f64 = 0.2;

/// Pass times that an estimate looks ahead while the stock runs out.
const MAX_WAVES: f64 = 30.0;

/// Estimates above this are unknown: 30 days.
const LONGEST_SECONDS: f64 = 30.0 * 86_400.0;

/// What the estimate of one lane depends on.
#[derive(Debug, Clone, Copy)]
pub struct LaneFacts<'a> {
    /// The item.
    pub item: &'a Item,
    /// The rules of all lines.
    pub settings: &'a Settings,
    /// The lane; the counts below are of this lane.
    pub lane: Lane,
    /// How fast it moved.
    pub rate: &'a Rate,
    /// Entries.
    pub entered: u64,
    /// How entries came and went; `None` if the leader did not observe it yet.
    pub flow: Option<EntryFlow>,
    /// Entries that ended with a completed order.
    pub completed: u64,
}

/// How long each position waits, computed once per snapshot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WaitModel {
    tick: f64,
    /// Positions per second that the quota allows.
    speed: Quantiles,
    /// The slots of `maxActive`, if there is such a limit.
    capacity: Option<Slots>,
    /// The slots of the stock, if it limits the entries, and the share of entries that end without a purchase.
    stock: Option<(Slots, f64)>,
}

/// The early, the middle and the late case.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Quantiles {
    early: f64,
    middle: f64,
    late: f64,
}

/// A number of slots, and when their entries end. Times in seconds from now.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Slots {
    count: f64,
    /// Slots without an entry.
    free: f64,
    /// The pass time: no entry lasts longer.
    ttl: f64,
    /// Between these times the entries of now expire if they do not end early.
    first_expiry: f64,
    last_expiry: f64,
    /// How many slots of one pass time are there in the next: 1 unless entries take them along.
    kept: f64,
    /// How entries end: the early, the middle and the late case.
    early: Ends,
    middle: Ends,
    late: Ends,
}

/// How the entries of slots end.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ends {
    /// How many of the entries of now expire.
    expiring: f64,
    /// Entries that end early now, per second.
    rate: f64,
    /// How many entries end early before the first ones of now expire, at most: then all slots have an entry that
    /// expires.
    before: f64,
    /// Ends in one pass time.
    total: f64,
}

/// How much is left for a waiting ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StockOutlook {
    /// How much stock no entry holds.
    pub left: u64,
    /// How many tickets are served before.
    pub ahead: u64,
    /// Whether the stock will be enough.
    pub chance: StockChance,
}

/// Whether the stock will be enough for a waiting ticket.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StockChance {
    /// More is left than tickets are ahead.
    Enough,
    /// It depends on how many entries end without a purchase.
    Uncertain,
    /// More tickets are ahead than entries may end without a purchase.
    Unlikely,
}

impl WaitModel {
    /// Computes the model of a lane at `now`. Returns `None` while the quota is 0.
    #[must_use]
    pub fn new(facts: &LaneFacts<'_>, now: Millis) -> Option<Self> {
        let quota = line_rules::quota(facts.item, facts.settings);
        if quota == 0 {
            return None;
        }
        let (item, share) = (facts.item, facts.share());
        let tick = f64::from(facts.settings.tick_ms) / 1_000.0;
        let least = f64::from(quota) / tick * share;
        // Absent users do not use the quota, and a lane has the share of lanes without tickets: the line moves
        // faster than its part of the quota, but not for sure until the end.
        let measured = facts.rate.mean_per_second(now);
        let middle = least.max(measured);
        let early = middle.max(facts.rate.per_second(now)) * 1.1;
        let speed = Quantiles { early, middle, late: least / QUOTA_MARGIN };
        let slots = |count: u32| facts.slots((f64::from(count) * share).max(1.0), middle, now);
        // An entry that ends with a purchase takes its slot of the stock along.
        let unsold = facts.unsold();
        let stock = || (slots(item.stock).unsold(unsold, facts.unsold_early()), unsold);
        let stock = item.policy.admit_up_to_stock.then(stock);
        Some(Self { tick, speed, capacity: item.policy.max_active.map(slots), stock })
    }

    /// Returns the ETA of a position; `None` if the stock will probably not be enough.
    #[must_use]
    pub fn eta(&self, position: u64) -> Option<Eta> {
        let position = position as f64;
        let ticks = |speed: f64| (position / speed / self.tick).ceil() * self.tick;
        let mut wait = Quantiles {
            early: position / self.speed.early,
            middle: ticks(self.speed.middle) + self.tick / 2.0,
            late: ticks(self.speed.late) + 1.5 * self.tick,
        };
        if let Some(slots) = &self.capacity {
            wait = wait.max(slots.wait(position - slots.free, self.tick));
        }
        if let Some((slots, unsold)) = &self.stock {
            let needed = position - slots.free;
            if needed > 0.0 {
                if needed > slots.count * unsold / (1.0 - unsold) {
                    return None;
                }
                wait = wait.max(slots.wait(needed, self.tick));
            }
        }
        (wait.late <= LONGEST_SECONDS).then(|| Eta {
            p10: wait.early as u64,
            p50: wait.middle.ceil() as u64,
            p90: wait.late.ceil() as u64,
        })
    }

    /// Returns how many of the first `waiting` positions the stock will probably serve.
    #[must_use]
    pub fn served_of(&self, waiting: u64) -> u64 {
        let Some((slots, unsold)) = self.stock else { return waiting };
        let served = slots.free + slots.count * unsold / (1.0 - unsold);
        waiting.min(served as u64)
    }

    /// Returns how much stock is left for a position; `None` if the stock does not limit the entries.
    #[must_use]
    pub fn stock_outlook(&self, position: u64) -> Option<StockOutlook> {
        let (slots, unsold) = self.stock?;
        let (left, ahead) = (slots.free as u64, position.saturating_sub(1));
        let returned = slots.count * unsold / (1.0 - unsold);
        let chance = if ahead < left {
            StockChance::Enough
        } else if (ahead - left) as f64 >= returned * 2.0 + 2.0 {
            StockChance::Unlikely
        } else {
            StockChance::Uncertain
        };
        Some(StockOutlook { left, ahead, chance })
    }
}

impl LaneFacts<'_> {
    /// Returns the part of the rate that the lane has while tickets wait in all lanes.
    fn share(&self) -> f64 {
        match shares(&self.item.policy.lanes).get(self.lane.index()) {
            Some(LaneShare::Weight(weight)) => f64::from(*weight) / 100.0,
            Some(LaneShare::First) | None => 1.0,
        }
    }

    /// Returns the share of entries that end without a purchase, between 0 and 0.98. Without data, all end with
    /// one.
    fn unsold(&self) -> f64 {
        let ended = self.flow.map_or(0, |flow| flow.admitted.saturating_sub(flow.entered));
        let completed = self.completed.min(ended);
        (1.0 - (completed + 2) as f64 / (ended + 2) as f64).clamp(0.0, 0.98)
    }

    /// Returns the share of entries that end neither with a purchase nor by expiry, of those that do not expire.
    fn unsold_early(&self) -> f64 {
        let early = self.flow.map_or(0, |flow| {
            flow.admitted.saturating_sub(flow.entered).saturating_sub(flow.expired)
        });
        1.0 - (self.completed.min(early) + 1) as f64 / (early + 1) as f64
    }

    fn slots(&self, count: f64, speed: f64, now: Millis) -> Slots {
        let seconds = |ms: u64| ms as f64 / 1_000.0;
        let ttl = f64::from(self.item.policy.pass_ttl_seconds);
        let flow = self.flow.unwrap_or_default();
        let elapsed = now.saturating_sub(flow.at);
        let elapsed = if flow.at == 0 { 0 } else { elapsed };
        // Free slots are taken one after the other by tickets that wait; their entries expire last.
        let entered = (self.entered as f64).min(count);
        let free = count - self.entered as f64;
        let filled = free.max(0.0) / speed;
        let last_expiry = match free > 0.0 || flow.admitted_at == 0 {
            true => filled + ttl,
            false => (ttl - seconds(now.saturating_sub(flow.admitted_at))).clamp(0.0, ttl),
        };
        let ages = seconds(flow.ages) / flow.entered.max(1) as f64 + seconds(elapsed);
        let left = (ttl - ages).clamp(0.0, ttl);
        let mean = (entered * left + free.max(0.0) * (ttl + filled / 2.0)) / count.max(1.0);
        let observed = Observed {
            count,
            ttl,
            entered,
            lasted: seconds(flow.lasted + flow.entered * elapsed),
            early: flow.early as f64,
            early_lasted: seconds(flow.early_lasted),
            lapsed: flow.lapsed as f64,
        };
        Slots {
            count,
            free: free.max(0.0),
            ttl,
            first_expiry: (2.0 * mean - last_expiry).clamp(0.0, last_expiry),
            last_expiry,
            kept: 1.0,
            early: observed.ends(-TENTH),
            middle: observed.ends(0.0),
            late: observed.ends(TENTH),
        }
    }
}

/// What was observed of entries, in seconds.
#[derive(Debug, Clone, Copy)]
struct Observed {
    count: f64,
    ttl: f64,
    entered: f64,
    lasted: f64,
    early: f64,
    early_lasted: f64,
    lapsed: f64,
}

impl Observed {
    /// Returns how entries end, `deviations` standard deviations later than expected.
    ///
    /// Entries that end early have used a share of the time of all slots. The rest was used by entries that expire,
    /// or that began a short time ago: taken as expiring, they make the estimate begin late, and no data at all
    /// means that every entry expires.
    fn ends(&self, deviations: f64) -> Ends {
        let Self { count, ttl, entered, lasted, early, early_lasted, lapsed } = *self;
        let error = deviations / early.max(1.0).sqrt();
        let used = if lasted > 0.0 { early_lasted / lasted } else { 0.0 };
        let idle = (entered.max(count.min(1.0)) * (1.0 - used * (1.0 - error))).clamp(0.0, count);
        let idle =
            if deviations < 0.0 { idle.min(lapsed / (lapsed + early + 1.0) * count) } else { idle };
        let stayed = lapsed + idle + deviations * (lapsed + idle).sqrt() / 2.0;
        let expire =
            (stayed.max(0.0) / (stayed.max(0.0) + early).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let expire = if early == 0.0 && deviations >= 0.0 { 1.0 } else { expire };
        let purchase = match early > 0.0 {
            true => (early_lasted / early * (1.0 + error)).clamp(ttl / 1_000.0, ttl),
            false if deviations < 0.0 => ttl / 20.0,
            false => ttl,
        };
        let mean = (1.0 - expire) * purchase + expire * ttl;
        let total = count * ttl / mean;
        let expiring = if expire == 1.0 { count } else { idle.min(total) };
        let active = (entered - expiring).max(0.0);
        let before = if expire > 0.0 { active * (1.0 - expire) / expire } else { total };
        // Entries that will expire take more and more of the slots.
        let (now, steady) = (active / purchase, (total - expiring).max(0.0) / ttl);
        let rate = if deviations > 0.0 { steady.min(now) } else { (now + steady) / 2.0 };
        Ends { expiring, rate, before, total }
    }
}

impl Slots {
    /// Returns the same slots if only a part of the ends leaves a slot behind: of all ends, and of early ones.
    fn unsold(self, unsold: f64, unsold_early: f64) -> Self {
        let Ends { expiring, rate, before, total } = self.middle;
        let total = expiring + (total - expiring) * unsold_early;
        let ends = |part: f64| Ends {
            expiring: expiring * part,
            rate: rate * unsold_early * part,
            before: before * unsold_early * part,
            total: total * part,
        };
        let (early, late) = (ends(1.0 + UNSOLD_ERROR), ends(1.0 - UNSOLD_ERROR));
        Self { kept: unsold, early, middle: ends(1.0), late, ..self }
    }

    /// Returns how long it takes until `needed` entries have ended.
    fn wait(&self, needed: f64, tick: f64) -> Quantiles {
        if needed <= 0.0 {
            return Quantiles { early: 0.0, middle: 0.0, late: 0.0 };
        }
        // Only early ends are random: expiries are known.
        let Ends { expiring, total, .. } = self.middle;
        let chance = (1.0 - expiring / total.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let chance = if self.kept < 1.0 { 1.0 } else { chance };
        let deviation = TENTH * (needed * chance).sqrt();
        let waves = (needed / self.count).ceil();
        let slack = (1.0 + waves) * tick;
        let early = self.time((needed - deviation).max(0.0), &self.early) * (1.0 - MARGIN * chance);
        let middle = self.time(needed, &self.middle) + tick / 2.0;
        let late = self.time(needed + deviation, &self.late) * (1.0 + MARGIN * chance) + slack;
        let early = (early - slack).max(0.0);
        Quantiles { early: early.min(middle), middle, late: late.max(middle) }
    }

    /// Returns when the entry number `needed` from now on has ended: the entries of now end early or expire, those
    /// that follow them end early, and after the pass time the same begins again.
    fn time(&self, needed: f64, ends: &Ends) -> f64 {
        if needed <= 0.0 {
            return 0.0;
        }
        let (mut needed, mut part, mut waves) = (needed, 1.0, 0.0);
        if self.kept < 1.0 {
            while needed > ends.total * part && waves < MAX_WAVES {
                (needed, waves) = (needed - ends.total * part, waves + 1.0);
                part *= self.kept.max(0.01);
            }
        } else {
            waves = ((needed / ends.total).ceil() - 1.0).max(0.0);
            needed -= waves * ends.total;
        }
        waves * self.ttl + self.time_in_wave(needed / part, ends)
    }

    /// Returns the same for at most as many ends as there are in one pass time: first early ones, then those of
    /// entries that expire and of their successors.
    fn time_in_wave(&self, needed: f64, ends: &Ends) -> f64 {
        let Self { first_expiry: first, last_expiry: last, ttl, .. } = *self;
        let until_first = (ends.rate * first).min(ends.before).min(ends.total);
        if needed <= until_first {
            return needed / ends.rate;
        }
        let successors = (ends.total - ends.expiring).max(0.0) / ttl * (last - first);
        let until_last = (until_first + ends.expiring + successors).min(ends.total);
        let between = |from: (f64, f64), to: (f64, f64)| {
            let (counted, all) = (needed - from.1, to.1 - from.1);
            if all > 0.0 { from.0 + (to.0 - from.0) * counted / all } else { to.0 }
        };
        if needed <= until_last {
            between((first, until_first), (last, until_last))
        } else {
            between((last, until_last), (ttl.max(last), ends.total))
        }
    }
}

impl Quantiles {
    fn max(self, other: Self) -> Self {
        Self {
            early: self.early.max(other.early),
            middle: self.middle.max(other.middle),
            late: self.late.max(other.late),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry_flow::EntryCounts;
    use crate::{ItemId, ItemName, Policy};

    const SETTINGS: Settings = Settings { token_count_to_move: 10, tick_ms: 1_000 };
    const NOW: Millis = 1_700_000_000_000;

    fn item(stock: u32, policy: &str) -> Item {
        let (id, name) = (ItemId::parse("concert").unwrap(), ItemName::parse("Concert").unwrap());
        let policy: Policy = serde_json::from_str(policy).unwrap();
        Item { policy, ..Item::new(id, name, stock) }
    }

    fn facts<'a>(item: &'a Item, rate: &'a Rate, flow: Option<EntryFlow>) -> LaneFacts<'a> {
        let entered = flow.map_or(0, |flow| flow.entered);
        let (settings, lane, completed) = (&SETTINGS, Lane::STANDARD, 0);
        LaneFacts { item, settings, lane, rate, entered, flow, completed }
    }

    fn eta(facts: &LaneFacts<'_>, now: Millis, position: u64) -> Option<Eta> {
        WaitModel::new(facts, now).and_then(|model| model.eta(position))
    }

    #[test]
    fn the_quota_alone_gives_a_narrow_range_before_the_line_has_moved() {
        let (item, rate) = (item(5_000, "{}"), Rate::default());
        let eta = |position| eta(&facts(&item, &rate, None), NOW, position).unwrap();
        assert_eq!(eta(1), Eta { p10: 0, p50: 2, p90: 3 });
        assert_eq!(eta(1_000), Eta { p10: 90, p50: 101, p90: 106 });
        assert!(eta(4_999).p90 < 600);
    }

    #[test]
    fn a_line_without_quota_has_no_estimate() {
        let (item, rate) = (item(5, r#"{"tokensPerTick":0}"#), Rate::default());
        assert_eq!(WaitModel::new(&facts(&item, &rate, None), NOW), None);
    }

    /// The case that began this: one entry at a time, which lasts until it expires.
    #[test]
    fn an_entry_that_does_not_end_does_not_move_the_estimate() {
        let policy = r#"{"maxActive":1,"passTtlSeconds":600}"#;
        let (item, rate) = (item(500, policy), Rate::default());
        let counts = EntryCounts { entered: 1, admitted: 1, expired: 0, spent: 0 };
        let mut flow = EntryFlow::after(None, counts, 600_000, NOW);
        for second in 1..=590 {
            let now = NOW + second * 1_000;
            flow = EntryFlow::after(Some(flow), counts, 600_000, now);
            let eta = |position| eta(&facts(&item, &rate, Some(flow)), now, position).unwrap();
            for position in [1, 2, 5] {
                let clock = second + eta(position).p50;
                assert!(clock.abs_diff(600 * position) <= 2, "{second} s, {position}: {clock}");
                assert!(second + eta(position).p90 >= 600 * position);
            }
        }
    }

    #[test]
    fn entries_that_end_early_bring_the_estimate_forward() {
        let policy = r#"{"maxActive":10,"passTtlSeconds":600,"tokensPerTick":50}"#;
        let (item, rate) = (item(5_000, policy), Rate::default());
        // Ten slots whose entries last a minute: one ends every 6 s.
        let mut flow = None;
        let mut before = u64::MAX;
        for minutes in [0, 1, 5, 30] {
            let ended = minutes * 10;
            let counts = EntryCounts {
                entered: 10,
                admitted: 10 + ended,
                expired: 0,
                spent: ended * 60_000,
            };
            let now = NOW + minutes * 60_000;
            flow = Some(EntryFlow::after(flow, counts, 600_000, now));
            let eta = eta(&facts(&item, &rate, flow), now, 100).unwrap();
            assert!(eta.p50 <= before && eta.p10 <= eta.p50 && eta.p50 <= eta.p90, "{eta:?}");
            before = eta.p50;
        }
        assert!((560..=700).contains(&before), "100 positions, 6 s each: {before}");
    }

    #[test]
    fn a_lane_has_its_share_of_the_rate() {
        let policy = r#"{"lanes":[{"name":"members","weight":20}]}"#;
        let (item, rate) = (item(50_000, policy), Rate::default());
        let standard = facts(&item, &rate, None);
        let members = LaneFacts { lane: Lane::numbered(1).unwrap(), ..standard };
        let p50 = |facts| eta(facts, NOW, 800).unwrap().p50;
        assert_eq!((p50(&standard), p50(&members)), (101, 401));
    }

    #[test]
    fn what_is_left_of_the_stock_is_compared_with_those_ahead() {
        let (item, rate) = (item(100, "{}"), Rate::default());
        let counts = EntryCounts { entered: 20, admitted: 120, expired: 40, spent: 0 };
        let flow = Some(EntryFlow::after(None, counts, 600_000, NOW));
        let facts = LaneFacts { completed: 60, ..facts(&item, &rate, flow) };
        let model = WaitModel::new(&facts, NOW).unwrap();
        let outlook = |position| model.stock_outlook(position).unwrap();
        assert_eq!((outlook(30).left, outlook(30).ahead), (80, 29));
        assert_eq!(outlook(80).chance, StockChance::Enough);
        assert_eq!(outlook(90).chance, StockChance::Uncertain);
        assert_eq!(outlook(500).chance, StockChance::Unlikely);
        assert!(model.eta(90).is_some() && model.eta(500).is_none());
        assert_eq!((model.served_of(50), model.served_of(500)), (50, 144));
        let unlimited = Item {
            policy: Policy { admit_up_to_stock: false, ..Policy::default() },
            ..item.clone()
        };
        let model = WaitModel::new(&LaneFacts { item: &unlimited, ..facts }, NOW).unwrap();
        assert_eq!(model.stock_outlook(30), None);
        assert!(model.eta(500).is_some());
    }
}
