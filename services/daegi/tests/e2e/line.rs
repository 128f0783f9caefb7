//! Ten thousand people at once.

use std::collections::HashMap;

use futures_util::{StreamExt, stream};
use reqwest::StatusCode;
use serde_json::Value;

use crate::room::Room;

const PEOPLE: usize = 10_000;
const CONNECTIONS: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_people_join_at_once_and_are_let_in_in_that_order() {
    for room in Room::each().await {
        room.stock("concert", 20_000).await;
        let joined = everybody_joins(&room, StatusCode::CREATED).await;
        let order = each_position_once(&room, &joined);
        numbers_are_dense(&room, &order);
        let again = everybody_joins(&room, StatusCode::OK).await;
        for (user, ticket) in &joined {
            assert_eq!(again[user]["token"], ticket["token"], "{}: the same token", room.name);
        }
        admitted_in_order(&room, &order).await;
        room.close().await;
    }
}

async fn everybody_joins(room: &Room, expected: StatusCode) -> HashMap<String, Value> {
    let tickets = stream::iter(0..PEOPLE).map(|person| async move {
        let user = format!("person-{person}");
        let answer = room.join("concert", &user).await;
        assert_eq!(answer.status(), expected, "{}", room.name);
        (user, answer.json().await.unwrap())
    });
    tickets.buffer_unordered(CONNECTIONS).collect().await
}

/// The tokens in the order of the positions their holders were told.
fn each_position_once(room: &Room, tickets: &HashMap<String, Value>) -> Vec<String> {
    let mut order = vec![None; PEOPLE];
    for ticket in tickets.values() {
        let position = ticket["position"].as_u64().unwrap() as usize;
        let token = ticket["token"].as_str().unwrap().to_owned();
        let before = order[position - 1].replace(token);
        assert_eq!(before, None, "{}: position {position} was given twice", room.name);
    }
    order.into_iter().map(|token| token.unwrap()).collect()
}

/// The number stands in the first 48 bits of the token's UUID.
fn number_of(token: &str) -> u64 {
    let uuid = &token[token.len() - 36..];
    u64::from_str_radix(&uuid[..13].replace('-', ""), 16).unwrap()
}

fn numbers_are_dense(room: &Room, order: &[String]) {
    let first = number_of(&order[0]);
    for (index, token) in order.iter().enumerate() {
        assert_eq!(number_of(token), first + index as u64, "{}: dense and in order", room.name);
    }
}

/// Admission is stopped twice on the way: whoever is inside then must be exactly the front.
async fn admitted_in_order(room: &Room, order: &[String]) {
    for goal in [2_500, 6_000] {
        room.admin(reqwest::Method::POST, "waiting-item/concert/resume", Value::Null).await;
        room.quota(170).await;
        room.until_entered("concert", goal).await;
        let inside = room.hold("concert").await as usize;
        let statuses = poll_all(room, order).await;
        for (index, (status, position)) in statuses.iter().enumerate() {
            let expected = if index < inside {
                ("ENTERABLE".to_owned(), 0)
            } else {
                ("WAITING".to_owned(), (index - inside + 1) as u64)
            };
            let found = (status.clone(), *position);
            assert_eq!(found, expected, "{}: person {index}, {inside} inside", room.name);
        }
    }
    room.admin(reqwest::Method::POST, "waiting-item/concert/resume", Value::Null).await;
    room.quota(5_000).await;
    room.until_entered("concert", PEOPLE as u64).await;
}

async fn poll_all(room: &Room, order: &[String]) -> Vec<(String, u64)> {
    let polls = stream::iter(order).map(|token| async move {
        let ticket = room.poll_ok("concert", token).await;
        (ticket["status"].as_str().unwrap().to_owned(), ticket["position"].as_u64().unwrap())
    });
    polls.buffered(CONNECTIONS).collect().await
}
