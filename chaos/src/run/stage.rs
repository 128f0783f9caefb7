//! The fleet, and what it depends on. Every process reaches a Redis that is alone through a cable of
//! its own; from sentinels and cluster nodes it learns other addresses, and there is no such way.

use std::path::Path;
use std::time::Duration;

use daegi_domain::Topics;
use daegi_testkit::{Cable, Condition, Fleet, Kafka, Member, Redis};
use reqwest::Method;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::catalogue::Kind;
use super::servers::Servers;
use crate::history::{Final, ItemSetup, Millis};
use crate::nemesis::Size;

/// How many there are of each.
pub const SIZE: Size = Size { schedulers: 3, apis: 2, consumers: 2 };

/// How long a leader leads without renewing, in milliseconds.
pub(super) const LEASE: Millis = 2_000;

/// The most events the outbox may hold. Only calls that let people in say it, and this is how one
/// is known on its way to Redis.
const OUTBOX_MAX: &str = "99991";
pub(super) const ADMISSION: &[u8] = b"\r\n99991\r\n";

/// How long anybody who only looks waits for an answer.
const GLANCE: Duration = Duration::from_millis(800);

/// How long somebody is asked again, before the run fails: longer than anything is broken.
const INSISTENCE: Duration = Duration::from_secs(60);

/// The pause before somebody is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// Everything that can break.
pub(crate) struct Stage {
    pub(crate) schedulers: Vec<Slot>,
    pub(crate) apis: Vec<Slot>,
    pub(crate) consumers: Vec<Slot>,
    pub(crate) redis: Mutex<Servers>,
    pub(crate) kafka: Mutex<Kafka>,
}

/// A process and its way to Redis, if it has one of its own.
pub(crate) struct Slot {
    pub(crate) name: String,
    /// Where people ask it.
    pub(crate) public: String,
    /// Where services and operators ask it.
    pub(crate) internal: String,
    pub(crate) member: Mutex<Member>,
    pub(super) cable: Option<Cable>,
}

impl Stage {
    pub(crate) async fn open(redis: Servers, kafka: Kafka, logs: &Path) -> anyhow::Result<Self> {
        let fleet = Fleet::at(&redis.url())
            .with_kafka(&kafka.bootstrap(), &Topics::default())
            .with_logs(logs)
            .with("DAEGI_LEASE_MS", &LEASE.to_string())
            .with("DAEGI_RECOVERY_HOLD_MS", "3000")
            .with("DAEGI_OUTBOX_MAX", OUTBOX_MAX)
            .with("DAEGI_TICK_MS", "500");
        let port = redis.alone().map(Redis::port);
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

    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.schedulers.iter().chain(&self.apis).chain(&self.consumers)
    }

    pub(crate) async fn brokers(&self) -> String {
        self.kafka.lock().await.bootstrap()
    }

    /// Creates every item, or tells its policy again.
    pub(crate) async fn put_items(&self, kinds: &[Kind]) -> anyhow::Result<Vec<ItemSetup>> {
        let items = kinds.iter().flat_map(|kind| kind.ids().map(move |id| (kind, kind.setup(id))));
        let put = items.map(async |(kind, item)| {
            self.insist(&format!("waiting-item/{}", item.item), kind.described(&item)).await?;
            Ok(item)
        });
        futures_util::future::try_join_all(put).await
    }

    /// Tells any scheduler, until one has understood.
    async fn insist(&self, path: &str, body: Value) -> anyhow::Result<()> {
        let deadline = Instant::now() + INSISTENCE;
        while Instant::now() < deadline {
            for slot in &self.schedulers {
                let answer = slot.tell(Method::PUT, path, body.clone()).await;
                if answer.is_some_and(|answer| answer["itemId"].is_string()) {
                    return Ok(());
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
        anyhow::bail!("no scheduler takes {path}")
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
            slot.set(Condition::Good);
            let mut member = slot.member.lock().await;
            member.resume();
            member.start_again();
        }
    }

    /// Waits until nobody waits, nobody is inside, every event has left the outbox, and what the product
    /// service said last holds.
    pub(super) async fn settle(&self, items: &[ItemSetup], version: u64, deadline: Instant) {
        let is_quiet =
            |end: &Final| (end.waiting, end.entered, end.version) == (0, 0, Some(version));
        while Instant::now() < deadline {
            let leader = self.asked("leader").await;
            let finals = self.look(items).await.unwrap_or_default();
            if leader["outboxPending"] == 0 && !finals.is_empty() && finals.iter().all(is_quiet) {
                return;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// How every item has ended, asked until somebody knows.
    pub(super) async fn finals(&self, items: &[ItemSetup]) -> anyhow::Result<Vec<Final>> {
        let deadline = Instant::now() + INSISTENCE;
        loop {
            if let Some(finals) = self.look(items).await {
                return Ok(finals);
            }
            anyhow::ensure!(Instant::now() < deadline, "no scheduler tells how all items ended");
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn look(&self, items: &[ItemSetup]) -> Option<Vec<Final>> {
        let counts = self.asked("waiting-queue/token-count").await;
        let lines = counts["items"].as_array()?;
        let mut finals = Vec::new();
        for ItemSetup { item: id, .. } in items {
            let line = lines.iter().find(|line| line["itemId"] == id.as_str())?;
            let item = self.asked(&format!("waiting-item/{id}")).await;
            finals.push(Final {
                item: id.clone(),
                version: item["version"].as_u64(),
                stock: item["remainCount"].as_u64()?,
                waiting: line["waitingTokenCount"].as_u64()?,
                entered: line["enteredTokenCount"].as_u64()?,
            });
        }
        Some(finals)
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
    /// Whoever has no way of its own keeps it as it is.
    pub(super) fn set(&self, condition: Condition) {
        if let Some(cable) = &self.cable {
            cable.set(condition);
        }
    }

    async fn ask(&self, path: &str) -> Option<Value> {
        self.tell(Method::GET, path, Value::Null).await
    }

    /// None if it does not answer at once, or is being ended.
    async fn tell(&self, method: Method, path: &str, body: Value) -> Option<Value> {
        let said = async {
            let member = self.member.lock().await;
            member.try_admin(method, path, body).await.ok()
        };
        tokio::time::timeout(GLANCE, said).await.ok()?
    }
}

async fn slots(
    fleet: &Fleet,
    role: &str,
    count: usize,
    redis: Option<u16>,
) -> anyhow::Result<Vec<Slot>> {
    let mut slots = Vec::new();
    for number in 1..=count {
        let cable = match redis {
            Some(port) => Some(Cable::to(port).await?),
            None => None,
        };
        let store = cable.iter().map(|cable| format!("redis://127.0.0.1:{}", cable.port()));
        let store: Vec<_> = store.collect();
        let settings: Vec<_> = store.iter().map(|store| ("DAEGI_STORE", store.as_str())).collect();
        let member = fleet.start_with(&format!("daegi-{role}"), &settings);
        let (public, internal) = (member.public.clone(), member.internal.clone());
        let (name, member) = (format!("{role}-{number}"), Mutex::new(member));
        slots.push(Slot { name, public, internal, member, cable });
    }
    Ok(slots)
}
