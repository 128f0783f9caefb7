//! Sequences of passes presented to a guard, with the expected outcomes.

use jsonwebtoken::{Algorithm, Header};
use serde_json::{Value, json};

use super::keys::{
    Claims, EXPIRES, FIRST, NOW, P256, RSA, SECOND, UNKNOWN_SIGNER, but, claims, hmac, part,
    without,
};

const INVALID: &str = "PASS_INVALID";
const EXPIRED: &str = "PASS_EXPIRED";
const EARLY: &str = "PASS_NOT_YET_VALID";
const OTHER: &str = "PASS_OTHER_ITEM";
const REVOKED: &str = "PASS_REVOKED";
const UNAVAILABLE: &str = "UNAVAILABLE";

/// A guard and the passes presented to it.
struct Scenario {
    name: String,
    config: Value,
    steps: Vec<Value>,
}

/// One presented pass.
struct Step {
    now: u64,
    item: &'static str,
    keys: &'static str,
    verdict: Value,
    pass: String,
}

impl Scenario {
    fn new(name: &str, config: Value, steps: impl IntoIterator<Item = Value>) -> Self {
        Self { name: name.to_owned(), config, steps: steps.into_iter().collect() }
    }

    fn json(self) -> Value {
        let mut config = json!({
            "clockSkewSeconds": 5, "keyTtlSeconds": 300, "minFetchIntervalSeconds": 5,
            "onUnavailable": "failClosed", "online": false,
        });
        for (name, value) in self.config.as_object().unwrap() {
            config[name] = value.clone();
        }
        json!({ "name": self.name, "config": config, "steps": self.steps })
    }
}

impl Step {
    fn present(pass: impl Into<String>) -> Self {
        let verdict = json!({ "valid": true });
        Self { now: NOW, item: "concert", keys: "first", verdict, pass: pass.into() }
    }

    fn at(mut self, now: u64) -> Self {
        self.now = now;
        self
    }

    fn keys(mut self, keys: &'static str) -> Self {
        self.keys = keys;
        self
    }

    fn verdict(mut self, verdict: Value) -> Self {
        self.verdict = verdict;
        self
    }

    /// `calls`: how many key fetches and online checks happened so far.
    fn done(self, expect: Value, calls: (u32, u32)) -> Value {
        json!({
            "now": self.now, "item": self.item, "keys": self.keys, "verdict": self.verdict,
            "pass": self.pass, "expect": expect, "keyFetches": calls.0, "onlineChecks": calls.1,
        })
    }

    fn refused(self, code: &str, key_fetches: u32) -> Value {
        self.done(json!({ "refused": code }), (key_fetches, 0))
    }

    fn accepted(self, key_fetches: u32) -> Value {
        self.done(entry(true), (key_fetches, 0))
    }
}

fn entry(signature_verified: bool) -> Value {
    let jti = "01890000-0000-8000-8000-000000000007";
    json!({ "entry": {
        "userId": "kim", "itemId": "concert", "passId": jti, "number": 7, "lane": null, "expiresAt": EXPIRES,
        "signatureVerified": signature_verified, "token": format!("kim-concert-{jti}"),
    }})
}

fn good() -> String {
    FIRST.sign(&claims())
}

pub(super) fn all() -> Vec<Value> {
    let all = [
        simple(),
        times(),
        claimed(),
        lanes(),
        forged(),
        algorithms(),
        garbage(),
        keys(),
        unavailable(),
        online(),
    ];
    all.into_iter().flatten().map(Scenario::json).collect()
}

/// A scenario with one pass and the default configuration.
fn single(name: &str, step: Value) -> Scenario {
    Scenario::new(name, json!({}), [step])
}

fn refused(name: &str, claims: &Claims, code: &str) -> Scenario {
    single(name, Step::present(FIRST.sign(claims)).refused(code, 1))
}

