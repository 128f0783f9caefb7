use axum::http::Method;

use crate::harness::{Harness, line, request};

#[tokio::test(start_paused = true)]
async fn joining_again_returns_the_same_ticket() {
    let harness = Harness::with_item("concert").await;
    let first = harness.join("concert", "kim").await;
    assert_eq!(first.status, 201);
    assert_eq!(first.header("cache-control"), "no-store");
    assert_eq!(first.header("content-type"), "application/json");
    let again = harness.join("concert", "kim").await;
    assert_eq!(again.status, 200);
    assert_eq!(first.json()["token"], again.json()["token"]);
    assert_eq!(again.json()["position"], 1);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_ticket_has_exactly_the_fields_of_the_contract() {
    let harness = Harness::with_item("concert").await;
    let ticket = harness.join("concert", "kim").await.json();
    let fields: Vec<&str> = ticket.as_object().unwrap().keys().map(String::as_str).collect();
    let contract = "beaconRound cohortRank drawing entryUrl etaSeconds itemId lane lineState opensAt opensInMs pass \
                    passExpiresAt pollAfterMs position status stockAhead token userId waitingCount";
    assert_eq!(fields, contract.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ticket["itemId"], "concert");
    assert_eq!(ticket["userId"], "kim");
    assert_eq!(ticket["status"], "WAITING");
    assert_eq!(ticket["waitingCount"], 1);
    assert_eq!(ticket["lineState"], "OPEN");
    assert!(ticket["token"].as_str().unwrap().starts_with("kim-concert-"));
    for unknown in ["pass", "passExpiresAt", "entryUrl", "opensAt", "cohortRank", "lane"] {
        assert!(ticket[unknown].is_null(), "{unknown}");
    }
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn positions_follow_the_order_of_joins() {
    let harness = Harness::with_item("concert").await;
    for (place, user) in ["kim", "lee", "park"].into_iter().enumerate() {
        let ticket = harness.join("concert", user).await.json();
        assert_eq!(ticket["position"], place + 1);
        assert_eq!(ticket["waitingCount"], place + 1, "at least the position");
    }
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_user_may_be_in_the_body() {
    let harness = Harness::with_item("concert").await;
    let joined = harness.post(&line("concert"), r#"{"userId":"kim@example.com"}"#).await;
    assert_eq!(joined.status, 201);
    assert_eq!(joined.json()["userId"], "kim@example.com");
    let both = [("user-id", "lee"), ("content-type", "application/json")];
    let agree = request(Method::POST, &line("concert"), &both, r#"{"userId":"lee"}"#);
    assert_eq!(harness.call(agree).await.status, 201);
    let differ = request(Method::POST, &line("concert"), &both, r#"{"userId":"kim"}"#);
    harness.call(differ).await.assert_problem(400, "INVALID_REQUEST");
    let empty = request(Method::POST, &line("concert"), &both, "{}");
    assert_eq!(harness.call(empty).await.status, 200, "the header is enough");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_auto_line_admits_directly() {
    let harness = Harness::with_item("concert").await;
    let policy = daegi_domain::Policy {
        mode: daegi_domain::Mode::Auto,
        entry_url: Some("/shop?pass={pass}&token={token}".into()),
        ..Default::default()
    };
    harness.put("concert", 10, true, Some(policy)).await;
    let ticket = harness.join("concert", "kim@example.com").await.json();
    assert_eq!(ticket["status"], "ENTERABLE");
    assert_eq!(ticket["position"], 0);
    assert_eq!(ticket["pollAfterMs"], 0);
    let url = ticket["entryUrl"].as_str().unwrap();
    assert!(url.contains(ticket["pass"].as_str().unwrap()) && url.contains("kim%40"), "{url}");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_line_refuses_new_users_and_keeps_those_in_it() {
    let harness = Harness::with_item("concert").await;
    let policy = daegi_domain::Policy { max_waiting: Some(2), ..Default::default() };
    harness.put("concert", 10, true, Some(policy)).await;
    for user in ["kim", "lee"] {
        assert_eq!(harness.join("concert", user).await.status, 201);
    }
    let refused = harness.join("concert", "park").await;
    refused.assert_problem(429, "LINE_FULL");
    let seconds: u32 = refused.header("retry-after").parse().unwrap();
    assert!((10..=30).contains(&seconds), "{seconds}");
    assert_eq!(harness.join("concert", "kim").await.status, 200, "in line already");
    harness.end().await;
}
