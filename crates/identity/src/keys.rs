//! The published keys of an issuer (JWKS, RFC 7517).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// Maximum keys of a set. Issuers publish two or three.
const MAX_KEYS: usize = 64;

/// Minimum size of an RSA key in bits (RFC 7518).
const MIN_RSA_BITS: usize = 2_048;

/// A key that verifies signatures of exactly one algorithm.
pub(crate) struct PublicKey {
    pub(crate) algorithm: Algorithm,
    pub(crate) decoding: DecodingKey,
}

/// The keys of one issuer.
#[derive(Debug, Default)]
pub(crate) struct KeySet {
    by_id: HashMap<String, Arc<PublicKey>>,
    /// The only key of the set, which an assertion need not name.
    only: Option<Arc<PublicKey>>,
}

/// A document that is not a key set, or has no key of a supported algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeySetError {
    #[error("the document is not a JSON Web Key Set")]
    NotAKeySet,
    #[error("the key set has more than {MAX_KEYS} keys")]
    TooManyKeys,
    #[error(
        "the key set has no key that daegi supports: RSA of 2048 bits or more (RS256), P-256 (ES256), Ed25519 (EdDSA)"
    )]
    NoUsableKey,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl KeySet {
    /// Parses a document. Skips keys for other uses and of other algorithms.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, KeySetError> {
        let document: Document =
            serde_json::from_slice(json).map_err(|_| KeySetError::NotAKeySet)?;
        if document.keys.len() > MAX_KEYS {
            return Err(KeySetError::TooManyKeys);
        }
        // Keys are parsed one by one, because a set may contain keys of types that this version does not know.
        let known = document.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        let usable: Vec<_> = known.filter_map(|jwk: Jwk| PublicKey::usable(&jwk)).collect();
        let only = match &*usable {
            [] => return Err(KeySetError::NoUsableKey),
            [(_, key)] => Some(Arc::clone(key)),
            _ => None,
        };
        let by_id = usable.into_iter().filter_map(|(kid, key)| Some((kid?, key))).collect();
        Ok(Self { by_id, only })
    }

    /// Returns the key with this id, or the only key if the id is `None`.
    pub(crate) fn find(&self, kid: Option<&str>) -> Option<Arc<PublicKey>> {
        match kid {
            Some(kid) => self.by_id.get(kid).cloned(),
            None => self.only.clone(),
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.by_id.keys().map(String::as_str)
    }
}

impl PublicKey {
    /// Returns the id and the key, or `None` if it is not a key for signatures of a supported algorithm.
    fn usable(jwk: &Jwk) -> Option<(Option<String>, Arc<Self>)> {
        let algorithm = algorithm_of(&jwk.algorithm)?;
        let is_for_signatures =
            matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature));
        let named = jwk.common.key_algorithm;
        if !is_for_signatures || named.is_some_and(|named| named != named_as(algorithm)) {
            return None;
        }
        let decoding = DecodingKey::from_jwk(jwk).ok()?;
        Some((jwk.common.key_id.clone(), Arc::new(Self { algorithm, decoding })))
    }
}

/// Returns the one algorithm of a key. A key with parameters for several, as RSA has, is used with one.
fn algorithm_of(parameters: &AlgorithmParameters) -> Option<Algorithm> {
    match parameters {
        AlgorithmParameters::RSA(rsa) if modulus_bits(&rsa.n) >= MIN_RSA_BITS => {
            Some(Algorithm::RS256)
        }
        AlgorithmParameters::EllipticCurve(ec) if ec.curve == EllipticCurve::P256 => {
            Some(Algorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            Some(Algorithm::EdDSA)
        }
        _ => None,
    }
}

fn named_as(algorithm: Algorithm) -> KeyAlgorithm {
    match algorithm {
        Algorithm::RS256 => KeyAlgorithm::RS256,
        Algorithm::ES256 => KeyAlgorithm::ES256,
        _ => KeyAlgorithm::EdDSA,
    }
}

/// Returns the bits of a modulus in base64url: four characters are three bytes.
fn modulus_bits(modulus: &str) -> usize {
    modulus.trim_end_matches('=').len() * 3 / 4 * 8
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({:?})", self.algorithm)
    }
}
