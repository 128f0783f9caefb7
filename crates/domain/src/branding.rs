//! The branding of one item's waiting page.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::PageText;

/// The look of an item's waiting page. Missing fields take daegi's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Look")]
pub struct Branding {
    /// The name on the page, up to 120 characters; null takes the item's name.
    #[schemars(schema_with = "title_schema")]
    pub title: Option<PageText>,
    /// The operator's message, which the page always shows, up to 500 characters. Line breaks are kept.
    #[schemars(schema_with = "message_schema")]
    pub message: Option<PageText>,
    /// The colour of buttons and highlights.
    pub accent: Option<Colour>,
    /// A small image as a `data:` URL, so that the page loads nothing from another host.
    #[schemars(length(max = 8192), extend("pattern" = r"^data:image/(png|webp|jpeg|svg\+xml);base64,[A-Za-z0-9+/=]*$"))]
    pub logo: Option<String>,
    /// Where users whose wait is over can go.
    pub links: PageLinks,
    /// A style sheet that is loaded after the one of the page. It cannot load anything itself.
    #[schemars(length(max = 4096), extend("pattern" = r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$"))]
    pub css: Option<String>,
    /// The origins whose pages may show the waiting page in a frame; empty for none.
    #[schemars(length(max = 8))]
    pub frame_ancestors: Vec<FrameAncestor>,
}

/// The links of a waiting page, by the state in which they are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PageLinks {
    /// For every state below without a link of its own, and for tickets that ended without an order.
    pub home: Option<PageLink>,
    /// After the order was placed.
    pub completed: Option<PageLink>,
    /// While the item is sold out.
    pub sold_out: Option<PageLink>,
    /// When the line is closed.
    pub closed: Option<PageLink>,
}

/// A link of a waiting page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageLink {
    /// An absolute http(s) URL, or a path that begins with one slash.
    #[schemars(length(max = 1024), extend("pattern" = r"^(https?://[^/{}?\s\x00-\x1f\x7f-\x9f]|/(?![/\\]))[^\s\x00-\x1f\x7f-\x9f]*$"))]
    pub url: String,
    /// The text of the link, up to 60 characters; null takes the page's own.
    #[serde(default)]
    #[schemars(schema_with = "label_schema")]
    pub label: Option<PageText>,
}

fn title_schema(_: &mut SchemaGenerator) -> Schema {
    PageText::line_schema(120)
}

fn message_schema(_: &mut SchemaGenerator) -> Schema {
    PageText::lines_schema(500)
}

fn label_schema(_: &mut SchemaGenerator) -> Schema {
    PageText::line_schema(60)
}

/// An origin that may show the waiting page in a frame: scheme, host and port, the host with `*.` for its subdomains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FrameAncestor(String);

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
    /// Not an http(s) address, or too long.
    #[error(
        "page.links.{0}.url must be an absolute http(s) address or a path that begins with one slash, up to 1024 characters"
    )]
    Link(&'static str),
    /// A style sheet that is too long, has control characters or loads something.
    #[error(
        "page.css must have at most 4096 characters, no control characters, no @import and url() only with data:"
    )]
    Css,
    /// Not an origin.
    #[error(
        "page.frameAncestors must be origins like https://shop.example or https://*.shop.example"
    )]
    FrameAncestor,
    /// Too many origins.
    #[error("page.frameAncestors has more than 8 origins")]
    FrameAncestors,
}

impl Branding {
    /// The longest logo, in characters. Pods read it with the item several times per second.
    pub const MAX_LOGO: usize = 8192;

    /// The longest style sheet, in characters, for the same reason.
    pub const MAX_CSS: usize = 4096;
    /// The maximum number of origins that may frame the page.
    pub const MAX_FRAME_ANCESTORS: usize = 8;

    /// Checks that the page can show the branding.
    pub fn check(&self) -> Result<(), BrandingError> {
        check_text("title", self.title.as_ref(), 120, char::is_control)?;
        check_text("message", self.message.as_ref(), 500, |c| c.is_control() && c != '\n')?;
        for (field, link) in self.links.each() {
            link.map_or(Ok(()), |link| link.check(field))?;
        }
        if self.frame_ancestors.len() > Self::MAX_FRAME_ANCESTORS {
            return Err(BrandingError::FrameAncestors);
        }
        self.css.as_deref().map_or(Ok(()), check_css)?;
        match self.logo.as_deref() {
            Some(logo) if !is_image(logo) => Err(BrandingError::Logo),
            _ => Ok(()),
        }
    }

    /// Returns whether the item has a style sheet.
    #[must_use]
    pub fn has_style(&self) -> bool {
        self.accent.is_some() || self.css.is_some()
    }
}

impl PageLinks {
    fn each(&self) -> [(&'static str, Option<&PageLink>); 4] {
        [
            ("home", self.home.as_ref()),
            ("completed", self.completed.as_ref()),
            ("soldOut", self.sold_out.as_ref()),
            ("closed", self.closed.as_ref()),
        ]
    }
}

impl PageLink {
    /// The longest URL, in characters.
    pub const MAX_URL: usize = 1024;

