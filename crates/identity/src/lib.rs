//! Signed identities: who a user is, proven by an assertion.
//!
//! An assertion is a JWT that the site's own sign-in issues for a user. The api verifies it at each join with the keys
//! that the issuer publishes, so that no client can join as another user.
//!
//! The crate guarantees:
//!
//! - **The key decides the algorithm.** The header of an assertion selects a key and nothing else: `none`, and HS256 with
//!   a public key as its secret, are refused.
//! - **A client cannot cause a flood of fetches.** However many unknown key ids clients send, the keys are fetched at most
//!   once per minimum interval, by one task, and the cache of unknown ids is bounded.
//! - **Known keys outlive an outage.** While the issuer is unreachable, assertions of known keys are accepted.
//!
//! | module | contents |
//! |---|---|
//! | `assertion` | what an assertion must claim |
//! | `keys` | the published keys (JWKS), parsed |
//! | `key_cache` | when keys are fetched again |
//! | `source` | where they are fetched from: an address or a file |

mod assertion;
mod key_cache;
mod keys;
mod source;

use daegi_domain::Millis;
use daegi_runtime::Shutdown;
use daegi_runtime::config::IdentityConfig;

pub use assertion::{Identity, LANE_CLAIM};
pub use key_cache::RefreshTimes;

use assertion::{Expected, Header};
use key_cache::KeyCache;

/// Why an assertion does not prove a user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The request has no assertion.
    #[error("joining needs a signed identity: send it in the header daegi-identity")]
    Missing,
    /// Not a JWT, too long, or with a header that this version does not support.
    #[error("the identity is not a signed JWT (RFC 7519)")]
    Malformed,
    /// The assertion names no key, and the issuer publishes several.
    #[error("the identity names no key: its header has no kid")]
    NoKeyId,
    /// The issuer publishes no such key.
    #[error("the identity is signed with a key that the issuer does not publish")]
    UnknownKey,
    /// The algorithm of the header is not the one of the key.
    #[error("the algorithm of the identity is not the one of its key")]
    WrongAlgorithm,
    /// The key did not sign this text.
    #[error("the signature of the identity is invalid")]
    BadSignature,
    /// Another issuer.
    #[error("the identity has another issuer (iss)")]
    WrongIssuer,
    /// Issued for another service.
    #[error("the identity is for another audience (aud)")]
    WrongAudience,
    /// It has no expiry, or the expiry has passed.
    #[error("the identity has expired (exp), sign in again")]
    Expired,
    /// `nbf` or `iat` is in the future.
    #[error("the identity is not valid yet (nbf, iat)")]
    NotYetValid,
    /// The claim that names the user is missing, or is not a user id.
    #[error("the identity names no user: its claim {0} is missing or is not a user id")]
    NoUser(String),
    /// `daegi_lane` is not the name of a lane.
    #[error("the claim daegi_lane of the identity is not the name of a lane")]
    InvalidLane,
    /// No key of the issuer could be fetched that could have signed it.
    #[error("the keys of the issuer of identities are not available, try again")]
    KeysUnavailable,
}

/// Verifies assertions of one issuer.
#[derive(Debug)]
pub struct IdentityVerifier {
    expected: Expected,
    keys: KeyCache,
}

impl IdentityVerifier {
    /// Starts to fetch the keys, on the shutdown's tracker.
    #[must_use]
    pub fn start(config: &IdentityConfig, times: RefreshTimes, shutdown: &Shutdown) -> Self {
        let keys = KeyCache::start(&config.jwks, times, shutdown);
        Self { expected: Expected::from(config), keys }
    }

    /// Returns the user that an assertion proves at `now`.
    ///
    /// # Errors
    /// Why it proves none. [`IdentityError::KeysUnavailable`] is transient.
    pub async fn verify(&self, assertion: &str, now: Millis) -> Result<Identity, IdentityError> {
        let header = Header::parse(assertion)?;
        let key = self.keys.find(header.kid.as_deref()).await?;
        self.expected.identity(assertion, &header, &key, now)
    }
}
