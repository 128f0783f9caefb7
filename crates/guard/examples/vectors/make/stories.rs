//! What happens to a guard, step by step, and what it must say.

use jsonwebtoken::{Algorithm, Header};
use serde_json::{Value, json};

use super::keys::{
    Claims, EXPIRES, FIRST, NOW, SECOND, STRANGER, but, claims, hmac, part, without,
};

const INVALID: &str = "PASS_INVALID";
const EXPIRED: &str = "PASS_EXPIRED";
const EARLY: &str = "PASS_NOT_YET_VALID";
const OTHER: &str = "PASS_OTHER_ITEM";
const REVOKED: &str = "PASS_REVOKED";
const UNAVAILABLE: &str = "UNAVAILABLE";

/// A guard and what happens to it.
struct Story {
    name: String,
    setup: Value,
    steps: Vec<Value>,
}

/// One pass that is shown to it.
struct Step {
    now: u64,
    item: &'static str,
    keys: &'static str,
    verdict: Value,
    pass: String,
}

impl Story {
    fn new(name: &str, setup: Value, steps: impl IntoIterator<Item = Value>) -> Self {
        Self { name: name.to_owned(), setup, steps: steps.into_iter().collect() }
    }

    fn json(self) -> Value {
        let mut setup = json!({
            "clockSkewSeconds": 5, "refreshSeconds": 300, "pauseSeconds": 5,
            "whenAway": "refuse", "online": false,
        });
        for (name, value) in self.setup.as_object().unwrap() {
            setup[name] = value.clone();
        }
        json!({ "name": self.name, "setup": setup, "steps": self.steps })
    }
}

