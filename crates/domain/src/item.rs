//! What people wait for.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{ItemId, Millis, Policy};

/// A waiting item as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub id: ItemId,
    /// Its name, for people.
    pub name: ItemName,
    /// How many are left to sell.
    pub stock: u32,
    /// Whether its line is open at all.
    pub enabled: bool,
    /// Whether an operator paused admission.
    pub paused: bool,
    /// The line lost people and waits for them until then: nobody is let in before.
    pub recovering_until: Millis,
    /// No number above the line's base is admitted before: numbers the line lost come first.
    pub behind_until: Millis,
    /// No ticket is admitted before, because the outbox holds as many admissions as it may. The leader
    /// moves this time on with every round that finds the outbox full, and clears it otherwise.
    pub held_until: Millis,
    /// The version of the last product event that changed it; 0 if none did.
    pub version: u64,
    /// Grows with every change of the item; what a change of policy is checked against.
    pub revision: u64,
    /// When it was created, in Unix milliseconds; absent for items of releases without this field.
    pub created_at: Option<Millis>,
    /// When an operator or a product service changed it last; absent as above.
    pub updated_at: Option<Millis>,
    /// The rules of its line.
    pub policy: Policy,
}

/// A change of an item. With a version it comes from the product service and counts only if it
/// is newer than what is stored; without one it comes from an operator and always counts.
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
    /// New rules; none keeps the stored ones (or takes the defaults).
    pub policy: Option<Policy>,
}

/// What a product service said about an item, and where in its log it said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemNews {
    /// What it said.
    pub said: Said,
    /// Where.
    pub read: LogPosition,
}

/// What a product service can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The item is this now. Counts if its version is newer than the stored one.
    Changed(ItemChange),
    /// Nobody waits for the item any more.
    Gone {
        /// Which item.
        id: ItemId,
        /// Counts if it is newer than the stored one; where there is none, the position decides.
        version: Option<u64>,
    },
}

/// A place in a log that is read more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    /// How many records came before it.
    pub offset: u64,
    /// When it was written, by the writer's clock.
    pub at: Millis,
}

impl ItemNews {
    /// The item it is about.
    pub fn item(&self) -> &ItemId {
        match &self.said {
            Said::Changed(change) => &change.id,
            Said::Gone { id, .. } => id,
        }
    }
}

impl LogPosition {
    /// Whether this was read already when `last` was. Both must say so: offsets begin anew with a
    /// new topic, and clocks of two writers may differ.
    pub fn is_repeat_of(self, last: Self) -> bool {
        self.offset <= last.offset && self.at <= last.at
    }
}

/// A name for people: 1–200 characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ItemName(String);

/// Why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Empty or too long.
    #[error("itemName has {0} characters, allowed are 1 to 200")]
    Length(usize),
    /// A character that has no place in a name.
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

    /// The name's text.
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
