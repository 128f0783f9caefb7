//! The pass: a short-lived JWT of an entry, which order services verify offline with the published keys. It is signed
//! EdDSA; ES256 or RS256 with a key of that kind, for gateways that verify nothing else.

use std::fmt;

use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use jsonwebtoken::jwk::{Jwk, KeyOperations, PublicKeyUse, ThumbprintHash};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use p256::SecretKey;
use rsa::RsaPrivateKey;
use rsa::pkcs1::EncodeRsaPrivateKey;
use rsa::traits::PublicKeyParts;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{ItemId, KeyError, LaneName, Millis, Number, Ticket, TicketKeys, UserId};

const ISSUER: &str = "daegi";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// Minimum size of an RSA key in bits (RFC 7518).
const MIN_RSA_BITS: usize = 2_048;

/// The keys of passes: the first signs, all are published.
#[derive(Clone)]
pub struct PassKeys {
    signing: EncodingKey,
    header: Header,
    published: Vec<PublishedKey>,
}

#[derive(Clone)]
struct PublishedKey {
    kid: String,
    /// The only algorithm of this key.
    algorithm: Algorithm,
    jwk: Jwk,
    decoding: DecodingKey,
}

/// The claims of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassClaims {
    /// Always `daegi`.
    pub iss: String,
    /// The item.
    pub aud: ItemId,
    /// The user.
    pub sub: UserId,
    /// The UUID of the token.
    pub jti: Uuid,
    /// The ticket's number, unique in its lane.
    pub num: Number,
    /// The name of the ticket's lane; absent for the standard lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// When the ticket was admitted, in Unix seconds.
    pub iat: u64,
    /// When the entry expires, in Unix seconds.
    pub exp: u64,
}

/// The published keys (RFC 7517).
#[derive(Debug, Clone, Serialize)]
pub struct Jwks {
    keys: Vec<Jwk>,
}

/// Why a pass is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PassError {
    /// Malformed, forged, or signed by an unknown key.
    #[error("the pass is malformed or was not issued here")]
    Invalid,
    /// Valid, but for another item.
    #[error("the pass belongs to another item")]
    WrongItem,
    /// Valid, but expired.
    #[error("the pass has expired")]
    Expired,
}

impl PassKeys {
    /// Generates a random key.
    pub fn generate() -> Self {
        let key = PrivateKey::Ed25519(SigningKey::from_bytes(&random_bytes()));
        let published = PublishedKey::from_private_key(&key);
        #[expect(clippy::expect_used, reason = "a key made here always encodes")]
        let (signing, published) = published.expect("a generated key");
        Self::new(signing, vec![published])
    }

