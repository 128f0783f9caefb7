//! The beacon of an opening: its round is chosen or checked, and an operator hands in its signature.

use daegi_domain::{first_round_from, rfc3339};
use serde_json::{Value, json};

use super::harness::AdminHarness;
use crate::beacon::{ROUND, SIGNATURE, opens_at};
use crate::harness::{self, item, user};

const POLICY: &str = "/waiting-item/concert/policy";
const BEACON: &str = "/waiting-item/concert/opening/beacon";

/// An admin API with the item `concert`, 10 minutes before its opening.
pub(super) async fn admin() -> AdminHarness {
    let store = harness::store(10);
    harness::put(&*store, "concert", 100, None).await;
    AdminHarness::at(store, opens_at() - 600_000)
}

pub(super) fn opening(opens_at: u64, beacon: Value) -> String {
    json!({"opening": {"opensAt": rfc3339(opens_at), "order": "draw", "beacon": beacon}})
        .to_string()
}

pub(super) fn drand(round: Option<u64>) -> Value {
    json!({"kind": "drand", "round": round})
}

async fn join(admin: &AdminHarness, name: &str) {
    let settings = admin.store.settings().await.unwrap();
    let now = admin.clock.now_ms();
    admin.store.join(&item("concert"), &[user(name)], &settings, now).await.unwrap();
}

