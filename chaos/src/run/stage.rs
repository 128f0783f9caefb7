//! The fleet, and what it depends on. Every process reaches Redis through a cable of its own.

use std::path::Path;
use std::time::Duration;

use daegi_domain::Topics;
use daegi_testkit::{Cable, Condition, Fleet, Kafka, Member, Redis};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::recorder::Recorder;
use crate::history::{Entry, Final, ItemSetup, Millis};
use crate::nemesis::Size;

/// How many there are of each.
pub const SIZE: Size = Size { schedulers: 3, apis: 2, consumers: 2 };

/// How long a leader leads without renewing, in milliseconds.
pub(super) const LEASE: Millis = 2_000;

/// How long an entry lasts. Some people let theirs run out.
const PASS_SECONDS: u64 = 8;

/// How long anybody who only looks waits for an answer.
const GLANCE: Duration = Duration::from_millis(800);

/// Everything that can break.
pub(super) struct Stage {
    pub(super) schedulers: Vec<Slot>,
    pub(super) apis: Vec<Slot>,
    pub(super) consumers: Vec<Slot>,
    pub(super) redis: Mutex<Redis>,
    pub(super) kafka: Mutex<Kafka>,
}

/// A process and its way to Redis.
pub(super) struct Slot {
    pub(super) name: String,
    /// Where people ask it.
    pub(super) public: String,
    /// Where services and operators ask it.
    pub(super) internal: String,
    pub(super) member: Mutex<Member>,
    pub(super) cable: Cable,
}

impl Stage {
    pub(super) async fn open(redis: Redis, kafka: Kafka, logs: &Path) -> anyhow::Result<Self> {
        let fleet = Fleet::new(&redis)
            .with_kafka(&kafka.bootstrap(), &Topics::default())
            .with_logs(logs)
            .with("DAEGI_LEASE_MS", &LEASE.to_string())
            .with("DAEGI_TICK_MS", "100");
        let port = redis.port();
        let stage = Self {
            schedulers: slots(&fleet, "scheduler", SIZE.schedulers, port).await?,
            apis: slots(&fleet, "api", SIZE.apis, port).await?,
            consumers: slots(&fleet, "consumer", SIZE.consumers, port).await?,
            redis: Mutex::new(redis),
            kafka: Mutex::new(kafka),
        };
        for slot in stage.slots() {
            slot.member.lock().await.ready().await;
        }
        Ok(stage)
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.schedulers.iter().chain(&self.apis).chain(&self.consumers)
    }

    pub(super) async fn brokers(&self) -> String {
        self.kafka.lock().await.bootstrap()
    }

    /// What people wait for: room, stock, pass-through, a stock that changes. None has a grace
    /// period, so that whoever is let in out of order is let in wrongly.
    pub(super) async fn put_items(&self) -> Vec<ItemSetup> {
        let item =
            |item: &str, max_active, stock| ItemSetup { item: item.into(), max_active, stock };
        let items = vec![
            item("arena", Some(40), 100_000),
            item("club", Some(15), 100_000),
            item("festival", Some(30), 100_000),
            item("opera", None, 30),
            item("drop", None, 20),
        ];
        for one in &items {
            let mode = if one.item == "festival" { "auto" } else { "always" };
            let body = json!({
                "itemName": one.item, "remainCount": one.stock, "waitingQueueEnabled": true,
                "policy": {
                    "mode": mode, "maxActive": one.max_active, "graceSeconds": 0,
                    "passTtlSeconds": PASS_SECONDS, "tokensPerTick": 2
                }
            });
            let scheduler = self.schedulers[0].member.lock().await;
            scheduler.admin(Method::PUT, &format!("waiting-item/{}", one.item), body).await;
        }
        items
    }

    /// The scheduler that says that it leads, if one does at the moment.
    pub(super) async fn leader(&self) -> Option<&Slot> {
        let asked = self.schedulers.iter().map(async |slot| {
            let said = slot.ask("leader").await;
            said.is_some_and(|said| said["leading"] == true).then_some(slot)
        });
        futures_util::future::join_all(asked).await.into_iter().flatten().next()
    }

    /// Everything runs and is connected again.
    pub(super) async fn heal(&self) {
        for slot in self.slots() {
            slot.cable.set(Condition::Good);
            let mut member = slot.member.lock().await;
            member.resume();
            member.start_again();
        }
    }

    /// Waits until nobody waits, nobody is inside and every event has left the outbox.
    pub(super) async fn settle(&self, deadline: Instant) {
        while Instant::now() < deadline {
            let counts = self.asked("waiting-queue/token-count").await;
            let leader = self.asked("leader").await;
            let quiet = counts["totalWaiting"] == 0 && counts["totalEntered"] == 0;
            if quiet && leader["outboxPending"] == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    pub(super) async fn finals(&self, recorder: &Recorder) {
        let counts = self.asked("waiting-queue/token-count").await;
        for line in counts["items"].as_array().into_iter().flatten() {
            let Some(id) = line["itemId"].as_str() else { continue };
            let item = self.asked(&format!("waiting-item/{id}")).await;
            let count = |field: &str| line[field].as_u64().unwrap_or(0);
            recorder.write(&Entry::Final(Final {
                item: id.to_owned(),
                version: item["version"].as_u64(),
                stock: item["remainCount"].as_u64().unwrap_or(0),
                waiting: count("waitingTokenCount"),
                entered: count("enteredTokenCount"),
            }));
        }
    }

    /// What any scheduler says; nothing if none does.
    async fn asked(&self, path: &str) -> Value {
        for slot in &self.schedulers {
            if let Some(said) = slot.ask(path).await {
                return said;
            }
        }
        Value::Null
    }
}

impl Slot {
    async fn ask(&self, path: &str) -> Option<Value> {
        let member = self.member.lock().await;
        let said = member.try_admin(Method::GET, path, Value::Null);
        tokio::time::timeout(GLANCE, said).await.ok()?.ok()
    }
}

async fn slots(fleet: &Fleet, role: &str, count: usize, redis: u16) -> anyhow::Result<Vec<Slot>> {
    let mut slots = Vec::new();
    for number in 1..=count {
        let cable = Cable::to(redis).await?;
        let store = format!("redis://127.0.0.1:{}", cable.port());
        let member = fleet.start_with(&format!("daegi-{role}"), &[("DAEGI_STORE", &store)]);
        let (public, internal) = (member.public.clone(), member.internal.clone());
        let (name, member) = (format!("{role}-{number}"), Mutex::new(member));
        slots.push(Slot { name, public, internal, member, cable });
    }
    Ok(slots)
}
