//! Which pass is chosen if a browser sends one in its cookie and one in the URL.

use serde_json::{Value, json};

use super::keys::{Claims, EXPIRES, FIRST, NOW, UNKNOWN_SIGNER, but, claims};

const LEE: &str = "01890000-0000-8000-8000-000000000008";

/// The expected outcome: the entry of these claims and whether its pass is stored, or a refusal.
enum Expect<'a> {
    Entry(&'a Claims, bool),
    Refused(&'a str),
}

pub(super) fn all() -> Value {
    let kim = claims();
    let newer = but("exp", json!(EXPIRES + 300));
    let older = but("exp", json!(EXPIRES - 300));
    let expired = but("exp", json!(NOW - 60));
    let mut lee = newer.clone();
    lee.extend([("sub".to_owned(), json!("lee")), ("jti".to_owned(), json!(LEE))]);
    let sign = |claims: &Claims| FIRST.sign(claims);
    let (forged, drop) =
        (UNKNOWN_SIGNER.sign_as(&FIRST.kid(), &newer), sign(&but("aud", json!("drop"))));
    let mut all = Vec::new();
    let mut add = |name: &str, address: &str, cookie: &str, expect: Expect<'_>| {
        all.push(described(name, address, cookie, expect));
    };
    add("address only", &sign(&kim), "", Expect::Entry(&kim, true));
    add("cookie only", "", &sign(&kim), Expect::Entry(&kim, false));
    add("neither", "", "", Expect::Refused("PASS_MISSING"));
    add("the same pass twice", &sign(&kim), &sign(&kim), Expect::Entry(&kim, false));
    add("a newer pass of the same user", &sign(&newer), &sign(&kim), Expect::Entry(&newer, true));
    add("an older pass of the same user", &sign(&older), &sign(&kim), Expect::Entry(&kim, false));
    add("another user's pass", &sign(&lee), &sign(&kim), Expect::Entry(&kim, false));
    add(
        "another user's pass, and the cookie has expired",
        &sign(&lee),
        &sign(&expired),
        Expect::Entry(&lee, true),
    );
    add("a forged pass", &forged, &sign(&kim), Expect::Entry(&kim, false));
    add("an expired pass", &sign(&expired), &sign(&kim), Expect::Entry(&kim, false));
    add("a pass of another item", &drop, &sign(&kim), Expect::Entry(&kim, false));
    add("garbage", "garbage", &sign(&kim), Expect::Entry(&kim, false));
    add("a forged cookie", &sign(&kim), &forged, Expect::Entry(&kim, true));
    add("two refused passes", &sign(&expired), "garbage", Expect::Refused("PASS_EXPIRED"));
    json!(all)
}

fn described(name: &str, address: &str, cookie: &str, expect: Expect<'_>) -> Value {
    let target = match address {
        "" => "/checkout".to_owned(),
        pass => format!("/checkout?return=/a?b=1&pass={pass}"),
    };
    let headers = match cookie {
        "" => json!({}),
        pass => json!({ "cookie": format!("theme=dark; daegi-pass-concert={pass}") }),
    };
    let expect = match expect {
        Expect::Entry(claims, kept) => json!({
            "userId": claims["sub"], "expiresAt": claims["exp"], "keeps": kept.then_some(address),
        }),
        Expect::Refused(code) => json!({ "refused": code }),
    };
    json!({
        "name": name, "now": NOW, "item": "concert", "keys": "first",
        "target": target, "headers": headers, "expect": expect,
    })
}
