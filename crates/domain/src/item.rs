//! Items: what users wait for.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{Draw, ItemId, Millis, OpeningChange, PaceState, Policy, Reveal};

/// An item as the store holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub id: ItemId,
    /// Its display name.
    pub name: ItemName,
    /// How many are left to sell.
    pub stock: u32,
    /// Whether its line is open.
    pub enabled: bool,
    /// Whether an operator paused admission.
    pub paused: bool,
    /// The line lost tickets and admits none before, so that their holders can reclaim them.
    pub recovering_until: Millis,
    /// No number above the line's base is admitted before, because lost numbers are served first.
    pub hold_new_until: Millis,
    /// No ticket is admitted before, because the outbox holds as many admissions as it may. The leader
    /// moves this time on with every round that finds the outbox full, and clears it otherwise.
    pub held_until: Millis,
    /// When the leader opened the line, if its policy has an opening.
    pub opened_at: Option<Millis>,
    /// The closing time for which the leader recorded that the line closed.
    pub closed_at: Option<Millis>,
    /// The draw of a line whose opening has the order `draw`.
    pub draw: Option<Draw>,
    /// The version of the last product event that changed it; 0 if none did.
    pub version: u64,
    /// Grows with every change of the item; what a change of policy is checked against.
    pub revision: u64,
    /// Grows with every change of the settings that Kafka keeps, see [`crate::ItemControl`]; 0 for an item
    /// without such a change.
    pub control_version: u64,
    /// When it was created, in Unix milliseconds; absent for items of releases without this field.
    pub created_at: Option<Millis>,
    /// When an operator or a product service changed it last; absent as above.
    pub updated_at: Option<Millis>,
    /// The state of an adaptive pace, written by the leader; `None` before its first step.
    pub pace: Option<PaceState>,
    /// The policy of its line.
    pub policy: Policy,
}

/// A change of an item. With a version it comes from a product service and is applied only if it is newer
/// than the stored item; without one it comes from an operator and is always applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemChange {
    /// Which item.
    pub id: ItemId,
    /// Its name.
    pub name: ItemName,
    /// How many are left.
    pub stock: u32,
    /// Whether its line is open.
    pub enabled: bool,
    /// The product event's version.
    pub version: Option<u64>,
    /// The new policy; `None` keeps the stored one, or the default for a new item. The opening
    /// of a new item has the order `arrival`, and that of an existing item stays as it is: a [`PolicyChange`]
    /// replaces it.
    pub policy: Option<Policy>,
}

/// A change of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyChange {
    /// The new policy.
    pub policy: Policy,
    /// How it affects the opening.
    pub opening: OpeningChange,
    /// The secret of the draw, if another opening with the order `draw` replaces the stored one.
    pub reveal: Option<Reveal>,
}

/// An update of an item by a product service, and its position in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemUpdate {
    /// The update.
    pub kind: ItemUpdateKind,
    /// Its position in the log.
    pub position: LogPosition,
}

/// What an item update does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly every update is an upsert")]
pub enum ItemUpdateKind {
    /// Creates or changes the item, if its version is newer than the stored one.
    Upsert(ItemChange),
    /// Removes the item.
    Remove {
        /// Which item.
        id: ItemId,
        /// Applied if it is newer than the stored one; without a version, the log position decides.
        version: Option<u64>,
    },
}

/// A position in a log that may be read more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    /// The number of records before it.
    pub offset: u64,
    /// When the record was written, by the writer's clock.
    pub at: Millis,
}

/// A policy with the opening that the item has.
impl From<Policy> for PolicyChange {
    fn from(policy: Policy) -> Self {
        Self { policy, opening: OpeningChange::Times, reveal: None }
    }
}

impl Item {
    /// An enabled item without history, with the default policy.
    pub fn new(id: ItemId, name: ItemName, stock: u32) -> Self {
        Self {
            id,
            name,
            stock,
            enabled: true,
            paused: false,
            recovering_until: 0,
            hold_new_until: 0,
            held_until: 0,
            opened_at: None,
            closed_at: None,
            draw: None,
            version: 0,
            revision: 1,
            control_version: 0,
            created_at: None,
            updated_at: None,
            pace: None,
            policy: Policy::default(),
        }
    }
}

impl ItemUpdate {
    /// Returns the item that it changes.
    pub fn item(&self) -> &ItemId {
        match &self.kind {
            ItemUpdateKind::Upsert(change) => &change.id,
            ItemUpdateKind::Remove { id, .. } => id,
        }
    }
}

impl LogPosition {
    /// Returns whether this record was read before `last` or is `last`. Both offset and time must say so,
    /// because offsets restart with a new topic, and the clocks of two writers may differ.
    pub fn is_not_after(self, last: Self) -> bool {
        self.offset <= last.offset && self.at <= last.at
    }
}

/// A display name: 1–200 characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ItemName(String);

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Empty or too long.
    #[error("itemName has {0} characters, allowed are 1 to 200")]
    Length(usize),
    /// A control character.
    #[error("itemName contains a control character")]
    Control,
}

impl ItemName {
    /// Parses a name.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let length = text.chars().count();
        if !(1..=200).contains(&length) {
            return Err(NameError::Length(length));
        }
        if text.chars().any(char::is_control) {
            return Err(NameError::Control);
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ItemName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<ItemName> for String {
    fn from(name: ItemName) -> Self {
        name.0
    }
}

impl JsonSchema for ItemName {
    fn schema_name() -> Cow<'static, str> {
        "ItemName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let no_control = r"^[^\u0000-\u001f\u007f-\u009f]+$";
        json_schema!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": no_control })
    }
}