    /// Reads one or more private keys (PKCS#8 PEM, one after the other), each Ed25519, P-256 or RSA with 2048 bits or
    /// more: the first signs, the others stay published until the passes they signed have expired.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let mut signing = None;
        let mut published = Vec::new();
        for (index, block) in pem.split_inclusive(PEM_END).enumerate() {
            if block.trim().is_empty() {
                continue;
            }
            let key = PrivateKey::from_pem(block.trim())
                .and_then(|key| PublishedKey::from_private_key(&key))
                .ok_or(KeyError::InvalidPem(index + 1))?;
            signing.get_or_insert(key.0);
            published.push(key.1);
        }
        Ok(Self::new(signing.ok_or(KeyError::Empty)?, published))
    }

    fn new(signing: EncodingKey, published: Vec<PublishedKey>) -> Self {
        let first = published.first();
        let mut header = Header::new(first.map_or(Algorithm::EdDSA, |key| key.algorithm));
        header.kid = first.map(|key| key.kid.clone());
        Self { signing, header, published }
    }

    /// Returns the pass of an entry whose ticket is of the lane with this name. The same entry always has the same
    /// pass.
    pub fn pass(
        &self,
        (ticket, lane): (&Ticket, Option<&LaneName>),
        jti: Uuid,
        entered: Millis,
        expires: Millis,
    ) -> String {
        let claims = PassClaims {
            iss: ISSUER.to_owned(),
            aud: ticket.item.clone(),
            sub: ticket.user.clone(),
            jti,
            num: ticket.number,
            lane: lane.cloned(),
            iat: entered / 1000,
            exp: expires / 1000,
        };
        #[expect(clippy::expect_used, reason = "the key was checked when it was read")]
        jsonwebtoken::encode(&self.header, &claims, &self.signing).expect("a checked key signs")
    }

    /// Verifies a pass for `item` at `now`.
    pub fn verify(&self, item: &ItemId, pass: &str, now: Millis) -> Result<PassClaims, PassError> {
        let header = jsonwebtoken::decode_header(pass).map_err(|_| PassError::Invalid)?;
        let kid = header.kid.ok_or(PassError::Invalid)?;
        let key = self.published.iter().find(|key| key.kid == kid).ok_or(PassError::Invalid)?;
        let validation = validation(key.algorithm);
        let claims = jsonwebtoken::decode::<PassClaims>(pass, &key.decoding, &validation)
            .map_err(|_| PassError::Invalid)?
            .claims;
        if claims.aud != *item {
            return Err(PassError::WrongItem);
        }
        if claims.exp <= now / 1000 {
            return Err(PassError::Expired);
        }
        Ok(claims)
    }

    /// Returns the body of `/.well-known/jwks.json`.
    pub fn jwks(&self) -> Jwks {
        Jwks { keys: self.published.iter().map(|key| key.jwk.clone()).collect() }
    }
}

impl PassClaims {
    /// Returns the ticket of the entry. Its lane is that of the token's UUID, because the lanes of the policy may
    /// have another order now.
    pub fn ticket(&self) -> Ticket {
        let (item, user, number) = (self.aud.clone(), self.sub.clone(), self.num);
        Ticket { item, user, number, lane: TicketKeys::lane(self.jti) }
    }
}

/// A private key of a supported kind.
enum PrivateKey {
    Ed25519(SigningKey),
    P256(SecretKey),
    Rsa(Box<RsaPrivateKey>),
}

impl PrivateKey {
    /// Reads PKCS#8 PEM. Returns `None` for other kinds of keys, and for RSA keys that are too short.
    fn from_pem(pem: &str) -> Option<Self> {
        if let Ok(key) = SigningKey::from_pkcs8_pem(pem) {
            return Some(Self::Ed25519(key));
        }
        if let Ok(key) = SecretKey::from_pkcs8_pem(pem) {
            return Some(Self::P256(key));
        }
        let key = RsaPrivateKey::from_pkcs8_pem(pem).ok()?;
        (key.n().bits() >= MIN_RSA_BITS).then(|| Self::Rsa(Box::new(key)))
    }

    fn encoding_key(&self) -> Option<(EncodingKey, Algorithm)> {
        Some(match self {
            Self::Ed25519(key) => {
                (EncodingKey::from_ed_der(key.to_pkcs8_der().ok()?.as_bytes()), Algorithm::EdDSA)
            }
            Self::P256(key) => {
                (EncodingKey::from_ec_der(key.to_pkcs8_der().ok()?.as_bytes()), Algorithm::ES256)
            }
            Self::Rsa(key) => {
                (EncodingKey::from_rsa_der(key.to_pkcs1_der().ok()?.as_bytes()), Algorithm::RS256)
            }
        })
    }
}

impl PublishedKey {
    fn from_private_key(key: &PrivateKey) -> Option<(EncodingKey, Self)> {
        let (signing, algorithm) = key.encoding_key()?;
        let mut jwk = match key {
            // The library reads no public key from PKCS#8 of version 2, which contains it.
            PrivateKey::Ed25519(key) => {
                let public = DecodingKey::from_ed_der(key.verifying_key().as_bytes());
                Jwk::from_decoding_key(&public, Some(algorithm)).ok()?
            }
            PrivateKey::P256(_) | PrivateKey::Rsa(_) => {
                Jwk::from_encoding_key(&signing, algorithm).ok()?
            }
        };
        let decoding = DecodingKey::from_jwk(&jwk).ok()?;
        let kid = jwk.thumbprint(ThumbprintHash::SHA256).ok()?;
        jwk.common.key_id = Some(kid.clone());
        jwk.common.public_key_use = Some(PublicKeyUse::Signature);
        jwk.common.key_operations = Some(vec![KeyOperations::Verify]);
        Some((signing, Self { kid, algorithm, jwk, decoding }))
    }
}

