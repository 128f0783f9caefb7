//! Fixed keys, and texts signed with them. All signatures are deterministic.

use std::collections::BTreeMap;

use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use p256::SecretKey;
use rsa::RsaPrivateKey;
use rsa::pkcs1::EncodeRsaPrivateKey;
use serde_json::{Map, Value, json};

/// A key of an issuer.
#[derive(Clone, Copy)]
pub(super) struct Signer {
    pub(super) kid: &'static str,
    pub(super) algorithm: Algorithm,
    pem: &'static str,
}

pub(super) const RSA: Signer =
    Signer { kid: "rsa-1", algorithm: Algorithm::RS256, pem: include_str!("keys/rsa.pem") };
/// The key to which the issuer rotates.
pub(super) const RSA_NEXT: Signer =
    Signer { kid: "rsa-2", algorithm: Algorithm::RS256, pem: include_str!("keys/rsa-next.pem") };
/// A key of 1024 bits, which is too short.
pub(super) const RSA_SHORT: Signer = Signer {
    kid: "rsa-short",
    algorithm: Algorithm::RS256,
    pem: include_str!("keys/rsa-short.pem"),
};
pub(super) const P256: Signer =
    Signer { kid: "ec-1", algorithm: Algorithm::ES256, pem: include_str!("keys/p256.pem") };
/// A key that the issuer does not publish.
pub(super) const STRANGER: Signer = Signer {
    kid: "ec-9",
    algorithm: Algorithm::ES256,
    pem: include_str!("keys/p256-stranger.pem"),
};
pub(super) const ED25519: Signer =
    Signer { kid: "ed-1", algorithm: Algorithm::EdDSA, pem: include_str!("keys/ed25519.pem") };

impl Signer {
    fn encoding_key(self) -> EncodingKey {
        match self.algorithm {
            Algorithm::RS256 => {
                let key = RsaPrivateKey::from_pkcs8_pem(self.pem).unwrap();
                EncodingKey::from_rsa_der(key.to_pkcs1_der().unwrap().as_bytes())
            }
            Algorithm::ES256 => {
                let key = SecretKey::from_pkcs8_pem(self.pem).unwrap();
                EncodingKey::from_ec_der(key.to_pkcs8_der().unwrap().as_bytes())
            }
            _ => {
                let key = SigningKey::from_pkcs8_pem(self.pem).unwrap();
                EncodingKey::from_ed_der(key.to_pkcs8_der().unwrap().as_bytes())
            }
        }
    }

    /// Returns the public key as the issuer publishes it.
    pub(super) fn published(self) -> Value {
        let jwk = match self.algorithm {
            Algorithm::EdDSA => {
                let key = SigningKey::from_pkcs8_pem(self.pem).unwrap().verifying_key();
                let public = DecodingKey::from_ed_der(key.as_bytes());
                Jwk::from_decoding_key(&public, Some(self.algorithm)).unwrap()
            }
            _ => Jwk::from_encoding_key(&self.encoding_key(), self.algorithm).unwrap(),
        };
        let mut jwk = serde_json::to_value(jwk).unwrap();
        jwk["kid"] = self.kid.into();
        jwk["use"] = "sig".into();
        jwk
    }

    pub(super) fn header(self) -> Header {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.kid.to_owned());
        header
    }

    pub(super) fn sign(self, claims: &Map<String, Value>) -> String {
        self.sign_under(&self.header(), claims)
    }

    pub(super) fn sign_under(self, header: &Header, claims: &Map<String, Value>) -> String {
        jsonwebtoken::encode(header, &sorted_claims(claims), &self.encoding_key()).unwrap()
    }
}

/// Returns a value with the fields of its objects in the order of their names. The order in which `serde_json` keeps them
/// depends on the features that other crates of a build enable.
pub(super) fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let fields: BTreeMap<&String, Value> =
                fields.iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.into_iter().map(|(name, value)| (name.clone(), value)).collect()
        }
        other => other.clone(),
    }
}

fn sorted_claims(claims: &Map<String, Value>) -> Value {
    sorted(&Value::Object(claims.clone()))
}

/// Signs with HS256, as a forger does who hopes that the public value is taken for a secret.
pub(super) fn hmac(secret: &[u8], kid: &str, claims: &Map<String, Value>) -> String {
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some(kid.to_owned());
    let key = EncodingKey::from_secret(secret);
    jsonwebtoken::encode(&header, &sorted_claims(claims), &key).unwrap()
}

/// Encodes a part of a JWT.
pub(super) fn part(value: &Value) -> String {
    let key = EncodingKey::from_secret(b"");
    let jwt = jsonwebtoken::encode(&Header::default(), &sorted(value), &key);
    jwt.unwrap().split('.').nth(1).unwrap().to_owned()
}

/// Returns the key sets by name.
pub(super) fn sets() -> Value {
    let set = |signers: &[Signer]| -> Value {
        json!({ "keys": signers.iter().map(|signer| signer.published()).collect::<Vec<_>>() })
    };
    let mut mixed = set(&[RSA_SHORT, P256]);
    let mut encryption = RSA.published();
    encryption["use"] = "enc".into();
    let mut other_algorithm = RSA_NEXT.published();
    other_algorithm["alg"] = "PS256".into();
    let unknown = json!({ "kty": "AKP", "alg": "ML-DSA-44", "kid": "pq", "pub": "AA" });
    mixed["keys"].as_array_mut().unwrap().extend([encryption, other_algorithm, unknown]);
    json!({
        "first": set(&[RSA, P256, ED25519]),
        "rotated": set(&[RSA_NEXT, P256]),
        "single": set(&[P256]),
        "mixed": mixed,
    })
}
