//! What a history is about: plain lines, openings, or lanes. The seed decides.

use daegi_domain::{
    Invitation, LaneName, LanePolicy, Millis, Opening, OpeningChange, Order, Policy, PolicyChange,
    Reveal,
};
use fastrand::Rng;

use super::state::START;
use crate::history::{IssuedCode, ItemSetup, LaneSetup, PlannedOpening};

/// Duration of an entry; some users complete in time.
const PASS_SECONDS: u32 = 5;

/// When lines open, in ms after the start: while leaders have faults, and after most users have joined.
const OPENS_AFTER: std::ops::Range<Millis> = 1_000..2_500;

/// Maximum difference between the clock of a leader and that of the users.
pub(super) const LEADER_SKEW: Millis = 200;

/// A kind of history.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) items: Vec<ItemSetup>,
    pub(super) users: usize,
    /// Total data losses and continuations with an older state occur. Openings are restored from Kafka, which the simulation
    /// does not have, so that histories with one have none.
    pub(super) loses_data: bool,
    /// Maximum number of turns until a user comes.
    pub(super) arrival_turns: usize,
    /// The chance that a leader dies at a step of an opening.
    pub(super) dies_at_opening: f64,
}

/// An invitation that a user has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code {
    pub(super) lane: u8,
    pub(super) id: u64,
    pub(super) uses: u32,
}

impl Scenario {
    pub(super) fn choose(rng: &mut Rng) -> Self {
        match rng.u8(0..3) {
            0 => Self::plain(rng.bool()),
            1 => Self::lanes(rng.bool()),
            _ => Self::opening(rng),
        }
    }

    fn plain(loses_data: bool) -> Self {
        let items = vec![item("arena", Some(2), 100), item("opera", None, 2)];
        Self { items, users: 6, loses_data, arrival_turns: 150, dies_at_opening: 0.0 }
    }

    fn lanes(loses_data: bool) -> Self {
        let lanes = [("members", Some(30)), ("press", Some(10)), ("vip", None)];
        let lanes = lanes.map(|(name, weight)| LaneSetup { name: name.to_owned(), weight });
        let fair = ItemSetup { lanes: lanes.to_vec(), ..item("fair", Some(3), 100) };
        let arrival_turns = 80;
        Self { items: vec![fair], users: 12, loses_data, arrival_turns, dies_at_opening: 0.0 }
    }

    /// A line that opens with a draw, also with lanes, and one that opens in order of arrival.
    pub(super) fn opening(rng: &mut Rng) -> Self {
        let mut opening = |name: &str, is_draw| {
            let opens_at = START + rng.u64(OPENS_AFTER);
            let opening = Some(PlannedOpening { opens_at, is_draw });
            ItemSetup { opening, ..item(name, Some(4), 100) }
        };
        let (premiere, matinee) = (opening("premiere", true), opening("matinee", false));
        let members = LaneSetup { name: "members".to_owned(), weight: Some(50) };
        let gala = ItemSetup { lanes: vec![members], ..opening("gala", true) };
        let items = vec![premiere, gala, matinee];
        Self { items, users: 15, loses_data: false, arrival_turns: 25, dies_at_opening: 0.2 }
    }

    /// The invitation of a user; neighbours share one with a single use.
    pub(super) fn code(&self, number: usize) -> Option<Code> {
        let (item, nth) = (number % self.items.len(), number / self.items.len());
        let lanes = self.items[item].lanes.len();
        // Half of the users have a code.
        if lanes == 0 || nth % 4 < 2 {
            return None;
        }
        let lane = u8::try_from(nth / 4 % lanes + 1).ok()?;
        Some(Code { lane, id: (nth / 4) as u64 * 10 + item as u64, uses: 1 })
    }

    /// All invitations.
    pub(super) fn codes(&self) -> Vec<IssuedCode> {
        let mut codes: Vec<_> = (0..self.users)
            .filter_map(|number| {
                let (code, item) = (self.code(number)?, &self.items[number % self.items.len()]);
                Some(code.issued(&item.item))
            })
            .collect();
        codes.dedup();
        codes
    }
}

impl Code {
    pub(super) fn text(self) -> String {
        format!("code-{}", self.id)
    }

    pub(super) fn invitation(self) -> Invitation {
        Invitation { id: self.id, uses: self.uses, expires_at: Millis::MAX }
    }

    fn issued(self, item: &str) -> IssuedCode {
        let Self { lane, uses, .. } = self;
        IssuedCode { item: item.to_owned(), code: self.text(), lane, uses }
    }
}

fn item(item: &str, max_active: Option<u64>, stock: u64) -> ItemSetup {
    ItemSetup { item: item.to_owned(), max_active, stock, ..ItemSetup::default() }
}

/// The policy of an item without its opening. None has a grace period, as in a run with processes.
pub(super) fn policy(item: &ItemSetup) -> Policy {
    let lanes = item.lanes.iter().filter_map(|lane| {
        let (name, weight) = (LaneName::parse(&lane.name).ok()?, lane.weight.unwrap_or(0));
        Some(LanePolicy { name, weight, first: lane.weight.is_none() })
    });
    Policy {
        max_active: item.max_active.and_then(|most| u32::try_from(most).ok()),
        pass_ttl_seconds: PASS_SECONDS,
        grace_seconds: 0,
        lanes: lanes.collect(),
        ..Policy::default()
    }
}

/// The change that plans the opening of an item, with the secret of its draw.
pub(super) fn planned_opening(item: &ItemSetup, reveal: Reveal) -> Option<PolicyChange> {
    let planned = item.opening.as_ref()?;
    let order = if planned.is_draw { Order::Draw } else { Order::Arrival };
    let opening = Opening { opens_at: Some(planned.opens_at), order, ..Opening::default() };
    Some(PolicyChange {
        policy: Policy { opening: Some(opening), ..policy(item) },
        opening: OpeningChange::Replaced,
        reveal: planned.is_draw.then_some(reveal),
    })
}
