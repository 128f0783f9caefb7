//! What an assertion must claim to prove a user.

use std::time::Duration;

use daegi_domain::{LaneName, Millis, UserId};
use daegi_runtime::config::IdentityConfig;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation};
use serde_json::{Map, Value};

use crate::IdentityError;
use crate::keys::PublicKey;

/// The claim that names the lane of a user.
pub const LANE_CLAIM: &str = "daegi_lane";

/// Maximum length of an assertion in bytes. The headers of a request may have 16 KiB together.
const MAX_ASSERTION: usize = 8 * 1024;

/// Maximum length of a key id in bytes, because unknown ones are cached.
const MAX_KEY_ID: usize = 256;

/// Tolerated difference between the clocks of the issuer and of the api.
const CLOCK_SKEW: Duration = Duration::from_secs(30);

/// A proven user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user: UserId,
    /// The lane that the issuer assigned to the user, if any.
    pub lane: Option<LaneName>,
}

/// The part of the header that is read. It is unverified.
pub(crate) struct Header {
    pub(crate) kid: Option<String>,
    algorithm: Algorithm,
}

/// The claims that every assertion must have.
#[derive(Debug)]
pub(crate) struct Expected {
    issuer: String,
    audience: String,
    user_claim: String,
}

impl Header {
    /// Reads the header of an assertion. An algorithm that this version does not know, such as `none`, is an error.
    pub(crate) fn parse(assertion: &str) -> Result<Self, IdentityError> {
        if assertion.is_empty() {
            return Err(IdentityError::Missing);
        }
        if assertion.len() > MAX_ASSERTION {
            return Err(IdentityError::Malformed);
        }
        let header =
            jsonwebtoken::decode_header(assertion).map_err(|_| IdentityError::Malformed)?;
        // RFC 7515: a recipient must refuse extensions that it does not understand, and this one understands none.
        let has_extensions = header.crit.is_some();
        if has_extensions || header.kid.as_ref().is_some_and(|kid| kid.len() > MAX_KEY_ID) {
            return Err(IdentityError::Malformed);
        }
        Ok(Self { kid: header.kid, algorithm: header.alg })
    }
}

impl From<&IdentityConfig> for Expected {
    fn from(config: &IdentityConfig) -> Self {
        Self {
            issuer: config.issuer.clone(),
            audience: config.audience.clone(),
            user_claim: config.claim.clone(),
        }
    }
}

impl Expected {
    /// Returns the user of an assertion that this key signed.
    pub(crate) fn identity(
        &self,
        assertion: &str,
        header: &Header,
        key: &PublicKey,
        now: Millis,
    ) -> Result<Identity, IdentityError> {
        if header.algorithm != key.algorithm {
            return Err(IdentityError::WrongAlgorithm);
        }
        let claims = signed_claims(assertion, key)?;
        if text(&claims, "iss") != Some(&*self.issuer) {
            return Err(IdentityError::WrongIssuer);
        }
        if !self.is_for_this_audience(&claims) {
            return Err(IdentityError::WrongAudience);
        }
        check_times(&claims, now)?;
        let user = self.user(&claims).ok_or_else(|| self.no_user())?;
        let lane = match claims.get(LANE_CLAIM) {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) if name == LaneName::STANDARD => None,
            Some(Value::String(name)) => {
                Some(LaneName::parse(name).map_err(|_| IdentityError::InvalidLane)?)
            }
            Some(_) => return Err(IdentityError::InvalidLane),
        };
        Ok(Identity { user, lane })
    }

    /// Returns whether `aud`, one text or a list, contains the expected audience.
    fn is_for_this_audience(&self, claims: &Map<String, Value>) -> bool {
        match claims.get("aud") {
            Some(Value::String(audience)) => *audience == self.audience,
            Some(Value::Array(all)) => all.iter().any(|one| *one == *self.audience),
            _ => false,
        }
    }

    /// Returns the user id. Some issuers have numbers for users.
    fn user(&self, claims: &Map<String, Value>) -> Option<UserId> {
        match claims.get(&self.user_claim)? {
            Value::String(user) => UserId::parse(user).ok(),
            Value::Number(user) => UserId::parse(&user.as_u64()?.to_string()).ok(),
            _ => None,
        }
    }

    fn no_user(&self) -> IdentityError {
        IdentityError::NoUser(self.user_claim.clone())
    }
}

fn signed_claims(assertion: &str, key: &PublicKey) -> Result<Map<String, Value>, IdentityError> {
    // The times are compared with the clock of the pod, below.
    let mut only_signature = Validation::new(key.algorithm);
    only_signature.required_spec_claims.clear();
    only_signature.validate_aud = false;
    only_signature.validate_exp = false;
    let decoded = jsonwebtoken::decode(assertion, &key.decoding, &only_signature);
    decoded.map(|decoded| decoded.claims).map_err(|error| match error.kind() {
        ErrorKind::InvalidClaimFormat(_) | ErrorKind::Json(_) => IdentityError::Malformed,
        _ => IdentityError::BadSignature,
    })
}

/// Checks `exp`, which is required, and `nbf` and `iat` if present.
fn check_times(claims: &Map<String, Value>, now: Millis) -> Result<(), IdentityError> {
    let skew = CLOCK_SKEW.as_secs_f64();
    let now = Duration::from_millis(now).as_secs_f64();
    // RFC 7519 allows fractions.
    let seconds = |name: &str| match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or(()),
    };
    match seconds("exp") {
        Ok(Some(expires)) if now < expires + skew => {}
        _ => return Err(IdentityError::Expired),
    }
    for name in ["nbf", "iat"] {
        match seconds(name) {
            Ok(Some(since)) if since > now + skew => return Err(IdentityError::NotYetValid),
            Err(()) => return Err(IdentityError::NotYetValid),
            Ok(_) => {}
        }
    }
    Ok(())
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name)?.as_str()
}
