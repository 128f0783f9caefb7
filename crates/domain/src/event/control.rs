//! The record of an item's settings in Kafka.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::control::SealedReveal;
use crate::draw::Hex;
use crate::opening::timestamp;
use crate::{
    CohortRange, Draw, Drawn, Item, ItemControl, ItemId, ItemName, Lane, LineControl, LogPosition,
    Millis, Number, Policy, Reveal, TicketKeys, rfc3339,
};

/// The body of `control.changed`: the whole current settings of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlChanged {
    /// The item.
    pub item_id: ItemId,
    /// Grows with every change of the settings; a record with a lower one is outdated.
    pub control_version: u64,
    /// When the settings changed, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub changed_at: String,
    /// The version of the last product event; 0 if none changed the item.
    pub version: u64,
    /// The position of that event in `item.changed`.
    pub position: Option<RecordPosition>,
    /// Where the counters of the item's lines stand.
    pub lines: Vec<LineRecord>,
    /// The settings; null if the item was removed.
    pub item: Option<ItemRecord>,
}

/// A position in `item.changed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordPosition {
    /// The offset in its topic partition.
    pub offset: u64,
    /// The timestamp of the record, in Unix milliseconds.
    pub at: Millis,
}

/// Where the counter of one line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineRecord {
    /// The lane: 0 is the standard one, the others are numbered as in the policy.
    #[schemars(range(max = 8))]
    pub lane: u8,
    /// Numbers below this one belong to the line before a restart.
    pub valid_from: Number,
    /// The last number issued.
    pub tail: Number,
    /// The lowest waiting number; null if none waits.
    pub first_waiting: Option<Number>,
}

/// The settings of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemRecord {
    /// The display name.
    pub item_name: ItemName,
    /// The stock when the settings changed.
    pub remain_count: u32,
    /// Whether the line is enabled.
    pub waiting_queue_enabled: bool,
    /// Whether an operator paused admission.
    pub paused: bool,
    /// The policy, with opening and lanes.
    pub policy: Policy,
    /// When the item was created, RFC 3339.
    #[serde(with = "timestamp")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub created_at: Option<Millis>,
    /// When the line opened, RFC 3339; null before that, and without an opening.
    #[serde(with = "timestamp")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub opened_at: Option<Millis>,
    /// The closing time for which the close was recorded, RFC 3339.
    #[serde(with = "timestamp")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub closed_at: Option<Millis>,
    /// The draw; null for the order `arrival`.
    pub draw: Option<DrawControl>,
}

/// A draw before or after the opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrawControl {
    /// SHA-256 of the reveal, public since the draw was planned.
    pub commitment: Hex<32>,
    /// The id of the ticket secret that sealed the reveal.
    pub key: u8,
    /// The reveal, readable with that secret only.
    pub sealed_reveal: Hex<32>,
    /// The reveal; null until the line has opened.
    pub reveal: Option<Hex<32>>,
    /// The first number of the cohort; null until the leader fixed it.
    pub cohort_first: Option<Number>,
    /// How many numbers the cohort has; null until the leader fixed it.
    pub cohort_size: Option<u64>,
    /// The Merkle root of the cohort's tokens; null until drawn.
    pub cohort_root: Option<Hex<32>>,
    /// The randomness of the beacon; null until drawn, or if there is none.
    pub beacon: Option<Hex<32>>,
    /// The seed of the order; null until drawn.
    pub seed: Option<Hex<32>>,
}

/// The settings read from a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadControl {
    /// The settings.
    pub control: ItemControl,
    /// Whether the reveal of a draw cannot be read. The settings then have no draw, and the line is paused,
    /// because it must not open in another order than the announced one.
    pub is_draw_lost: bool,
}

impl ControlChanged {
    /// Returns the record of these settings. The keys seal the reveal of a draw.
    #[must_use]
    pub fn new(control: &ItemControl, keys: &TicketKeys) -> Self {
        let changed_at = control.item.as_ref().and_then(|item| item.updated_at);
        Self {
            item_id: control.id.clone(),
            control_version: control.control_version,
            changed_at: rfc3339(changed_at.unwrap_or(control.control_version)),
            version: control.version,
            position: control
                .position
                .map(|LogPosition { offset, at }| RecordPosition { offset, at }),
            lines: control.lines.iter().map(LineRecord::new).collect(),
            item: control.item.as_ref().map(|item| ItemRecord::new(item, keys)),
        }
    }

    /// Returns the settings of this record.
    #[must_use]
    pub fn into_control(self, keys: &TicketKeys) -> ReadControl {
        let (id, mut is_draw_lost) = (self.item_id, false);
        let item = self.item.map(|record| {
            let draw = record.draw.map(|draw| draw.read(&id, keys));
            is_draw_lost = draw == Some(None);
            Item {
                enabled: record.waiting_queue_enabled,
                paused: record.paused || is_draw_lost,
                opened_at: record.opened_at,
                closed_at: record.closed_at,
                draw: draw.flatten(),
                version: self.version,
                control_version: self.control_version,
                created_at: record.created_at,
                policy: record.policy,
                ..Item::new(id.clone(), record.item_name, record.remain_count)
            }
        });
        let control = ItemControl {
            control_version: self.control_version,
            version: self.version,
            position: self.position.map(|RecordPosition { offset, at }| LogPosition { offset, at }),
            lines: self.lines.iter().filter_map(LineRecord::read).collect(),
            item,
            id,
        };
        ReadControl { control, is_draw_lost }
    }
}

impl LineRecord {
    fn new(line: &LineControl) -> Self {
        let LineControl { lane, valid_from, tail, first_waiting } = *line;
        Self { lane: lane.index() as u8, valid_from, tail, first_waiting }
    }

