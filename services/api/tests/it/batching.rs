use std::collections::BTreeSet;

use futures_util::future::join_all;

use crate::harness::{Harness, line};

#[tokio::test(start_paused = true)]
async fn two_thousand_concurrent_joins_get_dense_positions_in_few_calls() {
    let harness = Harness::with_item("concert").await;
    let before = harness.store.calls("join");
    let users: Vec<String> = (0..2000).map(|n| format!("user-{n}")).collect();
    let joined = join_all(users.iter().map(|user| harness.join("concert", user))).await;
    assert!(joined.iter().all(|answer| answer.status == 201));
    let positions: BTreeSet<u64> =
        joined.iter().map(|answer| answer.json()["position"].as_u64().unwrap()).collect();
    assert!(positions.into_iter().eq(1..=2000));
    let calls = harness.store.calls("join") - before;
    assert!(calls <= 2000 / 50, "{calls} calls for 2000 users");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_user_with_a_hundred_concurrent_joins_has_one_ticket() {
    let harness = Harness::with_item("concert").await;
    let joined = join_all((0..100).map(|_| harness.join("concert", "kim"))).await;
    let new = joined.iter().filter(|answer| answer.status == 201).count();
    let tokens: BTreeSet<String> =
        joined.iter().map(|answer| answer.json()["token"].to_string()).collect();
    assert_eq!((new, tokens.len()), (1, 1));
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_polls_need_no_store_call() {
    let harness = Harness::with_item("concert").await;
    let mut tokens = Vec::new();
    for n in 0..10 {
        tokens.push(harness.token("concert", &format!("user-{n}")).await);
    }
    harness.poll("concert", &tokens[9]).await;
    let calls =
        || ["snapshot", "resolve", "settings", "join"].map(|call| harness.store.calls(call));
    let before = calls();
    for n in 0..1000 {
        let position = harness.poll("concert", &tokens[n % 10]).await.json()["position"].clone();
        assert_eq!(position, n % 10 + 1);
    }
    assert_eq!(calls(), before, "not one call");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_first_requests_for_one_item_share_one_call() {
    let harness = Harness::with_item("concert").await;
    let before = harness.store.calls("snapshot");
    let looked = join_all((0..500).map(|_| async { harness.get(&line("concert")).await })).await;
    assert!(looked.iter().all(|answer| answer.status == 200));
    let nowhere = join_all((0..500).map(|_| async { harness.get(&line("nowhere")).await })).await;
    nowhere.iter().for_each(|answer| answer.assert_problem(404, "ITEM_NOT_FOUND"));
    assert_eq!(harness.store.calls("snapshot") - before, 2);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn polls_of_admitted_tickets_share_calls() {
    let harness = Harness::with_item("concert").await;
    let mut tokens = Vec::new();
    for n in 0..200 {
        tokens.push(harness.token("concert", &format!("user-{n}")).await);
    }
    harness.admit("concert", 200).await;
    harness.until_status("concert", &tokens[0], "ENTERABLE").await;
    let before = harness.store.calls("resolve");
    let polled = join_all(tokens.iter().map(|token| harness.poll("concert", token))).await;
    assert!(polled.iter().all(|answer| answer.json()["status"] == "ENTERABLE"));
    let resolves = harness.store.calls("resolve") - before;
    assert!(resolves <= 3, "{resolves} calls for 200 users");
    harness.end().await;
}
