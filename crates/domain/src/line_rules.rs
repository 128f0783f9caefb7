//! The rules of a line: may it take or admit tickets now, in which state is it, who is served next.
//!
//! Each rule is one pure function of (item, settings, counts, now), which the memory store, the leader, the
//! pods and the console share. The Lua scripts of the Redis store implement the same rules; both are tested
//! against the cases in `crates/domain/cases/line_rules.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Departed, Item, Millis, Mode, Phase, Rank, Settings};

/// How long a line that lost data admits no ticket, unless configured otherwise: 45 s, longer than the
/// longest poll interval, so that all clients have reclaimed their tickets before the first admission.
pub const RECOVERY_HOLD_MS: Millis = 45_000;

/// Whether a line admits tickets, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LineState {
    /// Tickets are admitted.
    Open,
    /// An operator paused the line, or the quota is 0.
    Paused,
    /// The item has no stock; the line is kept for a restock.
    SoldOut,
    /// The item is disabled; the line is kept.
    Disabled,
    /// The store lost data. Clients that keep polling reclaim their tickets, and no ticket is admitted
    /// until all of them had time to.
    Recovering,
    /// Events of earlier admissions are not published yet and fill the outbox; no ticket is admitted
    /// until it drains. Kafka is unavailable or slow.
    Held,
    /// The lobby is not open yet; joins are refused.
    Scheduled,
    /// Users join and hold a place; no ticket is admitted before the line opens.
    Lobby,
    /// The line has closed: joins are refused, and no waiting ticket is admitted.
    Closed,
}

/// Why a user gets no ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinRefusal {
    /// There is no such item.
    NotFound,
    /// The line is switched off.
    Disabled,
    /// The item has no stock.
    SoldOut,
    /// The lobby is not open yet.
    NotOpenYet,
    /// The line has closed.
    LineClosed,
    /// The line, or the whole store, has as many waiting tickets as allowed.
    LineFull,
    /// The store has little memory left.
    StoreFull,
    /// The user left this line more often than the limit allows.
    LeftTooOften {
        /// How long until the user may join again.
        wait_ms: Millis,
    },
    /// The invitation code has no uses left.
    InvitationUsed,
}

/// The counts of a line that its rules depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occupancy {
    /// Tickets that wait or return: they are served before a new one.
    pub queued: u64,
    /// Tickets that missed their turn and may return.
    pub missed: u64,
    /// Entries, and entries that were given back while their pass is valid.
    pub used_slots: u64,
    /// Direct admissions since the leader's last round.
    pub direct_admissions: u32,
}

/// Returns how many tickets of the item's line are admitted per tick. A global quota of 0 stops every
/// line, also one with its own `tokensPerTick`. An adaptive pace may have a quota of 0 for some ticks of a
/// line that is not stopped, see [`is_quota_zero`].
pub fn quota(item: &Item, settings: &Settings) -> u32 {
    if is_quota_zero(item, settings) {
        return 0;
    }
    let limit = item.policy.tokens_per_tick;
    match item.policy.pace.adaptive() {
        None => limit.unwrap_or(settings.token_count_to_move),
        Some(pace) => {
            let quota =
                item.pace.as_ref().map_or(pace.first_quota(item.policy.mode), |state| state.quota);
            quota.min(limit.unwrap_or(u32::MAX))
        }
    }
}

/// Returns whether an operator set the quota to 0, of the line or of all lines.
pub fn is_quota_zero(item: &Item, settings: &Settings) -> bool {
    settings.token_count_to_move == 0 || item.policy.tokens_per_tick == Some(0)
}

/// Returns whether a user without a ticket may join the line, apart from limits of waiting tickets.
///
/// # Errors
/// The reason for the refusal.
pub fn may_join(item: &Item, now: Millis) -> Result<(), JoinRefusal> {
    let phase = item.phase(now);
    if !item.enabled {
        Err(JoinRefusal::Disabled)
    } else if phase == Phase::Closed {
        Err(JoinRefusal::LineClosed)
    } else if phase == Phase::Scheduled {
        Err(JoinRefusal::NotOpenYet)
    } else if item.stock == 0 {
        Err(JoinRefusal::SoldOut)
    } else {
        Ok(())
    }
}

/// Returns whether a round of the leader may admit tickets, apart from quota, capacity and outbox.
pub fn may_admit(item: &Item, now: Millis) -> bool {
    let serves = item.phase(now) == Phase::Open && item.enabled && item.stock > 0;
    serves && !item.paused && item.recovering_until <= now
}

