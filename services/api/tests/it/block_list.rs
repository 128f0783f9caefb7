//! The block and allow list: whom it refuses, what becomes of tickets, and what it costs.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::Method;
use daegi_domain::{
    AccessEvent, AccessEventKind, AccessRule, ChallengePolicy, NewAccessRule, Policy, RuleOrigin,
};
use daegi_runtime::config::Rates;
use daegi_runtime::http::Peer;
use daegi_runtime::rate_limit::Rate;
use daegi_store::{AccessChange, AccessLog, AccessStore, TicketStore};
use daegi_testkit::eventually;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::harness::{Harness, NOW, TEST_TIMEOUT, TestResponse, id, line, request, ticket};
use crate::spy_store::StoreMode;

const CAMPUS: &str = "203.0.113.9";
/// Two reads of the revision.
const IN_FORCE: Duration = Duration::from_secs(2);

impl Harness {
    /// Adds a rule, as an operator does.
    async fn add_rule(&self, rule: Value) -> AccessRule {
        let mut rule = rule;
        rule["reason"] = "for the operators only".into();
        let new: NewAccessRule = serde_json::from_value(rule).unwrap();
        let rule = new.rule(Some("kim".into()), RuleOrigin::Api, NOW).unwrap();
        let event = AccessEvent::of_change(AccessEventKind::RuleAdded, &rule, None, NOW);
        let change = AccessChange { put: vec![(rule.clone(), event)], ..AccessChange::default() };
        self.store.change_access(&change, self.clock.now_ms()).await.unwrap();
        rule
    }

    /// Adds a rule and waits until it is in force.
    async fn enforce(&self, rule: Value) -> AccessRule {
        let rule = self.add_rule(rule).await;
        tokio::time::sleep(IN_FORCE).await;
        rule
    }

    async fn call_from(
        &self,
        source: &str,
        (method, uri): (Method, &str),
        headers: &[(&str, &str)],
    ) -> TestResponse {
        let mut request = request(method, uri, headers, "");
        request.extensions_mut().insert(Peer(SocketAddr::new(source.parse().unwrap(), 4711)));
        self.call(request).await
    }

    async fn join_from(&self, source: &str, user: &str) -> TestResponse {
        let join = (Method::POST, &*line("concert"));
        self.call_from(source, join, &[("user-id", user)]).await
    }

