//! What a pass says, and whether it counts.

use std::time::Duration;

use daegi_domain::{ItemId, Millis, PassClaims};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;

use crate::entry::Entry;
use crate::refusal::Refusal;

const ISSUER: &str = "daegi";

/// The claims of a pass that is whole.
#[derive(Deserialize)]
pub(crate) struct Claims {
    #[serde(flatten)]
    pass: PassClaims,
    /// daegi does not write it; who reads JWTs must heed it.
    nbf: Option<u64>,
}

impl Claims {
    /// The id of the key that signed it, by its own words.
    pub(crate) fn kid(pass: &str) -> Result<String, Refusal> {
        let header = jsonwebtoken::decode_header(pass).map_err(|_| Refusal::Invalid)?;
        // The algorithm is ours to say, never the pass's.
        if header.alg != Algorithm::EdDSA {
            return Err(Refusal::Invalid);
        }
        header.kid.ok_or(Refusal::Invalid)
    }

    /// The claims, if this key signed them.
    pub(crate) fn signed(pass: &str, key: &DecodingKey) -> Result<Self, Refusal> {
        let mut only_signature = Validation::new(Algorithm::EdDSA);
        only_signature.required_spec_claims.clear();
        only_signature.validate_aud = false;
        only_signature.validate_exp = false;
        let decoded = jsonwebtoken::decode(pass, key, &only_signature);
        decoded.map(|decoded| decoded.claims).map_err(|_| Refusal::Invalid)
    }

    /// The claims, whoever signed them.
    pub(crate) fn unsigned(pass: &str) -> Result<Self, Refusal> {
        jsonwebtoken::dangerous::insecure_decode_claims(pass).map_err(|_| Refusal::Invalid)
    }

    /// The entry that they are proof of, to this item and now.
    pub(crate) fn entry(
        self,
        item: &ItemId,
        genuine: bool,
        now: Millis,
        skew: Duration,
    ) -> Result<Entry, Refusal> {
        let PassClaims { iss, aud, sub, jti, num, iat, exp } = self.pass;
        let (now, skew) = (now / 1000, skew.as_secs());
        if iss != ISSUER {
            return Err(Refusal::Invalid);
        }
        if aud != *item {
            return Err(Refusal::OtherItem);
        }
        if iat.max(self.nbf.unwrap_or(0)) > now.saturating_add(skew) {
            return Err(Refusal::NotYetValid);
        }
        if exp.saturating_add(skew) <= now {
            return Err(Refusal::Expired);
        }
        Ok(Entry { user: sub, item: aud, pass_id: jti, number: num, expires_at: exp, genuine })
    }
}
