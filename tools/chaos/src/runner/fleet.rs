//! The fleet with Redis and Kafka. With a single Redis, every process connects through its own fault proxy; sentinels and cluster nodes
//! announce other addresses, so there is no proxy.

use std::path::Path;
use std::time::Duration;

use daegi_domain::Topics;
use daegi_testkit::{FaultProxy, Fleet, FleetProcess, Kafka, LinkFault, Redis};
use reqwest::Method;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::items::ItemKind;
use super::redis::RedisUnderTest;
use crate::history::{FinalState, ItemSetup, Millis};
use crate::nemesis::Size;

/// Number of processes.
pub const SIZE: Size = Size { schedulers: 3, apis: 2, consumers: 2 };

/// Lease in milliseconds.
pub(super) const LEASE: Millis = 2_000;

/// The outbox limit. Only admissions carry it as an argument, so the proxy recognizes an admission by it.
const OUTBOX_MAX: &str = "99991";
pub(super) const ADMISSION: &[u8] = b"\r\n99991\r\n";

/// Timeout of an admin call.
const ADMIN_TIMEOUT: Duration = Duration::from_millis(800);

/// Limit for retries, longer than any fault.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// Delay between retries.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// All processes and servers of a run.
pub(crate) struct ChaosFleet {
    pub(crate) schedulers: Vec<FleetNode>,
    pub(crate) apis: Vec<FleetNode>,
    pub(crate) consumers: Vec<FleetNode>,
    pub(crate) redis: Mutex<RedisUnderTest>,
    pub(crate) kafka: Mutex<Kafka>,
    /// Locked from the planning of an opening until its draw is in Kafka, and during a total data loss. A loss in a lobby may
    /// remove its newest numbers from the draw, and one before the draw is published draws again; see `docs/RECOVERY.md`.
    pub(super) opening_ahead: Mutex<()>,
}

/// A process with its fault proxy, if it has one.
pub(crate) struct FleetNode {
    pub(crate) name: String,
    /// Public URL.
    pub(crate) public: String,
    /// Internal URL.
    pub(crate) internal: String,
    pub(crate) member: Mutex<FleetProcess>,
    pub(super) proxy: Option<FaultProxy>,
}