    async fn blocked_tickets(&self) -> Vec<(String, String)> {
        let events = self.store.access_events(AccessLog::Tickets, 100).await.unwrap();
        let named = |event: &AccessEvent| {
            (event.user_id.as_ref().unwrap().to_string(), event.rule.id.to_string())
        };
        events.iter().map(named).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_blocked_user_is_refused_with_the_public_reason_and_loses_the_place() {
    let harness = Harness::with_item("concert").await;
    let kim = harness.token("concert", "kim").await;
    let lee = harness.token("concert", "lee").await;
    let contact_url = Some(Some("https://shop.example/help".to_owned()));
    let change = AccessChange { contact_url, ..AccessChange::default() };
    harness.store.change_access(&change, NOW).await.unwrap();
    let rule = json!({
        "kind": "block", "userId": "kim", "publicReason": "Too many accounts.",
        "expiresAt": "2027-06-01T00:00:00Z",
    });
    let rule = harness.enforce(rule).await;
    let refused = harness.poll("concert", &kim).await;
    refused.assert_problem(403, "BLOCKED");
    let problem = refused.json();
    assert_eq!(problem["detail"], "access is blocked: Too many accounts.");
    let notice = json!({
        "reason": "Too many accounts.", "rule": rule.id().as_str(),
        "until": "2027-06-01T00:00:00.000Z", "contactUrl": "https://shop.example/help",
    });
    assert_eq!(problem["blocked"], notice);
    assert!(!refused.text.contains("operators only"), "{}", refused.text);
    eventually(TEST_TIMEOUT, "the next user moves up", async || {
        harness.poll("concert", &lee).await.json()["position"] == 1
    })
    .await;
    harness.join("concert", "kim").await.assert_problem(403, "BLOCKED");
    eventually(TEST_TIMEOUT, "the end is recorded", async || {
        harness.blocked_tickets().await == [("kim".into(), rule.id().to_string())]
    })
    .await;
    // The clock of the rule, not the one of the test.
    let after = daegi_domain::parse_rfc3339("2027-06-01T00:00:00Z").unwrap();
    harness.clock.advance(Duration::from_millis(after - NOW));
    assert_eq!(harness.join("concert", "kim").await.status, 201, "the rule has expired");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_entry_of_a_blocked_user_ends_and_its_order_service_learns_it() {
    let harness = Harness::with_item("concert").await;
    let (kim, lee) = (harness.token("concert", "kim").await, harness.token("concert", "lee").await);
    harness.admit("concert", 2).await;
    harness.until_status("concert", &kim, "ENTERABLE").await;
    harness.enforce(json!({ "kind": "block", "userId": "kim", "itemId": "concert" })).await;
    harness.enforce(json!({ "kind": "block", "userId": "lee", "itemId": "other" })).await;
    let verify = |token: &str| json!({ "token": token }).to_string();
    let path = "/internal/v1/item/concert/entry/verify";
    let verdict = harness.post(path, &verify(&kim)).await.json();
    assert_eq!(verdict, json!({ "valid": false, "reason": "LEFT" }));
    assert_eq!(harness.post(path, &verify(&lee)).await.json()["valid"], true, "another item");
    eventually(TEST_TIMEOUT, "the entry ends", async || {
        harness.store.counts(&[id("concert")]).await.unwrap()[0].entered == 1
    })
    .await;
    harness.poll("concert", &kim).await.assert_problem(403, "BLOCKED");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn streams_and_long_polls_of_a_blocked_user_end_within_two_seconds() {
    let harness = Harness::with_item("concert").await;
    let (kim, lee) = (harness.token("concert", "kim").await, harness.token("concert", "lee").await);
    let mut stream = harness.open_stream("concert", &kim, None).await;
    let mut other = harness.open_stream("concert", &lee, None).await;
    stream.ticket().await;
    assert_eq!(other.ticket().await["position"], 2);
    harness.admit("concert", 1).await;
    assert_eq!(stream.ticket().await["status"], "ENTERABLE", "entries are checked rarely");
    let began = Instant::now();
    let rule = async {
        harness.add_rule(json!({ "kind": "block", "userId": "kim" })).await;
    };
    tokio::join!(rule, stream.assert_ends_with("BLOCKED", 403));
    assert!(began.elapsed() <= IN_FORCE, "{:?}", began.elapsed());
    let held = format!("{}?waitMs=30000", ticket("concert", &lee));
    let began = Instant::now();
    let rule = async {
        harness.add_rule(json!({ "kind": "block", "userId": "lee" })).await;
    };
    let (_, polled) = tokio::join!(rule, harness.get(&held));
    polled.assert_problem(403, "BLOCKED");
    assert!(began.elapsed() <= IN_FORCE, "{:?}", began.elapsed());
    other.assert_ends_with("BLOCKED", 403).await;
    drop((stream, other));
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn networks_and_user_agents_are_refused_without_a_store_call() {
    let harness = Harness::with_item("concert").await;
    harness.add_rule(json!({ "kind": "block", "network": "203.0.113.0/24" })).await;
    harness.enforce(json!({ "kind": "block", "userAgent": "python-requests" })).await;
    let before = harness.store.calls("join");
    for user in ["a", "a", "b"] {
        harness.join_from(CAMPUS, user).await.assert_problem(403, "BLOCKED");
    }
    let headers = [("user-id", "c"), ("user-agent", "Python-Requests/2.31")];
    let join = (Method::POST, &*line("concert"));
    harness.call_from("198.51.100.1", join, &headers).await.assert_problem(403, "BLOCKED");
    assert_eq!(harness.store.calls("join"), before);
    assert_eq!(harness.join_from("198.51.100.1", "d").await.status, 201);
    tokio::time::sleep(IN_FORCE).await;
    let events = harness.store.access_events(AccessLog::Joins, 10).await.unwrap();
    let users: Vec<_> =
        events.iter().map(|event| event.user_id.as_ref().unwrap().as_str()).collect();
    assert_eq!(users, ["c", "b", "a"], "each user once");
    let stored = serde_json::to_string(&events).unwrap();
    assert!(!stored.contains(CAMPUS) && !stored.contains("2.31"), "{stored}");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_invented_user_id_from_a_blocked_network_does_not_end_the_ticket_of_that_user() {
    let harness = Harness::with_item("concert").await;
    let kim = harness.token("concert", "kim").await;
    harness.enforce(json!({ "kind": "block", "network": CAMPUS })).await;
    harness.join_from(CAMPUS, "kim").await.assert_problem(403, "BLOCKED");
    tokio::time::sleep(IN_FORCE).await;
    assert_eq!(harness.poll("concert", &kim).await.json()["position"], 1);
    assert_eq!(harness.store.calls("leave"), 0);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_blocked_client_that_keeps_polling_costs_one_store_call() {
    let harness = Harness::with_item("concert").await;
    let kim = harness.token("concert", "kim").await;
    harness.enforce(json!({ "kind": "block", "userId": "kim" })).await;
    for _ in 0..50 {
        harness.poll("concert", &kim).await.assert_problem(403, "BLOCKED");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(harness.store.calls("leave"), 1);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_list_stays_in_force_while_the_store_is_unavailable() {
    let harness = Harness::with_item("concert").await;
    let kim = harness.token("concert", "kim").await;
    harness.enforce(json!({ "kind": "block", "userId": "kim" })).await;
    harness.store.set_mode(StoreMode::Refusing);
    tokio::time::sleep(IN_FORCE).await;
    harness.poll("concert", &kim).await.assert_problem(403, "BLOCKED");
    harness.store.set_mode(StoreMode::Up);
    eventually(TEST_TIMEOUT, "the ticket ends after the outage", async || {
        !harness.blocked_tickets().await.is_empty()
    })
    .await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_allow_rule_exempts_from_limits_and_challenges() {
    let one: Option<Rate> = Rate::parse("1:1").unwrap();
    let rates = Rates { source_joins: one, user_joins: one, ..Rates::default() };
    let harness = Harness::with_rates("concert", rates).await;
    let policy = Policy { challenge: ChallengePolicy::Pow, ..Policy::default() };
    harness.put("concert", 1000, true, Some(policy)).await;
    tokio::time::sleep(IN_FORCE).await;
    harness.join_from(CAMPUS, "a").await.assert_problem(403, "CHALLENGE_REQUIRED");
    let mut challenged = 1;
    while harness.join_from(CAMPUS, "b").await.json()["code"] == "CHALLENGE_REQUIRED" {
        challenged += 1;
    }
    assert!(challenged < 20, "the source is refused after {challenged} joins");
    harness.join_from(CAMPUS, "b").await.assert_problem(429, "RATE_LIMITED");
    harness.add_rule(json!({ "kind": "block", "userId": "c" })).await;
    harness.enforce(json!({ "kind": "allow", "network": "203.0.113.0/24" })).await;
    for user in ["a", "b", "c"] {
        assert_eq!(harness.join_from(CAMPUS, user).await.status, 201, "{user}");
        assert_eq!(harness.join_from(CAMPUS, user).await.status, 200, "{user}");
    }
    harness.join_from("198.51.100.1", "d").await.assert_problem(403, "CHALLENGE_REQUIRED");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_page_without_scripts_shows_the_reason_and_where_to_complain() {
    let harness = Harness::with_item("concert").await;
    let contact_url = Some(Some("https://shop.example/help?a=1&b=2".to_owned()));
    let change = AccessChange { contact_url, ..AccessChange::default() };
    harness.store.change_access(&change, NOW).await.unwrap();
    let rule = json!({
        "kind": "block", "network": CAMPUS, "publicReason": "Too many <requests>.",
    });
    let rule = harness.enforce(rule).await;
    let page = harness.call_from(CAMPUS, (Method::GET, "/wait/concert"), &[]).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("<h1>Access is blocked</h1>"), "{}", page.text);
    assert!(page.text.contains("Too many &#60;requests&#62;."), "{}", page.text);
    assert!(page.text.contains(rule.id().as_str()));
    assert!(page.text.contains("href=\"https://shop.example/help?a=1&#38;b=2\""), "{}", page.text);
    let pressed = harness.call_from(CAMPUS, (Method::POST, "/wait/concert"), &[]).await;
    let shown = (pressed.status.as_u16(), pressed.header("location"));
    assert_eq!(shown, (303, "/wait/concert?refused=BLOCKED"));
    let other = harness.call_from("198.51.100.1", (Method::GET, "/wait/concert"), &[]).await;
    assert!(!other.text.contains("<h1>Access is blocked</h1>"));
    harness.end().await;
}
