//! What proves who a user is, and where browsers reach the public listener.

use std::path::PathBuf;

use axum::http::Uri;

use super::options::Options;
use super::{ConfigError, InvalidValue, value};

/// How signed identities are verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityConfig {
    /// Where the keys are.
    pub jwks: JwksLocation,
    /// The value of the claim `iss`.
    pub issuer: String,
    /// What the claim `aud` must contain.
    pub audience: String,
    /// The name of the claim with the user id.
    pub claim: String,
}

/// Where a JSON Web Key Set is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksLocation {
    /// At an address.
    Url(Uri),
    /// In a file, which may be replaced while the process runs.
    File(PathBuf),
}

/// The value of `--identity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdentityMode {
    Open,
    Jwt,
}

/// An origin, without a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PublicUrl(pub(super) String);

impl JwksLocation {
    pub(super) fn parse(text: &str) -> Result<Self, InvalidValue> {
        if !text.contains("://") {
            return value::existing_file(text).map(Self::File);
        }
        // A user and a password would appear in logs.
        let is_http = text.starts_with("https://") || text.starts_with("http://");
        if !is_http || text.contains(['@', '#']) {
            return Err(InvalidValue::InvalidJwks);
        }
        text.parse().map(Self::Url).map_err(|_| InvalidValue::InvalidJwks)
    }
}

impl PublicUrl {
    pub(super) fn parse(text: &str) -> Result<Self, InvalidValue> {
        let origin = text.trim_end_matches('/');
        let uri: Uri = origin.parse().map_err(|_| InvalidValue::InvalidPublicUrl)?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let is_origin = matches!(uri.path(), "" | "/") && uri.query().is_none();
        if is_http && is_origin && !text.contains(['@', '#']) {
            Ok(Self(origin.to_owned()))
        } else {
            Err(InvalidValue::InvalidPublicUrl)
        }
    }
}

pub(super) fn mode(text: &str) -> Result<IdentityMode, InvalidValue> {
    match text {
        "open" => Ok(IdentityMode::Open),
        "jwt" => Ok(IdentityMode::Jwt),
        _ => Err(InvalidValue::UnknownIdentityMode),
    }
}

pub(super) fn claim_text(text: &str) -> Result<String, InvalidValue> {
    if text.is_empty() { Err(InvalidValue::EmptyClaim) } else { Ok(text.to_owned()) }
}

/// Returns how identities are verified. Issuer and audience are required, because without them an assertion that the
/// same keys signed for another service would be accepted.
pub(super) fn resolve(options: &mut Options) -> Result<Option<IdentityConfig>, ConfigError> {
    let missing = |option| {
        ConfigError::invalid(option, "is missing: signed identities need it (--identity is jwt)")
    };
    if options.identity == IdentityMode::Open {
        return Ok(None);
    }
    Ok(Some(IdentityConfig {
        jwks: options.identity_jwks.take().ok_or_else(|| missing("identity-jwks"))?,
        issuer: options.identity_issuer.take().ok_or_else(|| missing("identity-issuer"))?,
        audience: options.identity_audience.take().ok_or_else(|| missing("identity-audience"))?,
        claim: std::mem::take(&mut options.identity_claim),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_at_an_address_or_in_a_file() {
        let url = "https://login.example.com/jwks?tenant=1";
        assert_eq!(JwksLocation::parse(url).unwrap(), JwksLocation::Url(url.parse().unwrap()));
        for bad in ["ftp://a/jwks", "https://", "https://u:p@a/jwks", "https://a/#jwks"] {
            assert!(matches!(JwksLocation::parse(bad), Err(InvalidValue::InvalidJwks)), "{bad}");
        }
        assert!(matches!(JwksLocation::parse("/no/file"), Err(InvalidValue::MissingFile(_))));
    }

    #[test]
    fn a_public_address_is_an_origin() {
        let parse = |text| PublicUrl::parse(text).map(|url| url.0);
        assert_eq!(parse("https://wait.example.com/").unwrap(), "https://wait.example.com");
        assert_eq!(parse("http://[::1]:8080").unwrap(), "http://[::1]:8080");
        for bad in ["", "wait.example.com", "ftp://a", "https://a/b", "https://a?b", "https://u@a"]
        {
            assert!(matches!(parse(bad), Err(InvalidValue::InvalidPublicUrl)), "{bad}");
        }
    }
}