fn simple() -> Vec<Scenario> {
    let wrong_item = Step { item: "drop", ..Step::present(good()) };
    vec![
        single("valid", Step::present(good()).accepted(1)),
        Scenario::new(
            "valid, with one fetch of keys",
            json!({}),
            [Step::present(good()).accepted(1), Step::present(good()).at(NOW + 100).accepted(1)],
        ),
        single("no pass", Step::present("").refused("PASS_MISSING", 0)),
        single("wrong item", wrong_item.refused(OTHER, 1)),
        refused("wrong audience", &but("aud", json!("somewhere-else")), OTHER),
        refused("wrong issuer", &but("iss", json!("another-issuer")), INVALID),
    ]
}

fn times() -> Vec<Scenario> {
    let exact = json!({ "clockSkewSeconds": 0 });
    let late = |now| Step::present(good()).at(now);
    let early = |claim, at| Step::present(FIRST.sign(&but(claim, json!(at))));
    vec![
        single("expired", late(EXPIRES + 5).refused(EXPIRED, 1)),
        single("expired, but within the clock skew", late(EXPIRES + 4).accepted(1)),
        Scenario::new(
            "the last second without clock skew",
            exact.clone(),
            [late(EXPIRES - 1).accepted(1), late(EXPIRES).refused(EXPIRED, 1)],
        ),
        single("not yet valid", early("iat", NOW + 6).refused(EARLY, 1)),
        single("from the future, but within the clock skew", early("iat", NOW + 5).accepted(1)),
        Scenario::new(
            "from the future without clock skew",
            exact,
            [early("iat", NOW + 1).refused(EARLY, 1)],
        ),
        single("not before", early("nbf", NOW + 6).refused(EARLY, 1)),
        single("not before, but within the clock skew", early("nbf", NOW + 5).accepted(1)),
    ]
}

fn claimed() -> Vec<Scenario> {
    let mut all: Vec<Scenario> = ["iss", "aud", "sub", "jti", "num", "iat", "exp"]
        .iter()
        .map(|name| refused(&format!("without {name}"), &without(name), INVALID))
        .collect();
    all.extend([
        refused("several audiences", &but("aud", json!(["concert"])), INVALID),
        refused("an expiry in words", &but("exp", json!("tomorrow")), INVALID),
        refused("an expiry with a fraction", &but("exp", json!(1_800_000_540.5)), INVALID),
        refused("a negative expiry", &but("exp", json!(-1)), INVALID),
        refused("an id that is none", &but("jti", json!("seven")), INVALID),
        refused("an unknown claim", &but("admin", json!(true)), "").accept_all(),
    ]);
    all
}

fn lanes() -> Vec<Scenario> {
    let accepted = |name: &str, lane: Value| {
        let mut expect = entry(true);
        expect["entry"]["lane"] = lane.clone();
        single(name, Step::present(FIRST.sign(&but("lane", lane))).done(expect, (1, 0)))
    };
    let long = "l".repeat(33);
    vec![
        accepted("a lane", json!("members")),
        accepted("a lane of all allowed characters", json!("Vip.2_~-")),
        accepted("the longest lane", json!(long[1..])),
        accepted("no lane, said as null", Value::Null),
        refused("a lane that is too long", &but("lane", json!(long)), INVALID),
        refused("an empty lane", &but("lane", json!("")), INVALID),
        refused("a lane with a space", &but("lane", json!("a b")), INVALID),
        refused("a lane with a line break", &but("lane", json!("members\n")), INVALID),
        refused("the standard lane by name", &but("lane", json!("standard")), INVALID),
        refused("a lane that is no text", &but("lane", json!(1)), INVALID),
    ]
}

impl Scenario {
    /// The same passes, but they are good.
    fn accept_all(mut self) -> Self {
        for step in &mut self.steps {
            step["expect"] = entry(true);
        }
        self
    }
}

