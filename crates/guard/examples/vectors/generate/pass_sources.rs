//! Where in a request a pass is found.

use serde_json::{Value, json};

pub(super) fn all() -> Value {
    let mut all = Vec::new();
    let mut add = |target: &str, headers: Value, pass: &str| {
        all.push(json!({ "target": target, "headers": headers, "item": "concert", "pass": pass }));
    };
    add("/", json!({}), "");
    add("/?pass=p", json!({}), "p");
    add("/?a=b&pass=p&c=d", json!({}), "p");
    add("/?return=/a?b=1&pass=p", json!({}), "p");
    add("/?pass=", json!({}), "");
    add("/?bypass=p", json!({}), "");
    add("/", json!({ "daegi-pass": "p" }), "p");
    add("/", json!({ "authorization": "Bearer p" }), "p");
    add("/", json!({ "authorization": "bearer p" }), "p");
    add("/", json!({ "authorization": "Basic p" }), "");
    add("/", json!({ "cookie": "a=b; daegi-pass-concert=p; c=d" }), "p");
    add("/", json!({ "cookie": "daegi-pass-drop=p" }), "");
    add("/?pass=q", json!({ "daegi-pass": "p", "cookie": "daegi-pass-concert=r" }), "p");
    add("/?pass=q", json!({ "authorization": "Bearer p", "cookie": "daegi-pass-concert=r" }), "q");
    add("/", json!({ "authorization": "Bearer p", "cookie": "daegi-pass-concert=r" }), "r");
    json!(all)
}