/// Checks the signature, with the algorithm of the key, and the issuer. The caller checks audience and expiry, because they need its item and clock.
fn validation(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.set_issuer(&[ISSUER]);
    validation.validate_aud = false;
    validation.validate_exp = false;
    validation
}

pub(crate) fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    #[expect(clippy::expect_used, reason = "without randomness no secret can be made")]
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

impl fmt::Debug for PassKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kids: Vec<&str> = self.published.iter().map(|key| key.kid.as_str()).collect();
        write!(f, "PassKeys(kids {kids:?}, private keys hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lane;

    const PEM: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
        -----END PRIVATE KEY-----\n";

    fn ticket() -> Ticket {
        let (item, user) = (ItemId::parse("concert").unwrap(), UserId::parse("kim").unwrap());
        Ticket::new(item, user, Number(77))
    }

    #[test]
    fn a_pass_names_a_lane_other_than_the_standard_one() {
        let (keys, tickets) = (PassKeys::generate(), TicketKeys::generate());
        let members = LaneName::parse("members").unwrap();
        for (index, name) in [(0, None), (3, Some(&members))] {
            let ticket = Ticket { lane: Lane::numbered(index).unwrap(), ..ticket() };
            let pass = keys.pass((&ticket, name), tickets.uuid(&ticket), 0, 20_000);
            let claims = keys.verify(&ticket.item, &pass, 0).unwrap();
            assert_eq!((claims.lane.as_ref(), claims.ticket()), (name, ticket));
            let json = serde_json::to_value(&claims).unwrap();
            assert_eq!(json.as_object().unwrap().contains_key("lane"), name.is_some());
        }
    }

    #[test]
    fn a_pass_verifies_until_it_expires_and_only_for_its_item() {
        let keys = PassKeys::generate();
        let (ticket, jti) = (ticket(), Uuid::from_u128(5));
        let pass = keys.pass((&ticket, None), jti, 10_000, 20_000);
        assert_eq!(
            pass,
            keys.pass((&ticket, None), jti, 10_000, 20_000),
            "the same entry, the same pass"
        );
        let claims = keys.verify(&ticket.item, &pass, 19_999).unwrap();
        assert_eq!((claims.sub, claims.num, claims.jti), (ticket.user, ticket.number, jti));
        assert_eq!(keys.verify(&ticket.item, &pass, 20_000), Err(PassError::Expired));
        let other = ItemId::parse("other").unwrap();
        assert_eq!(keys.verify(&other, &pass, 15_000), Err(PassError::WrongItem));
        let stranger = PassKeys::generate();
        assert_eq!(stranger.verify(&ticket.item, &pass, 15_000), Err(PassError::Invalid));
    }

    #[test]
    fn a_second_key_is_published_but_does_not_sign() {
        let old = PassKeys::from_pem(PEM).unwrap();
        let fresh = SigningKey::from_bytes(&random_bytes());
        let pem = fresh.to_pkcs8_pem(Default::default()).unwrap();
        let both = PassKeys::from_pem(&format!("{}{PEM}", pem.as_str())).unwrap();
        let pass = old.pass((&ticket(), None), Uuid::nil(), 0, 99_000);
        assert!(both.verify(&ticket().item, &pass, 1).is_ok());
        assert!(
            old.verify(&ticket().item, &both.pass((&ticket(), None), Uuid::nil(), 0, 99_000), 1)
                .is_err()
        );
        assert_eq!(both.jwks().keys.len(), 2);
    }

    #[test]
    fn a_bad_key_is_named_by_its_place_and_never_quoted() {
        assert_eq!(PassKeys::from_pem(" \n").unwrap_err(), KeyError::Empty);
        assert_eq!(PassKeys::from_pem("hello").unwrap_err(), KeyError::InvalidPem(1));
        assert_eq!(PassKeys::from_pem(&format!("{PEM}x")).unwrap_err(), KeyError::InvalidPem(2));
        assert!(!format!("{:?}", PassKeys::from_pem(PEM).unwrap()).contains("MC4C"));
    }

    #[test]
    fn the_kind_of_the_key_decides_the_algorithm_and_no_other_is_accepted() {
        let p256 = include_str!("../testdata/p256.pem");
        let rsa = include_str!("../testdata/rsa.pem");
        let all = PassKeys::from_pem(&format!("{PEM}{p256}{rsa}")).unwrap();
        let jwks = serde_json::to_value(all.jwks()).unwrap();
        let published = [0, 1, 2].map(|n| jwks["keys"][n]["alg"].as_str().unwrap().to_owned());
        assert_eq!(published, ["EdDSA", "ES256", "RS256"]);
        let header = |pass: &str| jsonwebtoken::decode_header(pass).unwrap();
        let item = ticket().item;
        for (pem, algorithm) in
            [(PEM, Algorithm::EdDSA), (p256, Algorithm::ES256), (rsa, Algorithm::RS256)]
        {
            let keys = PassKeys::from_pem(pem).unwrap();
            let pass = |keys: &PassKeys| keys.pass((&ticket(), None), Uuid::nil(), 0, 99_000);
            let signed = pass(&keys);
            assert_eq!(header(&signed).alg, algorithm);
            assert_eq!(signed, pass(&keys), "the same entry, the same pass");
            assert!(all.verify(&item, &signed, 1).is_ok(), "{algorithm:?}");
            // The id of this key under a signature of another kind.
            for other in [PEM, p256, rsa].into_iter().filter(|other| *other != pem) {
                let mut other = PassKeys::from_pem(other).unwrap();
                other.header.kid = header(&signed).kid;
                assert_eq!(all.verify(&item, &pass(&other), 1), Err(PassError::Invalid));
            }
        }
        let short = include_str!("../testdata/rsa-short.pem");
        assert_eq!(PassKeys::from_pem(short).unwrap_err(), KeyError::InvalidPem(1));
    }

    /// The order service need not use our library: this one shares no code with it.
    #[test]
    fn an_independent_library_verifies_against_the_published_key() {
        use jwt_compact::prelude::*;
        use jwt_compact::{alg::Ed25519, jwk::JsonWebKey};

        let keys = PassKeys::from_pem(PEM).unwrap();
        let pass = keys.pass((&ticket(), None), Uuid::from_u128(5), 1_000_000, 2_000_000);
        let jwks = serde_json::to_value(keys.jwks()).unwrap();
        let jwk: JsonWebKey<'_> = serde_json::from_value(jwks["keys"][0].clone()).unwrap();
        let key = <Ed25519 as jwt_compact::Algorithm>::VerifyingKey::try_from(&jwk).unwrap();

        let token = UntrustedToken::new(&pass).unwrap();
        assert_eq!(token.header().key_id.as_deref(), jwks["keys"][0]["kid"].as_str());
        let token: Token<serde_json::Value> = Ed25519.validator(&key).validate(&token).unwrap();
        let claims = token.claims();
        assert_eq!(claims.custom["aud"], "concert");
        assert_eq!(claims.custom["sub"], "kim");
        assert_eq!(claims.expiration.unwrap().timestamp(), 2000);
        let at = |second| {
            let clock = move || chrono::DateTime::from_timestamp(second, 0).unwrap();
            claims.validate_expiration(&TimeOptions::new(chrono::Duration::zero(), clock)).is_ok()
        };
        assert!(at(1999) && !at(2001), "valid until it expires");
    }
}
