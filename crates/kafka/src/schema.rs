//! The contract with other teams, written by the types themselves, and whether it is kept.
//!
//! Types and schemas say the same twice, so nobody pays for both: release builds rely on the
//! types, tests and debug builds also ask the schemas.

use std::sync::OnceLock;

use daegi_domain::{ItemChanged, OrderClosed, TokenActivated, TokenClosed, Topic};
use jsonschema::Validator;
use serde::de::{DeserializeOwned, Error as _, Unexpected};
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

/// Reads an event that came in. Fields that we do not know are none of our business.
///
/// # Errors
/// What is wrong with it.
pub fn read<E: Event + DeserializeOwned>(body: &[u8]) -> serde_json::Result<E> {
    // serde takes the fields of a struct also from an array, without their names.
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(serde_json::Error::invalid_type(Unexpected::Seq, &"an object"));
    }
    serde_json::from_slice(body)
}

/// Whether a body conforms to the schema of its event.
///
/// # Errors
/// What the schema says against it.
pub fn accepts<E: Event>(body: &[u8]) -> Result<(), String> {
    let body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let errors = validator::<E>()?.iter_errors(&body).map(|error| error.to_string());
    let errors: Vec<_> = errors.collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// Compiled once per event. Formats such as `date-time` are a promise of what we send; in what we
/// are sent nothing depends on them.
fn validator<E: Event>() -> Result<&'static Validator, String> {
    static COMPILED: [OnceLock<Result<Validator, String>>; 4] = [const { OnceLock::new() }; 4];
    let compiled = COMPILED[E::TOPIC as usize].get_or_init(|| {
        let options = jsonschema::options().should_validate_formats(!is_inbound(E::TOPIC));
        options.build(&value::<E>()).map_err(|error| error.to_string())
    });
    compiled.as_ref().map_err(String::clone)
}

fn is_inbound(topic: Topic) -> bool {
    Topic::IN.contains(&topic)
}

fn of<E: Event>() -> EventSchema {
    EventSchema { file: file::<E>(), text: format!("{:#}\n", value::<E>()) }
}

fn value<E: Event>() -> Value {
    let mut schema = schemars::schema_for!(E);
    schema.insert("$id".into(), json!(file::<E>()));
    schema.insert("title".into(), json!(E::TOPIC.event_type()));
    schema.into()
}

fn file<E: Event>() -> String {
    format!("{}.{VERSION}.json", E::TOPIC)
}