    fn check(&self, field: &'static str) -> Result<(), BrandingError> {
        if self.url.len() > Self::MAX_URL || !is_web_address(&self.url) {
            return Err(BrandingError::Link(field));
        }
        check_text("links.label", self.label.as_ref(), 60, char::is_control)
    }
}

fn check_text(
    field: &'static str,
    text: Option<&PageText>,
    max_chars: usize,
    is_bad: fn(char) -> bool,
) -> Result<(), BrandingError> {
    let fits = |text: &str| text.chars().count() <= max_chars && !text.chars().any(is_bad);
    let all_fit = text.is_none_or(|text| text.texts().all(fits));
    all_fit.then_some(()).ok_or(BrandingError::Text(field, max_chars))
}

/// Refuses what the content security policy of the page would block, so that the operator sees it here. The policy is
/// what protects the page: style sheets can write these words in other ways.
fn check_css(css: &str) -> Result<(), BrandingError> {
    let is_bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let lower = css.to_ascii_lowercase();
    let loads = lower.contains("@import")
        || lower
            .split("url(")
            .skip(1)
            .any(|rest| !rest.trim_start().trim_start_matches(['"', '\'']).starts_with("data:"));
    let fits = css.chars().count() <= Branding::MAX_CSS && !css.chars().any(is_bad);
    (fits && !loads).then_some(()).ok_or(BrandingError::Css)
}

/// Returns whether a text is an absolute http(s) URL, or a path of the same host.
pub(crate) fn is_web_address(url: &str) -> bool {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let absolute = host.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '{', '?']));
    // A second slash or a backslash would make it the URL of another host.
    let path = url.starts_with('/') && !url[1..].starts_with(['/', '\\']);
    (absolute || path) && !url.chars().any(|c| c.is_whitespace() || c.is_control())
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

impl FrameAncestor {
    /// Parses an origin.
    pub fn parse(text: &str) -> Result<Self, BrandingError> {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let (host, port) = match rest.map(|rest| rest.split_once(':').unwrap_or((rest, "0"))) {
            Some(parts) if text.len() <= 253 => parts,
            _ => return Err(BrandingError::FrameAncestor),
        };
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
        };
        let is_host = host.strip_prefix("*.").unwrap_or(host).split('.').all(is_label);
        if is_host && port.parse::<u16>().is_ok() {
            Ok(Self(text.to_owned()))
        } else {
            Err(BrandingError::FrameAncestor)
        }
    }

    /// Returns the origin as the content security policy contains it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for FrameAncestor {
    type Error = BrandingError;
    fn try_from(text: String) -> Result<Self, BrandingError> {
        Self::parse(&text)
    }
}

impl From<FrameAncestor> for String {
    fn from(origin: FrameAncestor) -> Self {
        origin.0
    }
}

impl JsonSchema for FrameAncestor {
    fn schema_name() -> Cow<'static, str> {
        "FrameAncestor".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": 253, "pattern": r"^https?://(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,4})?$" })
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
        assert_eq!(check(r#"{"message":{"en":"First line.\nSecond.","ko":"곧."}}"#), Ok(()));
        let links = r#"{"links":{"home":{"url":"https://shop.example/?a=1"},"completed":{"url":"/orders","label":"My orders"}}}"#;
        assert_eq!(check(links), Ok(()));
        assert_eq!(
            check(r#"{"css":"h1{color:red}\n.name{background:url(data:image/png;base64,AA)}"}"#),
            Ok(())
        );
        let origins = r#"{"frameAncestors":["https://shop.example","http://localhost:3000","https://*.shop.example"]}"#;
        assert_eq!(check(origins), Ok(()));
        assert_eq!(check(r#"{"logo":"data:image/png;base64,iVBORw0KGgo="}"#), Ok(()));
        for bad in [
            r#"{"accent":"red"}"#,
            r##"{"accent":"#12345g"}"##,
            r#"{"accent":"}body{display:none}"}"#,
            r#"{"logo":"https://elsewhere.example/logo.png"}"#,
            r#"{"logo":"data:text/html;base64,PHA+"}"#,
            r#"{"logo":"data:image/png;base64,\" onerror=\"x"}"#,
            r#"{"title":"a\nb"}"#,
            r#"{"message":"a\u0007b"}"#,
            r#"{"font":"Papyrus"}"#,
            r#"{"css":"@IMPORT 'x.css';"}"#,
            r#"{"css":"body{background:url( //elsewhere.example/x)}"}"#,
            r#"{"links":{"home":{"url":"javascript:alert(1)"}}}"#,
            r#"{"links":{"soldOut":{"url":"//elsewhere.example"}}}"#,
            r#"{"links":{"after":{"url":"/shop"}}}"#,
            r#"{"frameAncestors":["https://shop.example/path"]}"#,
            r#"{"frameAncestors":["*"]}"#,
            r#"{"frameAncestors":["https://shop.example; script-src *"]}"#,
            r#"{"frameAncestors":["https://"]}"#,
        ] {
            assert!(check(bad).is_err(), "{bad} must be refused");
        }
        let many = ["\"https://a.example\""; 9].join(",");
        assert!(check(&format!(r#"{{"frameAncestors":[{many}]}}"#)).is_err());
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
