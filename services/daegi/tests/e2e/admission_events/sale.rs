//! A sale with eight lines, and its fleet.

use std::time::Duration;

use daegi_domain::{ItemId, TicketKeys, Topics};
use daegi_testkit::{Redis, eventually};
use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};

use super::orders::Numbers;
use crate::processes::{Fleet, FleetProcess, TICKET_SECRETS};

const LINES: usize = 8;
const USERS_PER_LINE: usize = 2_500;
pub(super) const USERS: usize = LINES * USERS_PER_LINE;

const MAX_CONCURRENT: usize = 100;

pub(super) struct Sale {
    fleet: Fleet,
    pod: FleetProcess,
    schedulers: Vec<FleetProcess>,
    /// Item and token of each user.
    tickets: Vec<(String, String)>,
}

impl Sale {
    /// Starts a pod, a leader and a standby, and creates lines with quota 0.
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
            // Users do not poll here, so absence must not end their tickets.
            let item = json!({
                "itemName": "concert", "remainCount": 1_000_000, "waitingQueueEnabled": true,
                "policy": { "graceSeconds": 0 }
            });
            schedulers[0].admin(Method::PUT, &format!("waiting-item/line-{line}"), item).await;
        }
        Self { fleet, pod, schedulers, tickets: Vec::new() }
    }

    /// Joins all users and returns their numbers.
    pub(super) async fn join_all(&mut self) -> Numbers {
        let joins = stream::iter(0..USERS).map(|n| self.join(n));
        self.tickets = joins.buffer_unordered(MAX_CONCURRENT).collect().await;
        let keys: TicketKeys = TICKET_SECRETS.parse().unwrap();
        let mut numbers = Numbers::new();
        for (item, token) in &self.tickets {
            let ticket = keys.verify(&ItemId::parse(item).unwrap(), token).unwrap();
            numbers.entry(item.clone()).or_default().insert(ticket.number.0);
        }
        assert!(numbers.values().all(|of_line| of_line.len() == USERS_PER_LINE));
        numbers
    }

    fn line(&self, item: &str) -> String {
        format!("{}/api/v1/item/{item}/waiting-queue", self.pod.public)
    }

    async fn join(&self, n: usize) -> (String, String) {
        let item = format!("line-{}", n % LINES);
        let request = self.fleet.http.post(self.line(&item));
        let request = request.header("user-id", format!("user-{n}"));
        let ticket: Value = request.send().await.unwrap().json().await.unwrap();
        (item, ticket["token"].as_str().unwrap_or_else(|| panic!("{ticket}")).to_owned())
    }

    pub(super) async fn quota(&self, count: u32) {
        let body = json!({ "tokenCountToMove": count });
        let path = "waiting-queue/token-count-to-move";
        self.schedulers[0].admin(Method::PUT, path, body).await;
    }

    /// Waits for this many more admissions.
    pub(super) async fn wait_for_admissions(&self, more: u64) {
        let enough = self.entered().await + more;
        let what = format!("{more} more users are admitted");
        eventually(Duration::from_secs(60), &what, || async { self.entered().await >= enough })
            .await;
    }

    async fn entered(&self) -> u64 {
        let path = "waiting-queue/token-count";
        let counts = self.schedulers[0].admin(Method::GET, path, Value::Null).await;
        counts["totalEntered"].as_u64().unwrap()
    }

    /// Kills the leader and starts another standby.
    pub(super) async fn kill_leader(&mut self) {
        let schedulers = &self.schedulers;
        let leader = eventually(Duration::from_secs(30), "one scheduler leads", || async {
            let first = schedulers[0].is_leader().await;
            if first || schedulers[1].is_leader().await { Some(usize::from(!first)) } else { None }
        });
        let leader = leader.await;
        self.schedulers.remove(leader).kill();
        self.schedulers.push(self.fleet.start_ready("daegi-scheduler").await);
    }

    pub(super) async fn assert_all_enterable(&self) {
        let polls = stream::iter(&self.tickets).map(|(item, token)| async move {
            let request = self.fleet.http.get(format!("{}/{token}", self.line(item)));
            let ticket: Value = request.send().await.unwrap().json().await.unwrap();
            assert_eq!(ticket["status"], "ENTERABLE", "{ticket}");
        });
        polls.buffer_unordered(MAX_CONCURRENT).collect::<Vec<()>>().await;
    }
}