impl ChaosFleet {
    pub(crate) async fn start(
        redis: RedisUnderTest,
        kafka: Kafka,
        logs: &Path,
    ) -> anyhow::Result<Self> {
        let fleet = Fleet::with_store(redis.config())
            .with_kafka(&kafka.bootstrap(), &Topics::default())
            .with_logs(logs)
            .env("DAEGI_LEASE_MS", &LEASE.to_string())
            .env("DAEGI_RECOVERY_HOLD_MS", "3000")
            .env("DAEGI_OUTBOX_MAX", OUTBOX_MAX)
            .env("DAEGI_TICK_MS", "500");
        let single = redis.single();
        let fleet = Self {
            schedulers: nodes(&fleet, "scheduler", SIZE.schedulers, single).await?,
            apis: nodes(&fleet, "api", SIZE.apis, single).await?,
            consumers: nodes(&fleet, "consumer", SIZE.consumers, single).await?,
            redis: Mutex::new(redis),
            kafka: Mutex::new(kafka),
            opening_ahead: Mutex::new(()),
        };
        for node in fleet.nodes() {
            node.member.lock().await.wait_ready().await;
        }
        Ok(fleet)
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &FleetNode> {
        self.schedulers.iter().chain(&self.apis).chain(&self.consumers)
    }

    pub(crate) async fn brokers(&self) -> String {
        self.kafka.lock().await.bootstrap()
    }

    /// Creates all items.
    pub(crate) async fn put_items(&self, kinds: &[ItemKind]) -> anyhow::Result<Vec<ItemSetup>> {
        let items = kinds.iter().flat_map(|kind| kind.ids().map(move |id| (kind, kind.setup(id))));
        let put = items.map(async |(kind, item)| {
            self.admin_with_retry(&format!("waiting-item/{}", item.item), kind.admin_json(&item))
                .await?;
            Ok(item)
        });
        futures_util::future::try_join_all(put).await
    }

    /// Sends an admin call to the schedulers in turn until one succeeds.
    async fn admin_with_retry(&self, path: &str, body: Value) -> anyhow::Result<()> {
        let deadline = Instant::now() + RETRY_TIMEOUT;
        while Instant::now() < deadline {
            for node in &self.schedulers {
                let reply = node.admin(Method::PUT, path, body.clone()).await;
                if reply.is_some_and(|reply| reply["itemId"].is_string()) {
                    return Ok(());
                }
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        anyhow::bail!("no scheduler accepts {path}")
    }

    /// The current leader by the admin API.
    pub(super) async fn leader(&self) -> Option<&FleetNode> {
        let replies = self.schedulers.iter().map(async |node| {
            let reply = node.admin_get("leader").await;
            reply.is_some_and(|reply| reply["leading"] == true).then_some(node)
        });
        futures_util::future::join_all(replies).await.into_iter().flatten().next()
    }

    /// Restarts and reconnects all processes.
    pub(super) async fn restore_all(&self) {
        for node in self.nodes() {
            node.set(LinkFault::None);
            let mut member = node.member.lock().await;
            member.resume();
            member.start_again();
        }
    }

    /// Waits until no ticket waits, no entry is left, the outbox is empty, and the last published items are stored.
    pub(super) async fn wait_until_idle(
        &self,
        items: &[ItemSetup],
        version: u64,
        deadline: Instant,
    ) {
        let is_idle =
            |end: &FinalState| (end.waiting, end.entered, end.version) == (0, 0, Some(version));
        while Instant::now() < deadline {
            let leader = self.admin_any("leader").await;
            let finals = self.final_states(items).await.unwrap_or_default();
            if leader["outboxPending"] == 0 && !finals.is_empty() && finals.iter().all(is_idle) {
                return;
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// The final state of all items; retries until a scheduler answers.
    pub(super) async fn finals(&self, items: &[ItemSetup]) -> anyhow::Result<Vec<FinalState>> {
        let deadline = Instant::now() + RETRY_TIMEOUT;
        loop {
            if let Some(finals) = self.final_states(items).await {
                return Ok(finals);
            }
            anyhow::ensure!(
                Instant::now() < deadline,
                "no scheduler returns the final state of all items"
            );
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    async fn final_states(&self, items: &[ItemSetup]) -> Option<Vec<FinalState>> {
        let counts = self.admin_any("waiting-queue/token-count").await;
        let lines = counts["items"].as_array()?;
        let mut finals = Vec::new();
        for ItemSetup { item: id, .. } in items {
            let line = lines.iter().find(|line| line["itemId"] == id.as_str())?;
            let item = self.admin_any(&format!("waiting-item/{id}")).await;
            finals.push(FinalState {
                item: id.clone(),
                version: item["version"].as_u64(),
                stock: item["remainCount"].as_u64()?,
                waiting: line["waitingTokenCount"].as_u64()?,
                entered: line["enteredTokenCount"].as_u64()?,
            });
        }
        Some(finals)
    }

    /// The reply of any scheduler; null if none answers.
    async fn admin_any(&self, path: &str) -> Value {
        for node in &self.schedulers {
            if let Some(reply) = node.admin_get(path).await {
                return reply;
            }
        }
        Value::Null
    }
}

impl FleetNode {
    /// Sets the condition of the proxy; without a proxy it does nothing.
    pub(super) fn set(&self, fault: LinkFault) {
        if let Some(proxy) = &self.proxy {
            proxy.set_fault(fault);
        }
    }

    async fn admin_get(&self, path: &str) -> Option<Value> {
        self.admin(Method::GET, path, Value::Null).await
    }

    /// Returns `None` if the process does not answer within `ADMIN_TIMEOUT`.
    pub(super) async fn admin(&self, method: Method, path: &str, body: Value) -> Option<Value> {
        let reply = async {
            let member = self.member.lock().await;
            member.try_admin(method, path, body).await.ok()
        };
        tokio::time::timeout(ADMIN_TIMEOUT, reply).await.ok()?
    }
}

async fn nodes(
    fleet: &Fleet,
    role: &str,
    count: usize,
    redis: Option<&Redis>,
) -> anyhow::Result<Vec<FleetNode>> {
    let mut nodes = Vec::new();
    for number in 1..=count {
        let proxy = match redis {
            Some(redis) => Some(FaultProxy::start(redis.port()).await?),
            None => None,
        };
        let store = redis.zip(proxy.as_ref());
        let store = store.map(|(redis, proxy)| redis.config_at(proxy.port()).url);
        let settings: Vec<_> = store.iter().map(|store| ("DAEGI_STORE", store.as_str())).collect();
        let member = fleet.start_with(&format!("daegi-{role}"), &settings);
        let (public, internal) = (member.public.clone(), member.internal.clone());
        let (name, member) = (format!("{role}-{number}"), Mutex::new(member));
        nodes.push(FleetNode { name, public, internal, member, proxy });
    }
    Ok(nodes)
}
