//! A sale that many people wait for, and its fleet.

use std::time::Duration;

use daegi_domain::{ItemId, TicketKeys, Topics};
use daegi_testkit::{Redis, eventually};
use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};

use super::orders::Numbers;
use crate::member::{Fleet, FleetProcess, TICKET_SECRETS};

const LINES: usize = 8;
const PEOPLE: usize = 2_500;
pub(super) const EVERYBODY: usize = LINES * PEOPLE;

/// So many requests are under way at once.
const AT_ONCE: usize = 100;

pub(super) struct Sale {
    fleet: Fleet,
    pod: FleetProcess,
    schedulers: Vec<FleetProcess>,
    /// Item and token of everybody.
    tickets: Vec<(String, String)>,
}

impl Sale {
    /// A pod, a leader, a standby, and lines that do not move yet.
    pub(super) async fn open(redis: &Redis, brokers: &str) -> Self {
        let fleet = Fleet::new(redis)
            .with_kafka(brokers, &Topics::default())
            .env("DAEGI_TOKEN_COUNT_TO_MOVE", "0");
        let pod = fleet.start_ready("daegi-api").await;
        let schedulers = vec![
            fleet.start_ready("daegi-scheduler").await,
            fleet.start_ready("daegi-scheduler").await,
        ];
        for line in 0..LINES {
            // Nobody polls here, so nobody may be missed for it.
            let item = json!({
                "itemName": "concert", "remainCount": 1_000_000, "waitingQueueEnabled": true,
                "policy": { "graceSeconds": 0 }
            });
            schedulers[0].admin(Method::PUT, &format!("waiting-item/line-{line}"), item).await;
        }
        Self { fleet, pod, schedulers, tickets: Vec::new() }
    }

    /// Returns the numbers that people were given.
    pub(super) async fn everybody_joins(&mut self) -> Numbers {
        let joins = stream::iter(0..EVERYBODY).map(|person| self.join(person));
        self.tickets = joins.buffer_unordered(AT_ONCE).collect().await;
        let keys: TicketKeys = TICKET_SECRETS.parse().unwrap();
        let mut numbers = Numbers::new();
        for (item, token) in &self.tickets {
            let ticket = keys.verify(&ItemId::parse(item).unwrap(), token).unwrap();
            numbers.entry(item.clone()).or_default().insert(ticket.number.0);
        }
        assert!(numbers.values().all(|of_line| of_line.len() == PEOPLE));
        numbers
    }

    fn line(&self, item: &str) -> String {
        format!("{}/api/v1/item/{item}/waiting-queue", self.pod.public)
    }

    async fn join(&self, person: usize) -> (String, String) {
        let item = format!("line-{}", person % LINES);
        let request = self.fleet.http.post(self.line(&item));
        let request = request.header("user-id", format!("person-{person}"));
        let ticket: Value = request.send().await.unwrap().json().await.unwrap();
        (item, ticket["token"].as_str().unwrap_or_else(|| panic!("{ticket}")).to_owned())
    }

    pub(super) async fn quota(&self, count: u32) {
        let body = json!({ "tokenCountToMove": count });
        let path = "waiting-queue/token-count-to-move";
        self.schedulers[0].admin(Method::PUT, path, body).await;
    }

    /// Waits until so many more are inside.
    pub(super) async fn let_in(&self, more: u64) {
        let enough = self.entered().await + more;
        let what = format!("{more} more people are inside");
        eventually(Duration::from_secs(60), &what, || async { self.entered().await >= enough })
            .await;
    }

    async fn entered(&self) -> u64 {
        let path = "waiting-queue/token-count";
        let counts = self.schedulers[0].admin(Method::GET, path, Value::Null).await;
        counts["totalEntered"].as_u64().unwrap()
    }

    /// Kills whoever leads; a new process joins the standby.
    pub(super) async fn kill_leader(&mut self) {
        let schedulers = &self.schedulers;
        let leader = eventually(Duration::from_secs(30), "somebody leads", || async {
            let first = schedulers[0].is_leader().await;
            if first || schedulers[1].is_leader().await { Some(usize::from(!first)) } else { None }
        });
        let leader = leader.await;
        self.schedulers.remove(leader).kill();
        self.schedulers.push(self.fleet.start_ready("daegi-scheduler").await);
    }

    pub(super) async fn everybody_may_enter(&self) {
        let polls = stream::iter(&self.tickets).map(|(item, token)| async move {
            let request = self.fleet.http.get(format!("{}/{token}", self.line(item)));
            let ticket: Value = request.send().await.unwrap().json().await.unwrap();
            assert_eq!(ticket["status"], "ENTERABLE", "{ticket}");
        });
        polls.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    }
}
