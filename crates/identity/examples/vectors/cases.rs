//! Assertions, and what becomes of them.

use jsonwebtoken::Algorithm;
use serde_json::{Map, Value, json};

use crate::keys::{self, ED25519, P256, RSA, RSA_NEXT, RSA_SHORT, STRANGER, Signer, hmac, part};

/// In Unix seconds: 15 January 2027.
const NOW: u64 = 1_800_000_000;
const ISSUER: &str = "https://login.shop.example";
const AUDIENCE: &str = "waiting-room";

/// Returns all vectors.
pub(crate) fn vectors() -> Value {
    let cases = [good(), times(), claims_of_others(), forged(), keys_of_sets()].concat();
    json!({
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "keySets": keys::sets(),
        "cases": cases,
    })
}

/// One assertion, verified at `NOW` with a key set and `sub` as the claim of the user.
fn case(name: &str, keys: &str, assertion: impl Into<String>, expect: Value) -> Value {
    json!({
        "name": name, "keys": keys, "claim": "sub", "nowMs": NOW * 1000, "assertion": assertion.into(),
        "expect": expect,
    })
}

fn user(user: &str) -> Value {
    json!({ "user": user, "lane": null })
}

fn error(name: &str) -> Value {
    json!({ "error": name })
}

fn claims() -> Map<String, Value> {
    let claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "kim", "iat": NOW - 60, "exp": NOW + 240,
    });
    claims.as_object().unwrap().clone()
}

/// Valid claims with one claim replaced, or removed by null.
fn but(name: &str, value: Value) -> Map<String, Value> {
    let mut claims = claims();
    if value.is_null() {
        claims.remove(name);
    } else {
        claims.insert(name.to_owned(), value);
    }
    claims
}

fn good() -> Vec<Value> {
    let signed =
        |name: &str, signer: Signer| case(name, "first", signer.sign(&claims()), user("kim"));
    let with = |name: &str, claim: &str, value: Value, expect: Value| {
        case(name, "first", P256.sign(&but(claim, value)), expect)
    };
    let mut number = with("a number as the user", "account", json!(4711), user("4711"));
    number["claim"] = "account".into();
    let mut mail = with(
        "another claim as the user",
        "email",
        json!("kim@example.com"),
        user("kim@example.com"),
    );
    mail["claim"] = "email".into();
    vec![
        signed("RS256", RSA),
        signed("ES256", P256),
        signed("EdDSA", ED25519),
        with("another user", "sub", json!("lee"), user("lee")),
        with("one of several audiences", "aud", json!(["shop", AUDIENCE]), user("kim")),
        with("a lane", "daegi_lane", json!("members"), json!({ "user": "kim", "lane": "members" })),
        with("the standard lane", "daegi_lane", json!("standard"), user("kim")),
        number,
        mail,
    ]
}

fn times() -> Vec<Value> {
    let at = |name: &str, claim: &str, value: Value, expect: Value| {
        case(name, "first", P256.sign(&but(claim, value)), expect)
    };
    vec![
        at("expired", "exp", json!(NOW - 31), error("Expired")),
        at("expired less than the tolerated skew ago", "exp", json!(NOW - 29), user("kim")),
        at("no expiry", "exp", json!(null), error("Expired")),
        at("an expiry that is no number", "exp", json!("2030"), error("Expired")),
        at("not yet valid", "nbf", json!(NOW + 31), error("NotYetValid")),
        at("valid within the tolerated skew", "nbf", json!(NOW + 29), user("kim")),
        at("issued in the future", "iat", json!(NOW + 31), error("NotYetValid")),
        at("a fraction of a second", "exp", json!(NOW as f64 + 0.5), user("kim")),
    ]
}

fn claims_of_others() -> Vec<Value> {
    let with = |name: &str, claim: &str, value: Value, expect: &str| {
        case(name, "first", P256.sign(&but(claim, value)), error(expect))
    };
    vec![
        with("another audience", "aud", json!("shop"), "WrongAudience"),
        with("other audiences", "aud", json!(["shop", "waiting-room-2"]), "WrongAudience"),
        with("no audience", "aud", json!(null), "WrongAudience"),
        with("another issuer", "iss", json!("https://login.evil.example"), "WrongIssuer"),
        with("an issuer with a slash", "iss", json!(format!("{ISSUER}/")), "WrongIssuer"),
        with("no issuer", "iss", json!(null), "WrongIssuer"),
        with("no user", "sub", json!(null), "NoUser"),
        with("a user that is not a user id", "sub", json!("kim|7"), "NoUser"),
        with("a user that is a list", "sub", json!(["kim"]), "Malformed"),
        with("a lane that is not a name", "daegi_lane", json!("all of them"), "InvalidLane"),
    ]
}

