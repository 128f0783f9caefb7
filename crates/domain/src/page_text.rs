//! A text that an operator writes for the waiting page, in one language or in several.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{Schema, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Language;

/// A text, or one per language. In JSON a string, or an object with the tags of languages as names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PageText {
    /// The same for all languages.
    All(String),
    /// One per language; not empty.
    Each(BTreeMap<Language, String>),
}

impl PageText {
    /// Returns the text for a language. Without one for it: the English one, or else the first.
    #[must_use]
    pub fn in_language(&self, language: Language) -> &str {
        match self {
            Self::All(text) => text,
            Self::Each(texts) => texts
                .get(&language)
                .or_else(|| texts.get(&Language::English))
                .or_else(|| texts.values().next())
                .map_or("", String::as_str),
        }
    }

    /// Returns all texts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, each) = match self {
            Self::All(text) => (Some(text), None),
            Self::Each(texts) => (None, Some(texts.values())),
        };
        one.into_iter().chain(each.into_iter().flatten()).map(String::as_str)
    }

    /// Returns the languages that have a text of their own.
    pub fn languages(&self) -> impl Iterator<Item = Language> {
        let texts = match self {
            Self::All(_) => None,
            Self::Each(texts) => Some(texts.keys().copied()),
        };
        texts.into_iter().flatten()
    }
}

impl From<&str> for PageText {
    fn from(text: &str) -> Self {
        Self::All(text.to_owned())
    }
}

/// Not derived: the error of an untagged enum does not say which language is unknown.
impl<'de> Deserialize<'de> for PageText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = PageText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or an object with a text per language")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<PageText, E> {
                String::deserialize(StrDeserializer::new(text)).map(PageText::All)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PageText, A::Error> {
                let texts = BTreeMap::deserialize(MapAccessDeserializer::new(map))?;
                if texts.is_empty() {
                    return Err(A::Error::custom("a text per language has no language"));
                }
                Ok(PageText::Each(texts))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl PageText {
    /// Returns the schema of a text of one line, of at most this many characters.
    pub(crate) fn line_schema(max_chars: u32) -> Schema {
        Self::schema(max_chars, r"^[^\x00-\x1f\x7f-\x9f]*$")
    }

    /// Returns the schema of a text with line breaks.
    pub(crate) fn lines_schema(max_chars: u32) -> Schema {
        Self::schema(max_chars, r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f]*$")
    }

    fn schema(max_chars: u32, pattern: &str) -> Schema {
        let tags: Vec<&str> = Language::ALL.iter().map(|language| language.tag()).collect();
        let text = json_schema!({ "type": "string", "maxLength": max_chars, "pattern": pattern });
        json_schema!({
            "anyOf": [
                { "type": "null" },
                text,
                { "type": "object", "minProperties": 1, "propertyNames": { "enum": tags }, "additionalProperties": text },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Result<PageText, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_text_is_a_string_or_one_per_language() {
        let soon = text(r#""Soon.""#).unwrap();
        assert_eq!(soon.in_language(Language::Thai), "Soon.");
        let each = text(r#"{"ko":"곧.","en":"Soon."}"#).unwrap();
        assert_eq!(each.in_language(Language::Korean), "곧.");
        assert_eq!(each.in_language(Language::Thai), "Soon.");
        let korean = text(r#"{"ko":"곧."}"#).unwrap();
        assert_eq!(korean.in_language(Language::English), "곧.");
        for text in [soon, each, korean] {
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<PageText>(&json).unwrap(), text);
        }
    }

    #[test]
    fn other_languages_and_types_are_refused() {
        assert!(text(r#"{"de":"Bald."}"#).unwrap_err().contains("\"de\" is not a language"));
        assert!(text("{}").unwrap_err().contains("no language"));
        assert!(text(r#"{"ko":3}"#).is_err() && text("[]").is_err());
    }
}
