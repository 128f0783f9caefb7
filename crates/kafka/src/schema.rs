//! The contract with other teams, written by the types themselves.

use daegi_domain::{ItemChanged, OrderClosed, TokenActivated, TokenClosed};
use serde_json::{Value, json};

use crate::Event;

/// Grows when a change would break somebody who reads or writes the events of today.
const VERSION: &str = "v1";

/// The JSON Schema of one event, as it is kept in `schemas/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSchema {
    /// The file's name.
    pub file: String,
    /// The file's text.
    pub text: String,
}

/// One schema for each event.
#[must_use]
pub fn all() -> [EventSchema; 4] {
    [of::<ItemChanged>(), of::<OrderClosed>(), of::<TokenActivated>(), of::<TokenClosed>()]
}

fn of<E: Event>() -> EventSchema {
    let mut schema = schemars::schema_for!(E);
    let file = format!("{}.{VERSION}.json", E::TOPIC);
    schema.insert("$id".into(), json!(file));
    schema.insert("title".into(), json!(E::TOPIC.event_type()));
    let text = format!("{:#}\n", Value::from(schema));
    EventSchema { file, text }
}