#[tokio::test]
async fn the_server_chooses_the_round_unless_the_operator_names_one() {
    let admin = admin().await;
    for beacon in [json!({"kind": "drand"}), drand(None)] {
        let planned = admin.ok(200, "PATCH", POLICY, &opening(opens_at(), beacon)).await;
        assert_eq!(planned["policy"]["opening"]["beacon"], drand(Some(ROUND)), "{planned}");
        assert_eq!(planned["draw"]["beacon"]["round"], ROUND);
        assert_eq!(planned["draw"]["beacon"]["publishedAt"], rfc3339(opens_at() + 10_000));
        admin.ok(200, "PATCH", POLICY, r#"{"opening":null}"#).await;
    }
    let named = opening(opens_at(), drand(Some(ROUND + 5)));
    let planned = admin.ok(200, "PATCH", POLICY, &named).await;
    assert_eq!(planned["policy"]["opening"]["beacon"], drand(Some(ROUND + 5)));
    let removed = admin.ok(200, "PATCH", POLICY, r#"{"opening":{"beacon":null}}"#).await;
    assert_eq!(removed["draw"]["beacon"], Value::Null);
    let new = json!({"itemId": "match", "itemName": "The match", "remainCount": 3, "policy":
        serde_json::from_str::<Value>(&opening(opens_at(), drand(None))).unwrap()});
    let created = admin.ok(201, "POST", "/waiting-item", &new.to_string()).await;
    assert_eq!(created["draw"]["beacon"]["round"], ROUND);
}

#[tokio::test]
async fn a_round_that_does_not_fit_is_refused_with_one_that_does() {
    let admin = admin().await;
    for round in [0, 1, ROUND - 4, ROUND + 300] {
        let bad = opening(opens_at(), drand(Some(round)));
        let detail = admin.refused(400, "INVALID_REQUEST", ("PATCH", POLICY, &bad)).await;
        assert!(detail.contains("opening.beacon.round") && detail.contains("657413"), "{detail}");
    }
    let arrival = json!({"opening": {"opensAt": rfc3339(opens_at()), "beacon": drand(None)}});
    let no_time = json!({"opening": {"order": "draw", "beacon": drand(Some(ROUND))}});
    for (bad, reason) in [
        (arrival.to_string(), "order draw"),
        (no_time.to_string(), "must be null"),
        (opening(opens_at(), json!({"kind": "dice"})), "dice"),
        (opening(opens_at(), json!({"kind": "drand", "rnd": 1})), "rnd"),
        (opening(opens_at(), json!({"kind": "drand", "round": "7"})), "round"),
    ] {
        let detail = admin.refused(400, "INVALID_REQUEST", ("PATCH", POLICY, &bad)).await;
        assert!(detail.contains(reason) || reason == "round", "{detail}");
    }
    assert_eq!(admin.ok(200, "GET", "/waiting-item/concert", "").await["draw"], Value::Null);
}

#[tokio::test]
async fn a_round_moves_with_the_opening_but_is_not_exchanged_for_another_one() {
    let admin = admin().await;
    admin.ok(200, "PATCH", POLICY, &opening(opens_at(), drand(None))).await;
    join(&admin, "kim").await;
    for bad in [json!(null), drand(Some(ROUND + 1))] {
        let change = json!({"opening": {"beacon": bad}}).to_string();
        let detail = admin.refused(409, "CONFLICT", ("PATCH", POLICY, &change)).await;
        assert!(detail.contains("tickets are in the line"), "{detail}");
    }
    let later = rfc3339(opens_at() + 3_600_000);
    let only_time = json!({"opening": {"opensAt": later}}).to_string();
    let detail = admin.refused(400, "INVALID_REQUEST", ("PATCH", POLICY, &only_time)).await;
    assert!(detail.contains("send beacon.round null"), "{detail}");
    let both = json!({"opening": {"opensAt": later, "beacon": {"round": null}}}).to_string();
    let moved = admin.ok(200, "PATCH", POLICY, &both).await;
    assert_eq!(moved["draw"]["beacon"]["round"], ROUND + 1_200);
    // `open` moves it, too.
    let opened = admin.ok(200, "POST", "/waiting-item/concert/open", "").await;
    let round = first_round_from(admin.clock.now_ms() + 10_001);
    assert_eq!(opened["policy"]["opening"]["beacon"], drand(Some(round)));
}

#[tokio::test]
async fn an_opening_by_hand_gets_its_round_when_it_opens() {
    let admin = admin().await;
    let by_hand = json!({"opening": {"order": "draw", "beacon": {"kind": "drand"}}}).to_string();
    let planned = admin.ok(200, "PATCH", POLICY, &by_hand).await;
    assert_eq!(planned["policy"]["opening"]["beacon"], drand(None));
    assert_eq!(planned["draw"]["beacon"], Value::Null);
    join(&admin, "kim").await;
    let opened = admin.ok(200, "POST", "/waiting-item/concert/open", "").await;
    let round = first_round_from(admin.clock.now_ms() + 10_001);
    assert_eq!(opened["draw"]["beacon"]["round"], round);
    // The draw begins: from now on nothing of it changes.
    admin.clock.advance(std::time::Duration::from_secs(1));
    let epoch = admin.store.begin_term(0).await.unwrap();
    let now = admin.clock.now_ms();
    admin.store.freeze_cohort(epoch, &item("concert"), now).await.unwrap().unwrap();
    let again = ("POST", "/waiting-item/concert/open", "");
    let detail = admin.refused(409, "CONFLICT", again).await;
    assert!(detail.contains("the draw of concert has begun"), "{detail}");
    let later = json!({"opening": {"opensAt": rfc3339(now + 60_000), "beacon": {"round": null}}});
    admin.refused(409, "CONFLICT", ("PATCH", POLICY, &later.to_string())).await;
}

#[tokio::test]
async fn an_operator_hands_in_the_signature_of_the_round_and_of_no_other() {
    let admin = admin().await;
    let body =
        |round: u64, signature: &str| json!({"round": round, "signature": signature}).to_string();
    let good = body(ROUND, SIGNATURE);
    let detail = admin.refused(409, "CONFLICT", ("PUT", BEACON, &good)).await;
    assert!(detail.contains("waits for no beacon"), "{detail}");
    admin
        .refused(404, "ITEM_NOT_FOUND", ("PUT", "/waiting-item/ghost/opening/beacon", &good))
        .await;
    admin.ok(200, "PATCH", POLICY, &opening(opens_at(), drand(None))).await;
    let altered = SIGNATURE.replace("b713", "b714");
    for (bad, reason) in [
        (body(ROUND + 1, SIGNATURE), "uses round 657413"),
        (body(ROUND, &altered), "did not sign"),
        (body(ROUND, "ab"), "did not sign"),
        (r#"{"round":657413}"#.to_owned(), "signature"),
    ] {
        let detail = admin.refused(400, "INVALID_REQUEST", ("PUT", BEACON, &bad)).await;
        assert!(detail.contains(reason), "{detail}");
    }
    for _ in 0..2 {
        let item = admin.ok(200, "PUT", BEACON, &good).await;
        assert_eq!(item["draw"]["beacon"]["signature"], SIGNATURE);
    }
    let audit = admin.ok(200, "GET", "/audit?itemId=concert", "").await;
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "a repeat is no change: {entries:?}");
    assert_eq!(entries[0]["action"], "hand in beacon");
    assert_eq!(entries[0]["to"]["beacon"]["round"], ROUND);
}
