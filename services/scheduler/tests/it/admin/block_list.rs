//! The block and allow list: what calls change, refuse, record and export.

use daegi_domain::{AccessEvent, AccessEventKind, AccessRule, ItemId, UserId, rfc3339};
use daegi_store::{AccessLog, MAX_ACCESS_RULES};
use serde_json::{Value, json};

use super::harness::AdminHarness;
use crate::harness::START;

async fn add(admin: &AdminHarness, rules: Value) -> Value {
    admin.ok(200, "POST", "/access", &json!({ "rules": rules }).to_string()).await
}

fn user_rule(user: &str) -> Value {
    json!({ "kind": "block", "userId": user, "reason": "joins too often" })
}

async fn list(admin: &AdminHarness, query: &str) -> Vec<String> {
    let page = admin.ok(200, "GET", &format!("/access{query}"), "").await;
    let rules = page["rules"].as_array().unwrap().iter();
    rules.map(|rule| rule["userId"].as_str().unwrap_or("-").to_owned()).collect()
}

#[tokio::test]
async fn rules_are_added_listed_searched_replaced_and_removed() {
    let admin = AdminHarness::open().await;
    let added = add(&admin, json!([user_rule("kim"), user_rule("lee")])).await;
    assert_eq!((&added["added"], &added["replaced"]), (&json!(2), &json!(0)));
    assert_eq!(added["revision"], START);
    admin.clock.advance(std::time::Duration::from_secs(1));
    let network = json!({
        "kind": "block", "network": "203.0.113.77/24", "itemId": "concert", "reason": "a farm",
        "publicReason": "Too many requests.", "expiresAt": rfc3339(START + 60_000),
    });
    let network = add(&admin, json!([network])).await;
    let page = admin.ok(200, "GET", "/access", "").await;
    assert_eq!((&page["total"], &page["max"]), (&json!(3), &json!(10_000)));
    let first = &page["rules"][0];
    assert_eq!(
        (&first["network"], &first["itemId"]),
        (&json!("203.0.113.0/24"), &json!("concert"))
    );
    assert_eq!((&first["id"], &first["origin"]), (&network["ids"][0], &json!("api")));
    assert_eq!(list(&admin, "?search=LEE").await, ["lee"]);
    assert_eq!(list(&admin, "?search=farm").await, ["-"]);
    assert_eq!(list(&admin, "?offset=1&limit=1").await.len(), 1);
    let again = add(&admin, json!([user_rule("kim")])).await;
    assert_eq!((&again["added"], &again["replaced"]), (&json!(0), &json!(1)));
    assert_eq!(again["ids"][0], added["ids"][0]);
    let ids = json!({ "ids": [added["ids"][0], "0123456789abcdef"] }).to_string();
    let removed = admin.ok(200, "POST", "/access/remove", &ids).await;
    assert_eq!(removed["removed"], 1, "an unknown id is ignored");
    assert_eq!(list(&admin, "").await, ["-", "lee"]);
    let audit = admin.ok(200, "GET", "/audit", "").await;
    let actions: Vec<_> =
        audit["entries"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions[..2], ["remove access rules", "add access rules"]);
    assert_eq!(audit["entries"][0]["from"]["subjects"], json!(["block user kim"]));
}

#[tokio::test]
async fn rules_that_are_none_change_nothing() {
    let admin = AdminHarness::open().await;
    let refused = async |rules: Value| {
        let body = json!({ "rules": rules }).to_string();
        admin.refused(400, "INVALID_REQUEST", ("POST", "/access", &body)).await
    };
    assert!(refused(json!([])).await.contains("1 to 200"));
    let many: Vec<_> = (0..201).map(|n| user_rule(&format!("u{n}"))).collect();
    assert!(refused(json!(many)).await.contains("201 entries"));
    let mut late = user_rule("kim");
    late["expiresAt"] = rfc3339(START).into();
    assert!(refused(json!([user_rule("lee"), late])).await.contains("in the past"));
    let all = json!({ "kind": "block", "network": "0.0.0.0/0", "reason": "r" });
    assert!(refused(json!([all])).await.contains("at least 8"));
    let common = json!({ "kind": "block", "userAgent": "safari/537", "reason": "r" });
    assert!(refused(json!([common])).await.contains("nearly all browsers"));
    assert_eq!(list(&admin, "").await, Vec::<String>::new());
    for url in ["javascript:alert(1)", "shop.example", "https://a b", "https://\"x"] {
        let body = json!({ "contactUrl": url }).to_string();
        admin.refused(400, "INVALID_REQUEST", ("PUT", "/access/contact", &body)).await;
    }
}

