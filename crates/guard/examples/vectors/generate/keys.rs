//! Fixed keys, and passes signed with them.

use std::collections::BTreeMap;

use daegi_domain::PassKeys;
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rsa::pkcs1::EncodeRsaPrivateKey;
use serde_json::{Value, json};

/// The time of most steps, in seconds: 15 January 2027.
pub(super) const NOW: u64 = 1_800_000_000;
pub(super) const EXPIRES: u64 = NOW + 540;

/// Sorted, so that signatures do not depend on the map implementation.
pub(super) type Claims = BTreeMap<String, Value>;

/// A signing key, derived from one byte.
#[derive(Clone, Copy)]
pub(super) struct Signer(u8);

/// The first key of daegi.
pub(super) const FIRST: Signer = Signer(1);
/// The key that daegi rotates to.
pub(super) const SECOND: Signer = Signer(2);
/// A key that daegi does not publish.
pub(super) const UNKNOWN_SIGNER: Signer = Signer(3);

impl Signer {
    fn key(self) -> SigningKey {
        SigningKey::from_bytes(&[self.0; 32])
    }

    fn pem(self) -> String {
        self.key().to_pkcs8_pem(Default::default()).unwrap().to_string()
    }

    /// Returns the key as daegi publishes it.
    pub(super) fn published(self) -> Value {
        jwks(&[self])["keys"][0].clone()
    }

    pub(super) fn kid(self) -> String {
        self.published()["kid"].as_str().unwrap().to_owned()
    }

    pub(super) fn public_bytes(self) -> [u8; 32] {
        self.key().verifying_key().to_bytes()
    }

    /// Signs a pass with these claims.
    pub(super) fn sign(self, claims: &Claims) -> String {
        self.sign_as(&self.kid(), claims)
    }

    /// Signs a pass whose header names this key id.
    pub(super) fn sign_as(self, kid: &str, claims: &Claims) -> String {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(kid.to_owned());
        self.sign_under(&header, claims)
    }

    pub(super) fn sign_under(self, header: &Header, claims: &Claims) -> String {
        let der = self.key().to_pkcs8_der().unwrap();
        jsonwebtoken::encode(header, claims, &EncodingKey::from_ed_der(der.as_bytes())).unwrap()
    }
}

/// A key of another kind than Ed25519, with its algorithm.
#[derive(Clone, Copy)]
pub(super) struct OtherSigner(Algorithm, &'static str);

pub(super) const P256: OtherSigner =
    OtherSigner(Algorithm::ES256, include_str!("../../../../domain/testdata/p256.pem"));
pub(super) const RSA: OtherSigner =
    OtherSigner(Algorithm::RS256, include_str!("../../../../domain/testdata/rsa.pem"));

impl OtherSigner {
    fn published(self) -> Value {
        serde_json::to_value(PassKeys::from_pem(self.1).unwrap().jwks()).unwrap()["keys"][0].clone()
    }

    pub(super) fn kid(self) -> String {
        self.published()["kid"].as_str().unwrap().to_owned()
    }

    pub(super) fn sign(self, claims: &Claims) -> String {
        self.sign_as(&self.kid(), claims)
    }

    /// Signs a pass whose header names this key id.
    pub(super) fn sign_as(self, kid: &str, claims: &Claims) -> String {
        let mut header = Header::new(self.0);
        header.kid = Some(kid.to_owned());
        let key = match self.0 {
            Algorithm::ES256 => {
                let key = p256::SecretKey::from_pkcs8_pem(self.1).unwrap();
                EncodingKey::from_ec_der(key.to_pkcs8_der().unwrap().as_bytes())
            }
            _ => {
                let key = rsa::RsaPrivateKey::from_pkcs8_pem(self.1).unwrap();
                EncodingKey::from_rsa_der(key.to_pkcs1_der().unwrap().as_bytes())
            }
        };
        jsonwebtoken::encode(&header, claims, &key).unwrap()
    }
}

/// An HS256 pass, signed with a public value.
pub(super) fn hmac(secret: &[u8], claims: &Claims) -> String {
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some(FIRST.kid());
    jsonwebtoken::encode(&header, claims, &EncodingKey::from_secret(secret)).unwrap()
}

/// Encodes a part of a JWT.
pub(super) fn part(value: &Value) -> String {
    let jwt = jsonwebtoken::encode(&Header::default(), value, &EncodingKey::from_secret(b""));
    jwt.unwrap().split('.').nth(1).unwrap().to_owned()
}

/// The claims of a valid pass for the concert.
pub(super) fn claims() -> Claims {
    let jti = "01890000-0000-8000-8000-000000000007";
    let claims = json!({
        "iss": "daegi", "aud": "concert", "sub": "kim", "jti": jti,
        "num": 7, "iat": NOW - 60, "exp": EXPIRES,
    });
    serde_json::from_value(claims).unwrap()
}

/// Valid claims with one claim replaced.
pub(super) fn but(name: &str, value: Value) -> Claims {
    let mut claims = claims();
    claims.insert(name.to_owned(), value);
    claims
}

pub(super) fn without(name: &str) -> Claims {
    let mut claims = claims();
    claims.remove(name);
    claims
}

fn jwks(signers: &[Signer]) -> Value {
    let pems: String = signers.iter().map(|signer| signer.pem()).collect();
    serde_json::to_value(PassKeys::from_pem(&pems).unwrap().jwks()).unwrap()
}

/// Responses of `/.well-known/jwks.json`, by name. `unavailable` is not in the list: it responds with 503.
pub(super) fn sets() -> Value {
    let rsa = json!({ "kty": "RSA", "kid": "rsa", "n": "AQAB", "e": "AQAB", "alg": "RS256" });
    let broken = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "broken", "x": "AA" });
    json!({
        "first": jwks(&[FIRST]),
        "rotated": jwks(&[SECOND, FIRST]),
        "second": jwks(&[SECOND]),
        "algorithms": { "keys": [P256.published(), RSA.published(), FIRST.published()] },
        "mixed": { "keys": [rsa, broken, FIRST.published()] },
        "nonsense": { "hello": "world" },
    })
}