impl Step {
    fn shows(pass: impl Into<String>) -> Self {
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

    /// `asked`: how often keys and verdicts were asked for so far.
    fn done(self, expect: Value, asked: (u32, u32)) -> Value {
        json!({
            "now": self.now, "item": self.item, "keys": self.keys, "verdict": self.verdict,
            "pass": self.pass, "expect": expect, "keysAsked": asked.0, "verdictsAsked": asked.1,
        })
    }

    fn refused(self, code: &str, keys_asked: u32) -> Value {
        self.done(json!({ "refused": code }), (keys_asked, 0))
    }

    fn let_in(self, keys_asked: u32) -> Value {
        self.done(entry(true), (keys_asked, 0))
    }
}

fn entry(genuine: bool) -> Value {
    let jti = "01890000-0000-8000-8000-000000000007";
    json!({ "entry": {
        "userId": "kim", "itemId": "concert", "passId": jti, "number": 7, "expiresAt": EXPIRES,
        "genuine": genuine, "token": format!("kim-concert-{jti}"),
    }})
}

fn good() -> String {
    FIRST.sign(&claims())
}

pub(super) fn all() -> Vec<Value> {
    let all = [simple(), times(), claimed(), forged(), garbage(), keys(), away(), online()];
    all.into_iter().flatten().map(Story::json).collect()
}

/// One pass, keys as ever.
fn one(name: &str, step: Value) -> Story {
    Story::new(name, json!({}), [step])
}

fn refused(name: &str, claims: &Claims, code: &str) -> Story {
    one(name, Step::shows(FIRST.sign(claims)).refused(code, 1))
}

fn simple() -> Vec<Story> {
    let wrong_item = Step { item: "drop", ..Step::shows(good()) };
    vec![
        one("valid", Step::shows(good()).let_in(1)),
        Story::new(
            "valid, and keys are asked for once",
            json!({}),
            [Step::shows(good()).let_in(1), Step::shows(good()).at(NOW + 100).let_in(1)],
        ),
        one("no pass", Step::shows("").refused("PASS_MISSING", 0)),
        one("wrong item", wrong_item.refused(OTHER, 1)),
        refused("wrong audience", &but("aud", json!("somewhere-else")), OTHER),
        refused("wrong issuer", &but("iss", json!("somebody-else")), INVALID),
    ]
}

fn times() -> Vec<Story> {
    let exact = json!({ "clockSkewSeconds": 0 });
    let late = |now| Step::shows(good()).at(now);
    let early = |claim, at| Step::shows(FIRST.sign(&but(claim, json!(at))));
    vec![
        one("expired", late(EXPIRES + 5).refused(EXPIRED, 1)),
        one("expired, but within the clock skew", late(EXPIRES + 4).let_in(1)),
        Story::new(
            "the last second without clock skew",
            exact.clone(),
            [late(EXPIRES - 1).let_in(1), late(EXPIRES).refused(EXPIRED, 1)],
        ),
        one("not yet valid", early("iat", NOW + 6).refused(EARLY, 1)),
        one("from the future, but within the clock skew", early("iat", NOW + 5).let_in(1)),
        Story::new(
            "from the future without clock skew",
            exact,
            [early("iat", NOW + 1).refused(EARLY, 1)],
        ),
        one("not before", early("nbf", NOW + 6).refused(EARLY, 1)),
        one("not before, but within the clock skew", early("nbf", NOW + 5).let_in(1)),
    ]
}

fn claimed() -> Vec<Story> {
    let mut all: Vec<Story> = ["iss", "aud", "sub", "jti", "num", "iat", "exp"]
        .iter()
        .map(|name| refused(&format!("without {name}"), &without(name), INVALID))
        .collect();
    all.extend([
        refused("several audiences", &but("aud", json!(["concert"])), INVALID),
        refused("an expiry in words", &but("exp", json!("tomorrow")), INVALID),
        refused("an expiry with a fraction", &but("exp", json!(1_800_000_540.5)), INVALID),
        refused("a negative expiry", &but("exp", json!(-1)), INVALID),
        refused("an id that is none", &but("jti", json!("seven")), INVALID),
        refused("a claim nobody knows", &but("admin", json!(true)), "").welcome(),
    ]);
    all
}

impl Story {
    /// The same passes, but they are good.
    fn welcome(mut self) -> Self {
        for step in &mut self.steps {
            step["expect"] = entry(true);
        }
        self
    }
}

fn forged() -> Vec<Story> {
    let good = good();
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (header, body) = signed.split_once('.').unwrap();
    let none = part(&json!({ "alg": "none", "typ": "JWT", "kid": FIRST.kid() }));
    let other = FIRST.sign(&but("sub", json!("lee")));
    let other_body = other.split('.').nth(1).unwrap();
    let x = FIRST.published()["x"].as_str().unwrap().to_owned();
    let turned: String = signature.chars().rev().collect();
    let no_kid = FIRST.sign_under(&Header::new(Algorithm::EdDSA), &claims());
    let unasked = |name, pass: String| one(name, Step::shows(pass).refused(INVALID, 0));
    let asked = |name, pass: String| one(name, Step::shows(pass).refused(INVALID, 1));
    vec![
        unasked("alg none", format!("{none}.{body}.")),
        unasked("alg none with a signature", format!("{none}.{body}.{signature}")),
        unasked("HS256 with the public key", hmac(&FIRST.public_bytes(), &claims())),
        unasked("HS256 with the public key's text", hmac(x.as_bytes(), &claims())),
        unasked("no kid", no_kid),
        asked("signed by somebody else", STRANGER.sign_as(&FIRST.kid(), &claims())),
        asked("another person's name", format!("{header}.{other_body}.{signature}")),
        asked("another signature", format!("{signed}.{turned}")),
        asked("no signature", format!("{signed}.")),
        asked("half a signature", format!("{signed}.{}", &signature[..43])),
        asked("a padded signature", format!("{signed}.{signature}==")),
    ]
}

fn garbage() -> Vec<Story> {
    let good = good();
    let header = good.split('.').next().unwrap();
    let list = part(&json!(["EdDSA"]));
    let unasked = ["x", "a.b.c", "...", "null", "{}", "한국어", &format!("{list}.{list}.x")];
    let mut all: Vec<Story> = unasked
        .iter()
        .map(|pass| one(&format!("garbage: {pass}"), Step::shows(*pass).refused(INVALID, 0)))
        .collect();
    let asked = [format!("{header}.!!.x"), format!("{header}.{}.x", part(&json!(7)))];
    all.extend(
        asked.into_iter().zip(["claims that are no text", "claims that are no object"]).map(
            |(pass, name)| one(&format!("garbage: {name}"), Step::shows(pass).refused(INVALID, 1)),
        ),
    );
    all.push(one(
        "garbage: more than three parts",
        Step::shows(format!("{good}.x")).refused(INVALID, 0),
    ));
    all
}

fn keys() -> Vec<Story> {
    let new = || SECOND.sign(&claims());
    let stranger = || STRANGER.sign(&claims());
    vec![
        Story::new(
            "unknown kid: keys are asked for once per pause",
            json!({}),
            [
                Step::shows(stranger()).refused(INVALID, 1),
                Step::shows(stranger()).at(NOW + 4).refused(INVALID, 1),
                Step::shows(stranger()).at(NOW + 5).refused(INVALID, 2),
            ],
        ),
        Story::new(
            "rotated key: the new one is fetched when it is met, the old one stays good",
            json!({}),
            [
                Step::shows(good()).let_in(1),
                Step::shows(new()).at(NOW + 6).keys("rotated").let_in(2),
                Step::shows(good()).at(NOW + 6).keys("rotated").let_in(2),
            ],
        ),
        Story::new(
            "removed key: it counts until keys are fetched anew",
            json!({}),
            [
                Step::shows(good()).let_in(1),
                Step::shows(good()).at(NOW + 299).keys("second").let_in(1),
                Step::shows(good()).at(NOW + 300).keys("second").refused(INVALID, 2),
            ],
        ),
        one("keys of other kinds are no trouble", Step::shows(good()).keys("mixed").let_in(1)),
    ]
}

fn away() -> Vec<Story> {
    let open = json!({ "whenAway": "letIn" });
    let alone = |pass: String| Step::shows(pass).keys("away");
    let none = format!("{}.{}.", part(&json!({ "alg": "none", "kid": "x" })), part(&json!({})));
    let other = || FIRST.sign(&but("aud", json!("drop")));
    vec![
        Story::new(
            "no keys: nobody can say",
            json!({}),
            [
                alone(good()).refused(UNAVAILABLE, 1),
                alone(good()).at(NOW + 4).refused(UNAVAILABLE, 1),
                Step::shows(good()).at(NOW + 5).let_in(2),
            ],
        ),
        one(
            "keys that are none: nobody can say",
            alone(good()).keys("nonsense").refused(UNAVAILABLE, 1),
        ),
        Story::new(
            "no keys, and who brings a pass is let in",
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
        Story::new(
            "keys that were had are kept while daegi is away",
            open,
            [
                Step::shows(good()).let_in(1),
                alone(good()).at(NOW + 300).let_in(2),
                alone(STRANGER.sign(&claims())).at(NOW + 300).refused(INVALID, 2),
            ],
        ),
    ]
}

fn online() -> Vec<Story> {
    let online = json!({ "online": true });
    let open = json!({ "online": true, "whenAway": "letIn" });
    let says = |verdict| Step::shows(good()).verdict(verdict);
    let no = |reason| json!({ "valid": false, "reason": reason });
    let refused = |code| json!({ "refused": code });
    vec![
        Story::new(
            "revoked",
            online.clone(),
            [
                says(json!({ "valid": true })).done(entry(true), (1, 1)),
                says(no("COMPLETED")).done(refused(REVOKED), (1, 2)),
                says(no("LEFT")).done(refused(REVOKED), (1, 3)),
            ],
        ),
        Story::new(
            "an expired pass needs no question",
            online.clone(),
            [says(no("EXPIRED")).at(EXPIRES + 5).done(refused(EXPIRED), (1, 0))],
        ),
        Story::new(
            "revoked or not: nobody can say",
            online,
            [says(json!("away")).done(refused(UNAVAILABLE), (1, 1))],
        ),
        Story::new(
            "revoked or not, and who brings a pass is let in",
            open,
            [says(json!("away")).done(entry(true), (1, 1))],
        ),
    ]
}
