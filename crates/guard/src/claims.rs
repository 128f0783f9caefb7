//! Decodes and validates the claims of a pass.

use std::time::Duration;

use daegi_domain::{ItemId, Millis, PassClaims};
use jsonwebtoken::{Algorithm, Validation};
use serde::Deserialize;

use crate::entry::Entry;
use crate::jwks::PublicKey;
use crate::refusal::Refusal;

const ISSUER: &str = "daegi";

/// The claims of a well-formed pass.
#[derive(Deserialize)]
pub(crate) struct Claims {
    #[serde(flatten)]
    pass: PassClaims,
    /// daegi does not set it, but a JWT consumer must respect it (RFC 7519).
    nbf: Option<u64>,
}

impl Claims {
    /// Reads key id and algorithm from the JWT header. They are unverified.
    pub(crate) fn header(pass: &str) -> Result<(String, Algorithm), Refusal> {
        let header = jsonwebtoken::decode_header(pass).map_err(|_| Refusal::Invalid)?;
        if !matches!(header.alg, Algorithm::EdDSA | Algorithm::ES256 | Algorithm::RS256) {
            return Err(Refusal::Invalid);
        }
        Ok((header.kid.ok_or(Refusal::Invalid)?, header.alg))
    }

    /// Decodes the claims if this key signed them.
    pub(crate) fn signed(
        pass: &str,
        algorithm: Algorithm,
        key: &PublicKey,
    ) -> Result<Self, Refusal> {
        // The key fixes the algorithm: trusting the header would allow `none` and HS256 forgeries.
        if algorithm != key.algorithm {
            return Err(Refusal::Invalid);
        }
        let mut only_signature = Validation::new(key.algorithm);
        only_signature.required_spec_claims.clear();
        only_signature.validate_aud = false;
        only_signature.validate_exp = false;
        let decoded = jsonwebtoken::decode(pass, &key.decoding, &only_signature);
        decoded.map(|decoded| decoded.claims).map_err(|_| Refusal::Invalid)
    }

    /// Decodes the claims without checking the signature.
    pub(crate) fn unsigned(pass: &str) -> Result<Self, Refusal> {
        jsonwebtoken::dangerous::insecure_decode_claims(pass).map_err(|_| Refusal::Invalid)
    }

    /// Validates issuer, item and times, and returns the entry.
    pub(crate) fn entry(
        self,
        item: &ItemId,
        signature_verified: bool,
        now: Millis,
        skew: Duration,
    ) -> Result<Entry, Refusal> {
        let PassClaims { iss, aud, sub, jti, num, lane, iat, exp } = self.pass;
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
        Ok(Entry {
            user: sub,
            item: aud,
            pass_id: jti,
            number: num,
            lane,
            expires_at: exp,
            signature_verified,
        })
    }
}