/// Returns whether the line can admit no ticket at all, apart from capacity and outbox. Absence does not
/// count while a line is stopped.
pub fn is_stopped(item: &Item, settings: &Settings, now: Millis) -> bool {
    !may_admit(item, now) || item.hold_new_until > now || is_quota_zero(item, settings)
}

/// Returns whether a waiting ticket must not be admitted yet: ranks above the base wait until the holders
/// of lost tickets had time to reclaim them.
pub fn holds_rank(item: &Item, rank: Rank, base: Rank, now: Millis) -> bool {
    item.hold_new_until > now && rank > base
}

/// Returns how many more entries the line may have.
pub fn free_capacity(item: &Item, used_slots: u64) -> u32 {
    let used = u32::try_from(used_slots).unwrap_or(u32::MAX);
    let max_active = item.policy.max_active.unwrap_or(u32::MAX);
    let stock = if item.policy.admit_up_to_stock { item.stock } else { u32::MAX };
    max_active.min(stock).saturating_sub(used)
}

/// Returns whether a join is admitted immediately (policy `mode: auto`): no ticket is queued, and neither
/// the quota between two rounds nor the capacity is used up.
pub fn admits_directly(
    item: &Item,
    occupancy: &Occupancy,
    settings: &Settings,
    now: Millis,
) -> bool {
    item.policy.mode == Mode::Auto
        && !is_stopped(item, settings, now)
        && item.held_until <= now
        && occupancy.queued == 0
        && occupancy.direct_admissions < quota(item, settings)
        && free_capacity(item, occupancy.used_slots) > 0
}

/// Returns the state of an item's line at `now`. `front_is_above_base` says that no number at or below the
/// line's base waits: while the line holds numbers above its base, it then admits no ticket at all.
pub fn line_state(
    item: &Item,
    front_is_above_base: bool,
    settings: &Settings,
    now: Millis,
) -> LineState {
    let phase = item.phase(now);
    if !item.enabled {
        LineState::Disabled
    } else if phase == Phase::Closed {
        LineState::Closed
    } else if phase == Phase::Scheduled {
        LineState::Scheduled
    } else if item.stock == 0 {
        LineState::SoldOut
    } else if item.recovering_until > now {
        LineState::Recovering
    } else if phase == Phase::Lobby {
        LineState::Lobby
    } else if item.paused || is_quota_zero(item, settings) {
        LineState::Paused
    } else if item.hold_new_until > now && front_is_above_base {
        LineState::Recovering
    } else if item.held_until > now {
        LineState::Held
    } else {
        LineState::Open
    }
}