#[tokio::test]
async fn a_full_list_is_refused_as_a_conflict() {
    let admin = AdminHarness::open().await;
    for chunk in (0..MAX_ACCESS_RULES).collect::<Vec<_>>().chunks(200) {
        let rules: Vec<_> = chunk.iter().map(|n| user_rule(&format!("u{n}"))).collect();
        add(&admin, json!(rules)).await;
    }
    let body = json!({ "rules": [user_rule("one-more")] }).to_string();
    let detail = admin.refused(409, "CONFLICT", ("POST", "/access", &body)).await;
    assert_eq!(detail, "the block list has at most 10000 rules: remove some first");
}

#[tokio::test]
async fn a_check_names_the_rules_that_answer_a_complaint() {
    let admin = AdminHarness::open().await;
    let farm = json!({ "kind": "block", "network": "203.0.113.0/24", "reason": "a farm" });
    let ids = add(&admin, json!([farm, user_rule("kim")])).await["ids"].clone();
    let check =
        async |fields: Value| admin.ok(200, "POST", "/access/check", &fields.to_string()).await;
    let asked = json!({ "itemId": "concert", "userId": "lee", "address": "203.0.113.9" });
    let found = check(asked.clone()).await;
    assert_eq!((&found["decision"], &found["rules"][0]["id"]), (&json!("blocked"), &ids[0]));
    let friend = json!({ "kind": "allow", "userId": "lee", "reason": "staff" });
    add(&admin, json!([friend])).await;
    let found = check(asked).await;
    assert_eq!(found["decision"], "allowed");
    assert_eq!(found["rules"].as_array().unwrap().len(), 2);
    let other = check(json!({ "itemId": "concert", "userAgent": "curl/8" })).await;
    assert_eq!((&other["decision"], &other["rules"]), (&json!("neutral"), &json!([])));
    let body = json!({ "itemId": "concert", "address": "here" }).to_string();
    admin.refused(400, "INVALID_REQUEST", ("POST", "/access/check", &body)).await;
}

#[tokio::test]
async fn the_export_says_who_was_blocked_when_why_and_by_which_rule() {
    let admin = AdminHarness::open().await;
    let id = add(&admin, json!([user_rule("kim")])).await["ids"][0].clone();
    let rule = admin.store.access_rules().await.unwrap().rules.remove(0);
    let happened = |rule: &AccessRule, kind, user: &str, at| {
        let (user, item) = (UserId::parse(user).unwrap(), ItemId::parse("concert").unwrap());
        AccessEvent::of_user(kind, rule, user, item, at)
    };
    let ended = happened(&rule, AccessEventKind::TicketEnded, "kim", START + 1_000);
    let joined = happened(&rule, AccessEventKind::JoinRefused, "-2+3", START + 2_000);
    admin.store.append_access_events(AccessLog::Tickets, &[ended]).await.unwrap();
    admin.store.append_access_events(AccessLog::Joins, &[joined]).await.unwrap();
    let reply = admin.call("GET", "/access/export", "").await;
    assert_eq!(reply.headers["content-type"], "text/csv; charset=utf-8");
    let text = reply.body.as_str().unwrap();
    let rows: Vec<_> = text.lines().collect();
    assert!(rows[0].starts_with("at,event,userId,itemId,operator,rule,kind,"), "{text}");
    let id = id.as_str().unwrap();
    let reason = "block,kim,,,,joins too often,,";
    assert_eq!(
        rows[1],
        format!("{},JOIN_REFUSED,'-2+3,concert,,{id},{reason}", rfc3339(START + 2_000))
    );
    assert_eq!(
        rows[2],
        format!("{},TICKET_ENDED,kim,concert,,{id},{reason}", rfc3339(START + 1_000))
    );
    assert_eq!(rows[3], format!("{},RULE_ADDED,,,,{id},{reason}", rfc3339(START)));
    assert_eq!(rows.len(), 4, "{text}");
    let kim = admin.call("GET", "/access/export?userId=kim", "").await;
    assert_eq!(kim.body.as_str().unwrap().lines().count(), 3, "{kim:?}");
}

#[tokio::test]
async fn the_contact_is_part_of_the_list_and_audited() {
    let admin = AdminHarness::open().await;
    let body = r#"{"contactUrl":"mailto:help@shop.example"}"#;
    admin.ok(200, "PUT", "/access/contact", body).await;
    let page = admin.ok(200, "GET", "/access", "").await;
    assert_eq!(page["contactUrl"], "mailto:help@shop.example");
    admin.ok(200, "PUT", "/access/contact", r#"{"contactUrl":null}"#).await;
    assert_eq!(admin.ok(200, "GET", "/access", "").await["contactUrl"], Value::Null);
    let audit = admin.ok(200, "GET", "/audit", "").await;
    assert_eq!(audit["entries"][1]["to"]["contactUrl"], "mailto:help@shop.example");
}