fn forged() -> Vec<Value> {
    let whole = P256.sign(&claims());
    let parts: Vec<&str> = whole.split('.').collect();
    let other_user = Value::Object(but("sub", json!("lee")));
    let none = |alg: &str| {
        let header = part(&json!({ "alg": alg, "typ": "JWT", "kid": "ec-1" }));
        format!("{header}.{}.", part(&other_user))
    };
    let rsa = RSA.published();
    let modulus = rsa["n"].as_str().unwrap().as_bytes().to_vec();
    let jwk = keys::sorted(&rsa).to_string().into_bytes();
    let mut crit = P256.header();
    crit.crit = Some(vec!["exp".to_owned()]);
    let mut own_key = STRANGER.header();
    own_key.jwk = serde_json::from_value(STRANGER.published()).unwrap();
    let mut as_ec = RSA.header();
    as_ec.kid = Some("ec-1".to_owned());
    let mut as_published = STRANGER.header();
    as_published.kid = Some("ec-1".to_owned());
    let forged =
        |name: &str, assertion: String, expect: &str| case(name, "first", assertion, error(expect));
    vec![
        forged("no assertion", String::new(), "Missing"),
        forged("not a JWT", "kim".to_owned(), "Malformed"),
        forged("an endless text", "a".repeat(9_000), "Malformed"),
        forged(
            "other claims under a signature",
            format!("{}.{}.{}", parts[0], part(&other_user), parts[2]),
            "BadSignature",
        ),
        forged("no signature", format!("{}.{}.", parts[0], parts[1]), "BadSignature"),
        forged("alg none", none("none"), "Malformed"),
        forged("alg None", none("None"), "Malformed"),
        forged(
            "HS256 with the modulus as secret",
            hmac(&modulus, "rsa-1", &claims()),
            "WrongAlgorithm",
        ),
        forged(
            "HS256 with the public key as secret",
            hmac(&jwk, "rsa-1", &claims()),
            "WrongAlgorithm",
        ),
        forged("HS256 with an empty secret", hmac(b"", "ec-1", &claims()), "WrongAlgorithm"),
        forged(
            "an RSA signature under the id of an EC key",
            RSA.sign_under(&as_ec, &claims()),
            "WrongAlgorithm",
        ),
        forged(
            "a stranger under the id of a published key",
            STRANGER.sign_under(&as_published, &claims()),
            "BadSignature",
        ),
        forged("a key in the header", STRANGER.sign_under(&own_key, &claims()), "UnknownKey"),
        forged(
            "an extension that must be understood",
            P256.sign_under(&crit, &claims()),
            "Malformed",
        ),
    ]
}

fn keys_of_sets() -> Vec<Value> {
    let mut nameless = P256.header();
    nameless.kid = None;
    let nameless = P256.sign_under(&nameless, &claims());
    let mut rs512 = RSA.header();
    rs512.alg = Algorithm::RS512;
    vec![
        case("an unknown key", "first", STRANGER.sign(&claims()), error("UnknownKey")),
        case(
            "the next key before the rotation",
            "first",
            RSA_NEXT.sign(&claims()),
            error("UnknownKey"),
        ),
        case("the next key after the rotation", "rotated", RSA_NEXT.sign(&claims()), user("kim")),
        case(
            "the former key after the rotation",
            "rotated",
            RSA.sign(&claims()),
            error("UnknownKey"),
        ),
        case("no key id and one key", "single", &*nameless, user("kim")),
        case("no key id and several keys", "first", &*nameless, error("NoKeyId")),
        case("a key among those that cannot be used", "mixed", P256.sign(&claims()), user("kim")),
        case("an RSA key of 1024 bits", "mixed", RSA_SHORT.sign(&claims()), error("UnknownKey")),
        case("a key for encryption", "mixed", RSA.sign(&claims()), error("UnknownKey")),
        case("a key of another algorithm", "mixed", RSA_NEXT.sign(&claims()), error("UnknownKey")),
        case(
            "another algorithm of the same key",
            "first",
            RSA.sign_under(&rs512, &claims()),
            error("WrongAlgorithm"),
        ),
    ]
}
