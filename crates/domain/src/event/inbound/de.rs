//! Deserializers for fields where serde accepts more or less than the schema. A message must be accepted if
//! and only if it conforms to its schema.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error, IntoDeserializer, Unexpected, Visitor, value};
use serde::{Deserialize, Deserializer};
use serde_json::Number;

use crate::ItemId;

/// The first integer that is too large for 64 bits.
const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;

/// The schema of an id: text or an integer, as product databases have them.
pub(super) struct TextOrNumber;

/// Reads an id without a copy, which an untagged enum would need.
struct ItemIdVisitor;

impl Visitor<'_> for ItemIdVisitor {
    type Value = ItemId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a whole number as itemId")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ItemId, E> {
        ItemId::parse(text).map_err(Error::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<ItemId, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<ItemId, E> {
        match whole_float(number) {
            Some(whole) => self.visit_u64(whole),
            None => Err(Error::invalid_value(Unexpected::Float(number), &self)),
        }
    }
}

pub(super) fn string_or_integer_id<'de, D: Deserializer<'de>>(from: D) -> Result<ItemId, D::Error> {
    from.deserialize_any(ItemIdVisitor)
}

/// Reads an integer, also one written as `3.0`, which is an integer in JSON Schema.
pub(super) fn integer<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let number = Number::deserialize(from)?;
    let fits = whole_of(&number).and_then(|whole| T::try_from(whole).ok());
    fits.ok_or_else(|| Error::custom(format!("{number} is no whole number of the right size")))
}

fn whole_of(number: &Number) -> Option<u64> {
    number.as_u64().or_else(|| whole_float(number.as_f64()?))
}

fn whole_float(float: f64) -> Option<u64> {
    let is_whole = float.fract() == 0.0 && (0.0..TOO_LARGE).contains(&float);
    is_whole.then_some(float as u64)
}

/// Reads an enum from a string. serde would also accept `{"VARIANT": null}`.
pub(super) fn enum_string<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<T, D::Error> {
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
