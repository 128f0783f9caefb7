//! The widget of a third party that challenges new users (`challenge: widget` of a policy).

use std::fmt;
use std::path::PathBuf;

use axum::http::Uri;

use super::{ConfigError, InvalidValue};

/// The hosts of hCaptcha, which serves its script and its frames from several.
const HCAPTCHA_SOURCES: &str = "https://hcaptcha.com https://*.hcaptcha.com";

/// Who verifies the responses of a widget. Both speak the same protocol and have the same functions in the page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WidgetProvider {
    /// Cloudflare Turnstile.
    #[default]
    Turnstile,
    /// hCaptcha.
    Hcaptcha,
}

/// The widget of an api. Its `Debug` form hides the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WidgetConfig {
    /// Who verifies responses.
    pub provider: WidgetProvider,
    /// The public key with which a page renders the widget.
    pub site_key: String,
    /// The key with which this process verifies responses.
    pub secret: WidgetSecret,
    /// Where responses are verified.
    pub verify_url: Uri,
    /// The script that renders the widget.
    pub script_url: Uri,
    /// The hosts on which a response may have been made; empty if it does not matter.
    pub hostnames: Vec<String>,
}

/// The secret of a widget. Its `Debug` form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct WidgetSecret(String);

/// The options of a widget, as they were given.
pub(super) struct WidgetOptions {
    pub(super) provider: WidgetProvider,
    pub(super) site_key: Option<String>,
    pub(super) secret: Option<WidgetSecret>,
    pub(super) secret_file: Option<PathBuf>,
    pub(super) verify_url: Option<Uri>,
    pub(super) script_url: Option<Uri>,
    pub(super) hostnames: String,
}

impl WidgetProvider {
    /// Returns the name in options, in the problem and of the functions in the page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Turnstile => "turnstile",
            Self::Hcaptcha => "hcaptcha",
        }
    }

    fn verify_url(self) -> Uri {
        Uri::from_static(match self {
            Self::Turnstile => "https://challenges.cloudflare.com/turnstile/v0/siteverify",
            Self::Hcaptcha => "https://api.hcaptcha.com/siteverify",
        })
    }

    fn script_url(self) -> Uri {
        Uri::from_static(match self {
            Self::Turnstile => {
                "https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit"
            }
            Self::Hcaptcha => "https://js.hcaptcha.com/1/api.js?render=explicit",
        })
    }
}

impl WidgetConfig {
    /// Returns the sources of a content security policy from which a page loads the widget.
    #[must_use]
    pub fn page_sources(&self) -> String {
        match (self.provider, self.script_url.scheme_str(), self.script_url.authority()) {
            (WidgetProvider::Hcaptcha, ..) if self.script_url == self.provider.script_url() => {
                HCAPTCHA_SOURCES.to_owned()
            }
            (_, Some(scheme), Some(authority)) => format!("{scheme}://{authority}"),
            _ => String::new(),
        }
    }
}

impl WidgetSecret {
    /// Returns the secret, for requests to the provider. Never for logs.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(super) fn parse(text: &str) -> Result<Self, InvalidValue> {
        key(text).map(Self)
    }
}

impl fmt::Debug for WidgetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WidgetSecret(…)")
    }
}

impl WidgetOptions {
    /// Returns the widget; `None` if neither a site key nor a secret is given.
    pub(super) fn resolve(self) -> Result<Option<WidgetConfig>, ConfigError> {
        let secret = match (self.secret, self.secret_file) {
            (Some(_), Some(_)) => {
                let reason = "is given together with --widget-secret, give one of them";
                return Err(ConfigError::invalid("widget-secret-file", reason));
            }
            (None, Some(file)) => {
                let text = std::fs::read_to_string(file).map_err(InvalidValue::MissingFile);
                let secret = text.and_then(|text| WidgetSecret::parse(text.trim()));
                Some(secret.map_err(|error| ConfigError::invalid("widget-secret-file", error))?)
            }
            (secret, None) => secret,
        };
        let (site_key, secret) = match (self.site_key, secret) {
            (None, None) => return Ok(None),
            (Some(site_key), Some(secret)) => (site_key, secret),
            (Some(_), None) => {
                let reason = "also needs --widget-secret or --widget-secret-file";
                return Err(ConfigError::invalid("widget-site-key", reason));
            }
            (None, Some(_)) => {
                return Err(ConfigError::invalid("widget-secret", "also needs --widget-site-key"));
            }
        };
        let hostnames = self.hostnames.split(',').map(str::trim).filter(|host| !host.is_empty());
        Ok(Some(WidgetConfig {
            provider: self.provider,
            site_key,
            secret,
            verify_url: self.verify_url.unwrap_or_else(|| self.provider.verify_url()),
            script_url: self.script_url.unwrap_or_else(|| self.provider.script_url()),
            hostnames: hostnames.map(str::to_owned).collect(),
        }))
    }
}

pub(super) fn provider(text: &str) -> Result<WidgetProvider, InvalidValue> {
    let all = [WidgetProvider::Turnstile, WidgetProvider::Hcaptcha];
    all.into_iter().find(|provider| provider.name() == text).ok_or(InvalidValue::UnknownWidget)
}

/// Parses a site key or a secret.
pub(super) fn key(text: &str) -> Result<String, InvalidValue> {
    let is_printable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_printable.then(|| text.to_owned()).ok_or(InvalidValue::UnprintableToken)
}

/// Parses an address of a provider. Its origin becomes part of a content security policy.
pub(super) fn url(text: &str) -> Result<Uri, InvalidValue> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let rest = rest.ok_or(InvalidValue::InvalidWidgetUrl)?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let in_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    if host.is_empty() || !host.bytes().all(in_host) {
        return Err(InvalidValue::InvalidWidgetUrl);
    }
    text.parse().map_err(|_| InvalidValue::InvalidWidgetUrl)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_cannot_extend_a_content_security_policy() {
        assert_eq!(url("http://127.0.0.1:8080/x").unwrap().path(), "/x");
        assert!(url("https://[::1]:8443/verify?a=b").is_ok());
        for bad in ["", "a.example", "ftp://a", "https://", "https://a;script-src", "https://u@a"] {
            assert!(matches!(url(bad), Err(InvalidValue::InvalidWidgetUrl)), "{bad}");
        }
    }
}