fn forged() -> Vec<Scenario> {
    let good = good();
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (header, body) = signed.split_once('.').unwrap();
    let none = part(&json!({ "alg": "none", "typ": "JWT", "kid": FIRST.kid() }));
    let other = FIRST.sign(&but("sub", json!("lee")));
    let other_body = other.split('.').nth(1).unwrap();
    let x = FIRST.published()["x"].as_str().unwrap().to_owned();
    let turned: String = signature.chars().rev().collect();
    let no_kid = FIRST.sign_under(&Header::new(Algorithm::EdDSA), &claims());
    let before_fetch = |name, pass: String| single(name, Step::present(pass).refused(INVALID, 0));
    let after_fetch = |name, pass: String| single(name, Step::present(pass).refused(INVALID, 1));
    vec![
        before_fetch("alg none", format!("{none}.{body}.")),
        before_fetch("alg none with a signature", format!("{none}.{body}.{signature}")),
        before_fetch("HS256 with the public key", hmac(&FIRST.public_bytes(), &claims())),
        before_fetch("HS256 with the public key's text", hmac(x.as_bytes(), &claims())),
        before_fetch("no kid", no_kid),
        after_fetch(
            "signed with an unpublished key",
            UNKNOWN_SIGNER.sign_as(&FIRST.kid(), &claims()),
        ),
        after_fetch("the claims of another pass", format!("{header}.{other_body}.{signature}")),
        after_fetch("another signature", format!("{signed}.{turned}")),
        after_fetch("no signature", format!("{signed}.")),
        after_fetch("half a signature", format!("{signed}.{}", &signature[..43])),
        after_fetch("a padded signature", format!("{signed}.{signature}==")),
    ]
}

/// Keys of all kinds; each accepts its own algorithm only.
fn algorithms() -> Vec<Scenario> {
    let present = |pass: String| Step::present(pass).keys("algorithms");
    let accepted = |name, pass| single(name, present(pass).accepted(1));
    let refused = |name, pass| single(name, present(pass).refused(INVALID, 1));
    let changed = P256.sign(&but("sub", json!("lee")));
    let good = P256.sign(&claims());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let body = changed.split('.').nth(1).unwrap();
    vec![
        accepted("ES256", P256.sign(&claims())),
        accepted("RS256", RSA.sign(&claims())),
        accepted("EdDSA among other algorithms", FIRST.sign(&claims())),
        single("ES256 without such a key", Step::present(P256.sign(&claims())).refused(INVALID, 1)),
        refused("ES256 under the id of an RSA key", P256.sign_as(&RSA.kid(), &claims())),
        refused("ES256 under the id of an Ed25519 key", P256.sign_as(&FIRST.kid(), &claims())),
        refused("RS256 under the id of a P-256 key", RSA.sign_as(&P256.kid(), &claims())),
        refused("EdDSA under the id of a P-256 key", FIRST.sign_as(&P256.kid(), &claims())),
        refused("ES256 with half a signature", format!("{signed}.{}", &signature[..43])),
        refused(
            "ES256 with the claims of another pass",
            format!("{}.{body}.{signature}", good.split('.').next().unwrap()),
        ),
    ]
}

fn garbage() -> Vec<Scenario> {
    let good = good();
    let header = good.split('.').next().unwrap();
    let list = part(&json!(["EdDSA"]));
    let before_fetch = ["x", "a.b.c", "...", "null", "{}", "한국어", &format!("{list}.{list}.x")];
    let mut all: Vec<Scenario> = before_fetch
        .iter()
        .map(|pass| single(&format!("garbage: {pass}"), Step::present(*pass).refused(INVALID, 0)))
        .collect();
    let after_fetch = [format!("{header}.!!.x"), format!("{header}.{}.x", part(&json!(7)))];
    all.extend(
        after_fetch.into_iter().zip(["claims that are no text", "claims that are no object"]).map(
            |(pass, name)| {
                single(&format!("garbage: {name}"), Step::present(pass).refused(INVALID, 1))
            },
        ),
    );
    all.push(single(
        "garbage: more than three parts",
        Step::present(format!("{good}.x")).refused(INVALID, 0),
    ));
    all
}

