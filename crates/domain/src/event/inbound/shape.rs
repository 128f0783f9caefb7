//! Where serde by itself takes more or less than the schemas say. What conforms to its schema must
//! be usable and what does not must not be, or the schema is no contract.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error, IntoDeserializer, value};
use serde::{Deserialize, Deserializer};
use serde_json::Number;

use crate::ItemId;

/// The first whole number that is too large for 64 bits.
const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;

/// Only the shape on the wire: an id as most product databases have it.
pub(super) struct TextOrNumber;

#[derive(Deserialize)]
#[serde(untagged, expecting = "itemId is neither text nor a whole number")]
enum RawId {
    Text(String),
    Number(#[serde(deserialize_with = "whole")] u64),
}

pub(super) fn text_or_number<'de, D: Deserializer<'de>>(from: D) -> Result<ItemId, D::Error> {
    let text = match RawId::deserialize(from)? {
        RawId::Text(text) => text,
        RawId::Number(number) => number.to_string(),
    };
    ItemId::parse(&text).map_err(Error::custom)
}

/// A whole number, also one written as `3.0`, which to JSON Schema is an integer like any other.
pub(super) fn whole<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let number = Number::deserialize(from)?;
    let fits = whole_of(&number).and_then(|whole| T::try_from(whole).ok());
    fits.ok_or_else(|| Error::custom(format!("{number} is no whole number of the right size")))
}

fn whole_of(number: &Number) -> Option<u64> {
    number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        let is_whole = float.fract() == 0.0 && (0.0..TOO_LARGE).contains(&float);
        is_whole.then_some(float as u64)
    })
}

/// One of several words. serde would also take `{"WORD": null}`.
pub(super) fn word<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<T, D::Error> {
    let text = String::deserialize(from)?;
    T::deserialize(text.into_deserializer()).map_err(|error: value::Error| Error::custom(error))
}

impl JsonSchema for TextOrNumber {
    fn schema_name() -> Cow<'static, str> {
        "TextOrNumber".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = generator.subschema_for::<ItemId>();
        json_schema!({ "oneOf": [text, { "type": "integer", "minimum": 0, "maximum": u64::MAX }] })
    }
}