/// Returns the position of a waiting rank, beginning with 1: `returning` tickets are served first, then the
/// line from the frontier on, without departed ranks.
pub fn position(returning: u64, frontier: Rank, departed: &Departed, rank: Rank) -> u64 {
    let ahead = rank.0.saturating_sub(frontier.0);
    returning + ahead - departed.count_between(frontier, rank).min(ahead) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemId, ItemName, Opening, PaceState, Policy};

    /// One row of `cases/line_rules.json`. Missing fields take the values of an open line.
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Case {
        name: String,
        #[serde(default)]
        item: CaseItem,
        #[serde(default)]
        policy: Policy,
        #[serde(default = "ten")]
        global_quota: u32,
        #[serde(default)]
        counts: CaseCounts,
        expect: Expected,
    }

    /// Times are milliseconds relative to `now`; 0 is not set.
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
    struct CaseItem {
        stock: u32,
        enabled: bool,
        paused: bool,
        recovering_for: i64,
        hold_new_for: i64,
        held_for: i64,
        /// The quota of an adaptive pace; null before the first step.
        pace_quota: Option<u32>,
        /// Whether the line has an opening, and when its parts are.
        opening: Option<CaseOpening>,
    }

    #[derive(Debug, Clone, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
    #[derive(Default)]
    struct CaseOpening {
        lobby_in: i64,
        closes_in: i64,
        opened: bool,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
    struct CaseCounts {
        queued: u64,
        used_slots: u64,
        direct_admissions: u32,
        reclaimed_waits: bool,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Expected {
        join: String,
        may_admit: bool,
        admits_directly: bool,
        state: LineState,
        quota: u32,
        free_capacity: u32,
    }

    impl Default for CaseItem {
        fn default() -> Self {
            Self {
                stock: 5,
                enabled: true,
                paused: false,
                recovering_for: 0,
                hold_new_for: 0,
                held_for: 0,
                pace_quota: None,
                opening: None,
            }
        }
    }

    fn ten() -> u32 {
        10
    }

    const NOW: Millis = 1_000_000;

    fn at(relative: i64) -> Millis {
        if relative == 0 { 0 } else { NOW.saturating_add_signed(relative) }
    }

    fn item(case: &Case) -> Item {
        let opening = case.item.opening.as_ref().map(|opening| Opening {
            lobby_at: Some(at(opening.lobby_in)).filter(|at| *at > 0),
            closes_at: Some(at(opening.closes_in)).filter(|at| *at > 0),
            ..Opening::default()
        });
        let opened = case.item.opening.as_ref().is_some_and(|opening| opening.opened);
        let pace = case.item.pace_quota.map(|quota| {
            let adaptive = case.policy.pace.adaptive().unwrap();
            let mut state = PaceState::start(adaptive, case.policy.mode, NOW);
            state.quota = quota;
            state
        });
        let (id, name) = (ItemId::parse("concert").unwrap(), ItemName::parse("Concert").unwrap());
        Item {
            enabled: case.item.enabled,
            paused: case.item.paused,
            recovering_until: at(case.item.recovering_for),
            hold_new_until: at(case.item.hold_new_for),
            held_until: at(case.item.held_for),
            pace,
            opened_at: opened.then_some(NOW - 1),
            policy: Policy { opening, ..case.policy.clone() },
            ..Item::new(id, name, case.item.stock)
        }
    }

    #[test]
    fn every_case_of_the_table_holds() {
        let cases: Vec<Case> =
            serde_json::from_str(include_str!("../cases/line_rules.json")).unwrap();
        assert!(cases.len() > 10);
        for case in cases {
            let (name, item, expect) = (&case.name, item(&case), &case.expect);
            let settings = Settings { token_count_to_move: case.global_quota, tick_ms: 1000 };
            let occupancy = Occupancy {
                queued: case.counts.queued,
                missed: 0,
                used_slots: case.counts.used_slots,
                direct_admissions: case.counts.direct_admissions,
            };
            let join = match may_join(&item, NOW) {
                Ok(()) => "ok",
                Err(JoinRefusal::Disabled) => "disabled",
                Err(JoinRefusal::SoldOut) => "soldOut",
                Err(JoinRefusal::NotOpenYet) => "notOpenYet",
                Err(JoinRefusal::LineClosed) => "lineClosed",
                Err(other) => panic!("{name}: {other:?}"),
            };
            assert_eq!(join, expect.join, "{name}: join");
            assert_eq!(may_admit(&item, NOW), expect.may_admit, "{name}: mayAdmit");
            let direct = admits_directly(&item, &occupancy, &settings, NOW);
            assert_eq!(direct, expect.admits_directly, "{name}: admitsDirectly");
            let state = line_state(&item, !case.counts.reclaimed_waits, &settings, NOW);
            assert_eq!(state, expect.state, "{name}: state");
            assert_eq!(quota(&item, &settings), expect.quota, "{name}: quota");
            let free = free_capacity(&item, case.counts.used_slots);
            assert_eq!(free, expect.free_capacity, "{name}: freeCapacity");
        }
    }

    #[test]
    fn only_ranks_above_the_base_are_held() {
        let case = r#"{"name":"","item":{"holdNewFor":1},"expect":{"join":"ok","mayAdmit":true,
            "admitsDirectly":false,"state":"OPEN","quota":10,"freeCapacity":5}}"#;
        let item = item(&serde_json::from_str(case).unwrap());
        assert!(holds_rank(&item, Rank(11), Rank(10), NOW));
        assert!(!holds_rank(&item, Rank(10), Rank(10), NOW));
        assert!(!holds_rank(&item, Rank(11), Rank(10), NOW + 1));
    }

    #[test]
    fn a_position_counts_only_tickets_that_still_wait() {
        let mut departed = Departed::new(Rank(1000));
        for rank in [1002, 1005, 1010] {
            departed.insert(Rank(rank));
        }
        assert_eq!(position(0, Rank(1001), &departed, Rank(1001)), 1);
        assert_eq!(position(0, Rank(1001), &departed, Rank(1003)), 2);
        assert_eq!(position(2, Rank(1001), &departed, Rank(1011)), 2 + 10 - 3 + 1);
        departed.prune_below(Rank(1006));
        assert_eq!(departed.len(), 1);
        assert_eq!(position(0, Rank(1006), &departed, Rank(1011)), 5);
    }
}