fn keys() -> Vec<Scenario> {
    let new = || SECOND.sign(&claims());
    let stranger = || UNKNOWN_SIGNER.sign(&claims());
    vec![
        Scenario::new(
            "unknown kid: at most one fetch per min fetch interval",
            json!({}),
            [
                Step::present(stranger()).refused(INVALID, 1),
                Step::present(stranger()).at(NOW + 4).refused(INVALID, 1),
                Step::present(stranger()).at(NOW + 5).refused(INVALID, 2),
            ],
        ),
        Scenario::new(
            "rotated key: the new one is fetched on first use, the old one stays valid",
            json!({}),
            [
                Step::present(good()).accepted(1),
                Step::present(new()).at(NOW + 6).keys("rotated").accepted(2),
                Step::present(good()).at(NOW + 6).keys("rotated").accepted(2),
            ],
        ),
        Scenario::new(
            "removed key: valid until the next fetch",
            json!({}),
            [
                Step::present(good()).accepted(1),
                Step::present(good()).at(NOW + 299).keys("second").accepted(1),
                Step::present(good()).at(NOW + 300).keys("second").refused(INVALID, 2),
            ],
        ),
        single("keys of other types are skipped", Step::present(good()).keys("mixed").accepted(1)),
    ]
}

fn unavailable() -> Vec<Scenario> {
    let open = json!({ "onUnavailable": "failOpen" });
    let alone = |pass: String| Step::present(pass).keys("unavailable");
    let none = format!("{}.{}.", part(&json!({ "alg": "none", "kid": "x" })), part(&json!({})));
    let other = || FIRST.sign(&but("aud", json!("drop")));
    vec![
        Scenario::new(
            "no keys: unavailable",
            json!({}),
            [
                alone(good()).refused(UNAVAILABLE, 1),
                alone(good()).at(NOW + 4).refused(UNAVAILABLE, 1),
                Step::present(good()).at(NOW + 5).accepted(2),
            ],
        ),
        single(
            "a malformed key set: unavailable",
            alone(good()).keys("nonsense").refused(UNAVAILABLE, 1),
        ),
        Scenario::new(
            "no keys, fail open",
            open.clone(),
            [
                alone(good()).done(entry(false), (1, 0)),
                alone(good()).at(EXPIRES + 5).refused(EXPIRED, 2),
                alone(other()).at(EXPIRES + 5).refused(OTHER, 2),
                alone(none).at(EXPIRES + 5).refused(INVALID, 2),
                alone("a.b.c".to_owned()).at(EXPIRES + 5).refused(INVALID, 2),
                alone(String::new()).at(EXPIRES + 5).refused("PASS_MISSING", 2),
            ],
        ),
        Scenario::new(
            "cached keys stay valid while daegi is unreachable",
            open,
            [
                Step::present(good()).accepted(1),
                alone(good()).at(NOW + 300).accepted(2),
                alone(UNKNOWN_SIGNER.sign(&claims())).at(NOW + 300).refused(INVALID, 2),
            ],
        ),
    ]
}

fn online() -> Vec<Scenario> {
    let online = json!({ "online": true });
    let open = json!({ "online": true, "onUnavailable": "failOpen" });
    let with_verdict = |verdict| Step::present(good()).verdict(verdict);
    let no = |reason| json!({ "valid": false, "reason": reason });
    let refused = |code| json!({ "refused": code });
    vec![
        Scenario::new(
            "revoked",
            online.clone(),
            [
                with_verdict(json!({ "valid": true })).done(entry(true), (1, 1)),
                with_verdict(no("COMPLETED")).done(refused(REVOKED), (1, 2)),
                with_verdict(no("LEFT")).done(refused(REVOKED), (1, 3)),
            ],
        ),
        Scenario::new(
            "an expired pass needs no online check",
            online.clone(),
            [with_verdict(no("EXPIRED")).at(EXPIRES + 5).done(refused(EXPIRED), (1, 0))],
        ),
        Scenario::new(
            "online check fails: unavailable",
            online,
            [with_verdict(json!("unavailable")).done(refused(UNAVAILABLE), (1, 1))],
        ),
        Scenario::new(
            "online check fails, fail open",
            open,
            [with_verdict(json!("unavailable")).done(entry(true), (1, 1))],
        ),
    ]
}