    fn read(&self) -> Option<LineControl> {
        let Self { lane, valid_from, tail, first_waiting } = *self;
        Some(LineControl { lane: Lane::numbered(lane.into())?, valid_from, tail, first_waiting })
    }
}

impl ItemRecord {
    fn new(item: &Item, keys: &TicketKeys) -> Self {
        Self {
            item_name: item.name.clone(),
            remain_count: item.stock,
            waiting_queue_enabled: item.enabled,
            paused: item.paused,
            policy: item.policy.clone(),
            created_at: item.created_at,
            opened_at: item.opened_at,
            closed_at: item.closed_at,
            draw: item.draw.as_ref().map(|draw| DrawControl::new(&item.id, draw, keys)),
        }
    }
}

impl DrawControl {
    fn new(item: &ItemId, draw: &Draw, keys: &TicketKeys) -> Self {
        let SealedReveal { key, commitment, sealed } = keys.seal_reveal(item, &draw.reveal);
        Self {
            commitment: Hex(commitment),
            key,
            sealed_reveal: Hex(sealed),
            reveal: draw.drawn.map(|_| Hex(draw.reveal.0)),
            cohort_first: draw.cohort.map(|cohort| cohort.first),
            cohort_size: draw.cohort.map(|cohort| cohort.size),
            cohort_root: draw.drawn.map(|drawn| Hex(drawn.root)),
            beacon: draw.drawn.and_then(|drawn| drawn.beacon).map(Hex),
            seed: draw.drawn.map(|drawn| Hex(drawn.seed)),
        }
    }

    /// Returns the draw. `None` if the reveal cannot be read.
    fn read(self, item: &ItemId, keys: &TicketKeys) -> Option<Draw> {
        let sealed = SealedReveal {
            key: self.key,
            commitment: self.commitment.0,
            sealed: self.sealed_reveal.0,
        };
        let public = self.reveal.map(|reveal| Reveal(reveal.0));
        let cohort = self.cohort_first.zip(self.cohort_size);
        let drawn = self.cohort_root.zip(self.seed);
        Some(Draw {
            reveal: public.or_else(|| keys.unseal_reveal(item, &sealed))?,
            cohort: cohort.map(|(first, size)| CohortRange { first, size }),
            drawn: drawn.map(|(root, seed)| Drawn {
                root: root.0,
                beacon: self.beacon.map(|beacon| beacon.0),
                seed: seed.0,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Opening, Order};

    fn control(draw: Draw) -> ItemControl {
        let id = ItemId::parse("concert").unwrap();
        let opening =
            Opening { opens_at: Some(1_794_600_000_123), order: Order::Draw, ..Opening::default() };
        let item = Item {
            paused: true,
            opened_at: draw.drawn.map(|_| 1_794_600_000_456),
            draw: Some(draw),
            version: 7,
            control_version: 1_794_600_000_789,
            created_at: Some(1_794_500_000_000),
            policy: Policy { max_active: Some(5), opening: Some(opening), ..Policy::default() },
            ..Item::new(id.clone(), ItemName::parse("Friday").unwrap(), 9)
        };
        let line = LineControl {
            lane: Lane::numbered(1).unwrap(),
            valid_from: Number(0),
            tail: Number(9),
            first_waiting: None,
        };
        let standard = LineControl { lane: Lane::STANDARD, first_waiting: Some(Number(3)), ..line };
        ItemControl {
            id,
            control_version: item.control_version,
            version: 7,
            position: Some(LogPosition { offset: 3, at: 4 }),
            lines: vec![standard, line],
            item: Some(item),
        }
    }

    #[test]
    fn a_record_returns_the_settings_it_was_made_of() {
        let keys = TicketKeys::generate();
        let drawn = Drawn { root: [1; 32], beacon: Some([2; 32]), seed: [3; 32] };
        let cohort = CohortRange { first: Number(3), size: 7 };
        let before = Draw { reveal: Reveal([9; 32]), cohort: None, drawn: None };
        let after = Draw { cohort: Some(cohort), drawn: Some(drawn), ..before.clone() };
        for draw in [before, after] {
            let is_drawn = draw.drawn.is_some();
            let control = control(draw);
            let json = serde_json::to_string(&ControlChanged::new(&control, &keys)).unwrap();
            assert_eq!(json.contains(&"09".repeat(32)), is_drawn, "the reveal is secret before");
            let read: ControlChanged = serde_json::from_str(&json).unwrap();
            let expected = ReadControl { control, is_draw_lost: false };
            assert_eq!(read.clone().into_control(&keys), expected);
            // The reveal of a drawn line is public, so that it needs no secret.
            let other = read.into_control(&TicketKeys::generate());
            assert_eq!(other == expected, is_drawn);
        }
    }

    #[test]
    fn a_reveal_that_cannot_be_read_leaves_a_paused_line_without_a_draw() {
        let draw = Draw { reveal: Reveal([9; 32]), cohort: None, drawn: None };
        let record = ControlChanged::new(&control(draw), &TicketKeys::generate());
        let read = record.into_control(&TicketKeys::generate());
        let item = read.control.item.unwrap();
        assert!(read.is_draw_lost && item.paused && item.draw.is_none());
    }

    #[test]
    fn a_removed_item_has_no_settings() {
        let keys = TicketKeys::generate();
        let draw = Draw { reveal: Reveal([9; 32]), cohort: None, drawn: None };
        let removed = ItemControl { item: None, ..control(draw) };
        let record = ControlChanged::new(&removed, &keys);
        assert_eq!(record.into_control(&keys).control, removed);
    }
}
