//! 10,000 users join concurrently.

use std::collections::HashMap;

use futures_util::{StreamExt, stream};
use reqwest::StatusCode;
use serde_json::Value;

use crate::harness::DaegiHarness;

const USERS: usize = 10_000;
const CONNECTIONS: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_users_join_concurrently_and_are_admitted_in_order() {
    for harness in DaegiHarness::each().await {
        harness.stock("concert", 20_000).await;
        let joined = join_all(&harness, StatusCode::CREATED).await;
        let order = tokens_by_position(&harness, &joined);
        assert_dense_numbers(&harness, &order);
        let again = join_all(&harness, StatusCode::OK).await;
        for (user, ticket) in &joined {
            assert_eq!(again[user]["token"], ticket["token"], "{}: the same token", harness.name);
        }
        assert_admitted_in_order(&harness, &order).await;
        harness.close().await;
    }
}

async fn join_all(harness: &DaegiHarness, expected: StatusCode) -> HashMap<String, Value> {
    let tickets = stream::iter(0..USERS).map(|n| async move {
        let user = format!("user-{n}");
        let answer = harness.join("concert", &user).await;
        assert_eq!(answer.status(), expected, "{}", harness.name);
        (user, answer.json().await.unwrap())
    });
    tickets.buffer_unordered(CONNECTIONS).collect().await
}

/// Returns the tokens by position. Panics if a position was issued twice.
fn tokens_by_position(harness: &DaegiHarness, tickets: &HashMap<String, Value>) -> Vec<String> {
    let mut order = vec![None; USERS];
    for ticket in tickets.values() {
        let position = ticket["position"].as_u64().unwrap() as usize;
        let token = ticket["token"].as_str().unwrap().to_owned();
        let before = order[position - 1].replace(token);
        assert_eq!(before, None, "{}: position {position} was issued twice", harness.name);
    }
    order.into_iter().map(|token| token.unwrap()).collect()
}

/// Reads the number from the first 48 bits of the token's UUID.
fn number_of(token: &str) -> u64 {
    let uuid = &token[token.len() - 36..];
    u64::from_str_radix(&uuid[..13].replace('-', ""), 16).unwrap()
}

fn assert_dense_numbers(harness: &DaegiHarness, order: &[String]) {
    let first = number_of(&order[0]);
    for (index, token) in order.iter().enumerate() {
        assert_eq!(number_of(token), first + index as u64, "{}: dense and in order", harness.name);
    }
}

/// Stops admission twice and asserts that exactly the front of the line is admitted.
async fn assert_admitted_in_order(harness: &DaegiHarness, order: &[String]) {
    for goal in [2_500, 6_000] {
        harness.admin(reqwest::Method::POST, "waiting-item/concert/resume", Value::Null).await;
        harness.quota(170).await;
        harness.until_entered("concert", goal).await;
        let admitted = harness.hold("concert").await as usize;
        let statuses = poll_all(harness, order).await;
        for (index, (status, position)) in statuses.iter().enumerate() {
            let expected = if index < admitted {
                ("ENTERABLE".to_owned(), 0)
            } else {
                ("WAITING".to_owned(), (index - admitted + 1) as u64)
            };
            let found = (status.clone(), *position);
            assert_eq!(found, expected, "{}: index {index}, {admitted} admitted", harness.name);
        }
    }
    harness.admin(reqwest::Method::POST, "waiting-item/concert/resume", Value::Null).await;
    harness.quota(5_000).await;
    harness.until_entered("concert", USERS as u64).await;
}

async fn poll_all(harness: &DaegiHarness, order: &[String]) -> Vec<(String, u64)> {
    let polls = stream::iter(order).map(|token| async move {
        let ticket = harness.poll_ok("concert", token).await;
        (ticket["status"].as_str().unwrap().to_owned(), ticket["position"].as_u64().unwrap())
    });
    polls.buffered(CONNECTIONS).collect().await
}
