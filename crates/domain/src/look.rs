//! How the waiting page of one item looks.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What an item's waiting page shows of its own. Everything left out is ours.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Look {
    /// The name on the page; the item's own where there is none.
    pub title: Option<String>,
    /// The operator's message. The page shows it the whole time.
    pub message: Option<String>,
    /// The colour of what stands out.
    pub accent: Option<Colour>,
    /// A small picture as a `data:` address, so that no other host is asked for it.
    pub logo: Option<String>,
}

/// A colour as `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Colour([u8; 3]);

/// Why a look cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookError {
    /// No colour.
    #[error("page.accent must be a colour like #2f6152")]
    Colour,
    /// A text too long, or with control characters.
    #[error("page.{0} has more than {1} characters, or control characters")]
    Text(&'static str, usize),
    /// A picture from elsewhere, of another kind, or too large.
    #[error(
        "page.logo must be a data: address of a png, webp, jpeg or svg+xml in base64, up to 8192 characters"
    )]
    Logo,
}

impl Look {
    /// The longest logo. It travels with the item to every pod, several times per second.
    pub const MAX_LOGO: usize = 8192;

    /// Refuses what a page could not or should not show.
    pub fn check(&self) -> Result<(), LookError> {
        text("title", self.title.as_deref(), 120)?;
        text("message", self.message.as_deref(), 500)?;
        match self.logo.as_deref() {
            Some(logo) if !is_picture(logo) => Err(LookError::Logo),
            _ => Ok(()),
        }
    }
}

fn text(field: &'static str, text: Option<&str>, most: usize) -> Result<(), LookError> {
    let fits = |text: &str| text.chars().count() <= most && !text.chars().any(char::is_control);
    text.is_none_or(fits).then_some(()).ok_or(LookError::Text(field, most))
}

fn is_picture(logo: &str) -> bool {
    let kinds = ["png", "webp", "jpeg", "svg+xml"];
    let data = kinds.iter().find_map(|kind| {
        logo.strip_prefix("data:image/")?.strip_prefix(kind)?.strip_prefix(";base64,")
    });
    let is_base64 = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'=');
    logo.len() <= Look::MAX_LOGO && data.is_some_and(|data| data.bytes().all(is_base64))
}

impl Colour {
    /// Parses `#rrggbb`.
    pub fn parse(text: &str) -> Result<Self, LookError> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
        let hex = digits.filter(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()));
        let number = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let [_, red, green, blue] = number.ok_or(LookError::Colour)?.to_be_bytes();
        Ok(Self([red, green, blue]))
    }

    /// This colour, so far on its way to white: 0 is itself, 1 is white.
    #[must_use]
    pub fn towards_white(self, by: f64) -> Self {
        Self(self.0.map(|part| (f64::from(part) + (255.0 - f64::from(part)) * by) as u8))
    }

    /// Whether black can be read on it better than white, by the contrast of WCAG 2.
    pub fn is_light(self) -> bool {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = self.0.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl TryFrom<String> for Colour {
    type Error = LookError;
    fn try_from(text: String) -> Result<Self, LookError> {
        Self::parse(&text)
    }
}

impl From<Colour> for String {
    fn from(colour: Colour) -> Self {
        colour.to_string()
    }
}

impl JsonSchema for Colour {
    fn schema_name() -> Cow<'static, str> {
        "Colour".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^#[0-9A-Fa-f]{6}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str) -> Result<(), String> {
        let look: Look = serde_json::from_str(json).map_err(|error| error.to_string())?;
        look.check().map_err(|error| error.to_string())
    }

    #[test]
    fn a_look_brings_nothing_from_elsewhere() {
        assert_eq!(check(r##"{"accent":"#0A3d91","title":"Friday","message":"Soon."}"##), Ok(()));
        assert_eq!(check(r#"{"logo":"data:image/png;base64,iVBORw0KGgo="}"#), Ok(()));
        for bad in [
            r#"{"accent":"red"}"#,
            r##"{"accent":"#12345g"}"##,
            r#"{"accent":"}body{display:none}"}"#,
            r#"{"logo":"https://elsewhere.example/logo.png"}"#,
            r#"{"logo":"data:text/html;base64,PHA+"}"#,
            r#"{"logo":"data:image/png;base64,\" onerror=\"x"}"#,
            r#"{"title":"a\nb"}"#,
            r#"{"font":"Papyrus"}"#,
        ] {
            assert!(check(bad).is_err(), "{bad} must be refused");
        }
        let long = format!(r#"{{"logo":"data:image/png;base64,{}"}}"#, "A".repeat(8192));
        assert!(check(&long).is_err());
    }

    #[test]
    fn black_or_white_can_be_read_on_every_colour() {
        let is_light = |text| Colour::parse(text).unwrap().is_light();
        assert!(is_light("#ffffff") && is_light("#ffd400") && is_light("#93cfb8"));
        assert!(!is_light("#000000") && !is_light("#0a3d91") && !is_light("#2f6152"));
        let white = Colour::parse("#123456").unwrap().towards_white(1.0);
        assert_eq!(white.to_string(), "#ffffff");
    }
}
