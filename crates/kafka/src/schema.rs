//! The event contract with other services: JSON Schemas generated from the types, and validation
//! against them.
//!
//! Types and schemas state the same rules. Binaries rely on the types; tests and chaos runs, which enable
//! the feature `schema-validation`, also validate against the schemas.

#[cfg(feature = "schema-validation")]
use std::sync::OnceLock;

#[cfg(feature = "schema-validation")]
use daegi_domain::Topic;
use daegi_domain::{
    ControlChanged, ItemChanged, LineClosed, LineOpened, OrderClosed, TokenActivated, TokenClosed,
};
#[cfg(feature = "schema-validation")]
use jsonschema::Validator;
use serde::de::{DeserializeOwned, Error as _, Unexpected};
use serde_json::{Value, json};

use crate::Event;

/// Incremented by a change that breaks existing producers or consumers.
const VERSION: &str = "v1";

/// The JSON Schema of one event, as committed in `schemas/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSchema {
    /// The file name.
    pub file: String,
    /// The file content.
    pub text: String,
}

/// Returns one schema per event.
#[must_use]
pub fn all() -> [EventSchema; 7] {
    [
        for_event::<ItemChanged>(),
        for_event::<OrderClosed>(),
        for_event::<TokenActivated>(),
        for_event::<TokenClosed>(),
        for_event::<LineOpened>(),
        for_event::<LineClosed>(),
        for_event::<ControlChanged>(),
    ]
}

/// Decodes an inbound event and ignores unknown fields.
///
/// # Errors
/// If the body does not fit the event.
pub fn decode<E: Event + DeserializeOwned>(body: &[u8]) -> serde_json::Result<E> {
    // serde also accepts an array of values for a struct, which the schema does not allow.
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(serde_json::Error::invalid_type(Unexpected::Seq, &"an object"));
    }
    serde_json::from_slice(body)
}

/// Validates a body against the schema of its event.
///
/// # Errors
/// All violations of the schema.
#[cfg(feature = "schema-validation")]
pub fn validate<E: Event>(body: &[u8]) -> Result<(), String> {
    let body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let errors = validator::<E>()?.iter_errors(&body).map(|error| error.to_string());
    let errors: Vec<_> = errors.collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// Accepts every body: the validator is not linked without the feature `schema-validation`.
///
/// # Errors
/// None.
#[cfg(not(feature = "schema-validation"))]
pub fn validate<E: Event>(_: &[u8]) -> Result<(), String> {
    Ok(())
}

/// Compiles the schema once per event. Formats such as `date-time` are validated for outbound
/// events only, because nothing depends on them in inbound ones.
#[cfg(feature = "schema-validation")]
fn validator<E: Event>() -> Result<&'static Validator, String> {
    static COMPILED: [OnceLock<Result<Validator, String>>; Topic::ALL.len()] =
        [const { OnceLock::new() }; Topic::ALL.len()];
    let compiled = COMPILED[E::TOPIC as usize].get_or_init(|| {
        let options = jsonschema::options().should_validate_formats(!is_inbound(E::TOPIC));
        options.build(&value::<E>()).map_err(|error| error.to_string())
    });
    compiled.as_ref().map_err(String::clone)
}

#[cfg(feature = "schema-validation")]
fn is_inbound(topic: Topic) -> bool {
    Topic::INBOUND.contains(&topic)
}

fn for_event<E: Event>() -> EventSchema {
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
