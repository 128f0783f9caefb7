//! People inside, who order.

use std::collections::BTreeSet;
use std::time::Duration;

use daegi_domain::{EndReason, ItemId, OrderClosed, Outcome, TokenClosed, Topics, UserId};
use daegi_kafka::Record;
use daegi_testkit::eventually;
use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::Value;

use crate::catalogue::{Catalogue, changed};
use crate::member::{Fleet, FleetProcess};

const LINES: usize = 4;
pub(super) const PEOPLE: usize = 1_000;
const SOON: Duration = Duration::from_secs(60);

/// Item, name and token.
type Person = (ItemId, UserId, String);

pub(super) struct Crowd(Vec<Person>);

impl Crowd {
    /// Lets everybody in.
    pub(super) async fn inside(
        fleet: &Fleet,
        scheduler: &FleetProcess,
        catalogue: &mut Catalogue,
    ) -> Self {
        let pod = fleet.start_ready("daegi-api").await;
        let lines = (0..LINES).map(|n| changed(&format!("line-{n}"), 10_000, 1));
        catalogue.publish(&lines.map(|line| catalogue.record(&line)).collect::<Vec<_>>()).await;
        catalogue.settled(scheduler, SOON).await;
        let joins = stream::iter(0..PEOPLE).map(|person| join(fleet, &pod, person));
        let crowd = Self(joins.buffer_unordered(50).collect().await);
        eventually(SOON, "everybody is inside", async || {
            let path = "waiting-queue/token-count";
            let counts = scheduler.admin(Method::GET, path, Value::Null).await;
            counts["totalEntered"] == PEOPLE
        })
        .await;
        crowd
    }

    /// The orders of one round. Everybody's is placed, and given up one round later, which is too
    /// late to count.
    pub(super) fn orders(&self, round: usize, rounds: usize, topics: &Topics) -> Vec<Record> {
        let of = |round: usize| self.0.iter().skip(round).step_by(rounds);
        let placed = of(round).map(|person| order(person, Outcome::Completed));
        let before = round.checked_sub(1).into_iter().flat_map(of);
        let given_up = before.map(|person| order(person, Outcome::Cancelled));
        placed.chain(given_up).map(|order| Record::from_event(&order, topics).unwrap()).collect()
    }

    /// Everybody's ticket ended once, and how their order says.
    pub(super) fn has_ordered_once(&self, closed: &[TokenClosed]) {
        let mut tokens: BTreeSet<&str> =
            self.0.iter().map(|(_, _, token)| token.as_str()).collect();
        for event in closed {
            assert!(tokens.remove(event.token.as_str()), "twice, or unknown: {event:?}");
            assert_eq!(event.reason, EndReason::Completed);
        }
        assert!(tokens.is_empty(), "{} tickets are open", tokens.len());
    }
}

fn order((item_id, user_id, token): &Person, outcome: Outcome) -> OrderClosed {
    OrderClosed {
        event_id: format!("order-of-{user_id}"),
        item_id: item_id.clone(),
        user_id: user_id.clone(),
        token: token.clone(),
        outcome,
        occurred_at: "2026-01-01T00:00:00Z".into(),
    }
}

async fn join(fleet: &Fleet, pod: &FleetProcess, person: usize) -> Person {
    let item = ItemId::parse(&format!("line-{}", person % LINES)).unwrap();
    let user = UserId::parse(&format!("person-{person}")).unwrap();
    let url = format!("{}/api/v1/item/{item}/waiting-queue", pod.public);
    let request = fleet.http.post(url).header("user-id", user.as_str());
    let ticket: Value = request.send().await.unwrap().json().await.unwrap();
    (item, user, ticket["token"].as_str().unwrap_or_else(|| panic!("{ticket}")).to_owned())
}
