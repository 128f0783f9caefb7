//! Admitted users who order.

use std::collections::BTreeSet;
use std::time::Duration;

use daegi_domain::{EndReason, ItemId, OrderClosed, Outcome, TokenClosed, Topics, UserId};
use daegi_kafka::Record;
use daegi_testkit::eventually;
use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::Value;

use crate::processes::{Fleet, FleetProcess};
use crate::product_service::{ProductService, changed};

const LINES: usize = 4;
pub(super) const USERS: usize = 1_000;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Item, user and token of an entry.
type UserEntry = (ItemId, UserId, String);

pub(super) struct VirtualUsers(Vec<UserEntry>);

impl VirtualUsers {
    /// Joins all users and waits until they are admitted.
    pub(super) async fn admitted(
        fleet: &Fleet,
        scheduler: &FleetProcess,
        product_service: &mut ProductService,
    ) -> Self {
        let pod = fleet.start_ready("daegi-api").await;
        let lines = (0..LINES).map(|n| changed(&format!("line-{n}"), 10_000, 1));
        product_service
            .publish(&lines.map(|line| product_service.record(&line)).collect::<Vec<_>>())
            .await;
        product_service.settled(scheduler, TEST_TIMEOUT).await;
        let joins = stream::iter(0..USERS).map(|n| join(fleet, &pod, n));
        let users = Self(joins.buffer_unordered(50).collect().await);
        eventually(TEST_TIMEOUT, "all users are admitted", async || {
            let path = "waiting-queue/token-count";
            let counts = scheduler.admin(Method::GET, path, Value::Null).await;
            counts["totalEntered"] == USERS
        })
        .await;
        users
    }

    /// Returns the orders of one round. Each order is completed in its round and cancelled one round
    /// later, when the cancellation has no effect any more.
    pub(super) fn orders(&self, round: usize, rounds: usize, topics: &Topics) -> Vec<Record> {
        let users_of = |round: usize| self.0.iter().skip(round).step_by(rounds);
        let completed = users_of(round).map(|user| order(user, Outcome::Completed));
        let before = round.checked_sub(1).into_iter().flat_map(users_of);
        let cancelled = before.map(|user| order(user, Outcome::Cancelled));
        completed
            .chain(cancelled)
            .map(|order| Record::from_event(&order, topics).unwrap())
            .collect()
    }

    /// Asserts that each ticket ended once, as COMPLETED.
    pub(super) fn assert_completed_once(&self, closed: &[TokenClosed]) {
        let mut tokens: BTreeSet<&str> =
            self.0.iter().map(|(_, _, token)| token.as_str()).collect();
        for event in closed {
            assert!(tokens.remove(event.token.as_str()), "twice, or unknown: {event:?}");
            assert_eq!(event.reason, EndReason::Completed);
        }
        assert!(tokens.is_empty(), "{} tickets have not ended", tokens.len());
    }
}

fn order((item_id, user_id, token): &UserEntry, outcome: Outcome) -> OrderClosed {
    OrderClosed {
        event_id: format!("order-of-{user_id}"),
        item_id: item_id.clone(),
        user_id: user_id.clone(),
        token: token.clone(),
        outcome,
        occurred_at: "2026-01-01T00:00:00Z".into(),
    }
}

async fn join(fleet: &Fleet, pod: &FleetProcess, n: usize) -> UserEntry {
    let item = ItemId::parse(&format!("line-{}", n % LINES)).unwrap();
    let user = UserId::parse(&format!("user-{n}")).unwrap();
    let url = format!("{}/api/v1/item/{item}/waiting-queue", pod.public);
    let request = fleet.http.post(url).header("user-id", user.as_str());
    let ticket: Value = request.send().await.unwrap().json().await.unwrap();
    (item, user, ticket["token"].as_str().unwrap_or_else(|| panic!("{ticket}")).to_owned())
}
