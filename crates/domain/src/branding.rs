//! The branding of one item's waiting page.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The look of an item's waiting page. Missing fields take daegi's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Look")]
pub struct Branding {
    /// The name on the page; null takes the item's name.
    #[schemars(length(max = 120), extend("pattern" = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub title: Option<String>,
    /// The operator's message, which the page always shows.
    #[schemars(length(max = 500), extend("pattern" = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub message: Option<String>,
    /// The colour of buttons and highlights.
    pub accent: Option<Colour>,
    /// A small image as a `data:` URL, so that the page loads nothing from another host.
    #[schemars(length(max = 8192), extend("pattern" = r"^data:image/(png|webp|jpeg|svg\+xml);base64,[A-Za-z0-9+/=]*$"))]
    pub logo: Option<String>,
}

/// A colour as `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Colour([u8; 3]);

/// Why branding is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrandingError {
    /// Not a colour.
    #[error("page.accent must be a colour like #2f6152")]
    Colour,
    /// A text too long, or with control characters.
    #[error("page.{0} has more than {1} characters, or control characters")]
    Text(&'static str, usize),
    /// Not a `data:` URL of a supported image type, or too large.
    #[error(
        "page.logo must be a data: address of a png, webp, jpeg or svg+xml in base64, up to 8192 characters"
    )]
    Logo,
}

impl Branding {
    /// The longest logo, in characters. Pods read it with the item several times per second.
    pub const MAX_LOGO: usize = 8192;

    /// Checks that the page can show the branding.
    pub fn check(&self) -> Result<(), BrandingError> {
        check_text("title", self.title.as_deref(), 120)?;
        check_text("message", self.message.as_deref(), 500)?;
        match self.logo.as_deref() {
            Some(logo) if !is_image(logo) => Err(BrandingError::Logo),
            _ => Ok(()),
        }
    }
}

fn check_text(
    field: &'static str,
    text: Option<&str>,
    max_chars: usize,
) -> Result<(), BrandingError> {
    let fits =
        |text: &str| text.chars().count() <= max_chars && !text.chars().any(char::is_control);
    text.is_none_or(fits).then_some(()).ok_or(BrandingError::Text(field, max_chars))
}

fn is_image(logo: &str) -> bool {
    let kinds = ["png", "webp", "jpeg", "svg+xml"];
    let data = kinds.iter().find_map(|kind| {
        logo.strip_prefix("data:image/")?.strip_prefix(kind)?.strip_prefix(";base64,")
    });
    let is_base64 = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'=');
    logo.len() <= Branding::MAX_LOGO && data.is_some_and(|data| data.bytes().all(is_base64))
}

impl Colour {
    /// Parses `#rrggbb`.
    pub fn parse(text: &str) -> Result<Self, BrandingError> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
        let hex = digits.filter(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()));
        let number = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let [_, red, green, blue] = number.ok_or(BrandingError::Colour)?.to_be_bytes();
        Ok(Self([red, green, blue]))
    }

    /// Returns this colour mixed with white: 0 is the colour itself, 1 is white.
    #[must_use]
    pub fn towards_white(self, by: f64) -> Self {
        Self(self.0.map(|part| (f64::from(part) + (255.0 - f64::from(part)) * by) as u8))
    }

    /// Returns whether black text has more contrast on this colour than white text (WCAG 2).
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
    type Error = BrandingError;
    fn try_from(text: String) -> Result<Self, BrandingError> {
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
        let branding: Branding = serde_json::from_str(json).map_err(|error| error.to_string())?;
        branding.check().map_err(|error| error.to_string())
    }

    #[test]
    fn branding_loads_nothing_from_other_hosts() {
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
    fn every_colour_is_light_or_dark() {
        let is_light = |text| Colour::parse(text).unwrap().is_light();
        assert!(is_light("#ffffff") && is_light("#ffd400") && is_light("#93cfb8"));
        assert!(!is_light("#000000") && !is_light("#0a3d91") && !is_light("#2f6152"));
        let white = Colour::parse("#123456").unwrap().towards_white(1.0);
        assert_eq!(white.to_string(), "#ffffff");
    }
}
