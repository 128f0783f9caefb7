//! Three masters, each with a replica and a third of the slots.

use anyhow::Context;
use daegi_store::RedisConfig;
use futures_util::future::try_join_all;

use super::access::Access;
use super::kind::Kind;
use super::{CLUSTER_READY_TIMEOUT, Redis, restart_stopped, started_or_skip};
use crate::eventually::eventually;
use crate::port::free_port;

const MASTERS: usize = 3;
const SLOTS: usize = 16384;

/// Six nodes, stopped with the value.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

/// Starts a cluster, or returns `None` as [`super::redis_or_skip`].
///
/// # Panics
/// As [`super::redis_or_skip`].
pub async fn redis_cluster_or_skip() -> Option<RedisCluster> {
    started_or_skip(RedisCluster::start().await)
}

impl RedisCluster {
    /// Starts all nodes and waits until a fail-over would work.
    ///
    /// # Errors
    /// If `redis-server` is missing or something does not start.
    pub async fn start() -> anyhow::Result<Self> {
        let ports: Vec<u16> = (0..2 * MASTERS).map(|_| free_port()).collect();
        let access = Access::chosen()?;
        let nodes = ports.iter().map(|bus| Redis::launched(node(*bus), &access));
        let nodes = try_join_all(nodes).await?;
        let cluster = Self { nodes };
        cluster.assign_slots().await?;
        cluster.meet_nodes(&ports).await?;
        cluster.assign_replicas().await?;
        Ok(cluster)
    }

    /// Returns the address for daegi: two nodes are enough to find the others.
    #[must_use]
    pub fn url(&self) -> String {
        self.config().url
    }

    /// Returns the address for daegi with its files.
    #[must_use]
    pub fn config(&self) -> RedisConfig {
        let (first, second) = (&self.nodes[0], &self.nodes[1]);
        let hosts = format!("127.0.0.1:{},127.0.0.1:{}", first.port(), second.port());
        first.access.config("+cluster", &hosts)
    }

    /// Returns the current master of a key, as the other nodes see it.
    ///
    /// # Errors
    /// If no node replies.
    pub async fn master_of(&mut self, key: &str) -> anyhow::Result<&mut Redis> {
        let port = self.owner(key).await?;
        self.nodes.iter_mut().find(|node| node.port() == port).context("an unknown node is master")
    }

    /// Returns a current master that does not own this key.
    ///
    /// # Errors
    /// If no node replies.
    pub async fn another_master(&mut self, key: &str) -> anyhow::Result<&mut Redis> {
        let owner = self.owner(key).await?;
        for at in 0..self.nodes.len() {
            if self.nodes[at].port() != owner && is_master(&self.nodes[at]).await {
                return Ok(&mut self.nodes[at]);
            }
        }
        anyhow::bail!("there is no other master")
    }

    /// Restarts stopped nodes, and waits until a fail-over would work again.
    ///
    /// # Errors
    /// If one does not start.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        restart_stopped(&mut self.nodes).await?;
        self.wait_until_all("all slots are served", &["CLUSTER", "INFO"], "cluster_state:ok", ..)
            .await;
        Ok(())
    }

    /// Returns the node on a port.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn at(&self, port: u16) -> &Redis {
        let found = self.nodes.iter().find(|node| node.port() == port);
        found.unwrap_or_else(|| panic!("no node on port {port}"))
    }

    /// Deletes all data.
    ///
    /// # Errors
    /// If a master does not reply.
    pub async fn flush(&self) -> anyhow::Result<()> {
        for node in &self.nodes {
            if is_master(node).await {
                node.command::<()>(&["FLUSHALL"]).await?;
            }
        }
        Ok(())
    }

    async fn owner(&self, key: &str) -> anyhow::Result<u16> {
        for node in &self.nodes {
            let Ok(slot) = node.command::<u16>(&["CLUSTER", "KEYSLOT", key]).await else {
                continue;
            };
            let ranges: Vec<(u16, u16, redis::Value)> = ranges(node).await?;
            let range =
                ranges.into_iter().find(|(first, last, _)| (*first..=*last).contains(&slot));
            let (_, _, master) = range.context("no node owns the slot")?;
            let (_, port, _): (String, u16, redis::Value) =
                redis::from_redis_value(first_three(master))?;
            return Ok(port);
        }
        anyhow::bail!("no node replies")
    }

    /// Assigns slots to each master, before the nodes meet.
    async fn assign_slots(&self) -> anyhow::Result<()> {
        for (at, node) in self.nodes.iter().enumerate() {
            let epoch = (at + 1).to_string();
            node.command::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await?;
            if at < MASTERS {
                let (first, last) = (at * SLOTS / MASTERS, (at + 1) * SLOTS / MASTERS - 1);
                let range = [first.to_string(), last.to_string()];
                node.command::<()>(&["CLUSTER", "ADDSLOTSRANGE", &range[0], &range[1]]).await?;
            }
        }
        Ok(())
    }

    async fn meet_nodes(&self, buses: &[u16]) -> anyhow::Result<()> {
        for (node, bus) in self.nodes.iter().zip(buses).skip(1) {
            let (port, bus) = (node.port().to_string(), bus.to_string());
            self.nodes[0].command::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).await?;
        }
        let known = format!("cluster_known_nodes:{}", self.nodes.len());
        self.wait_until_all("the nodes know each other", &["CLUSTER", "INFO"], &known, ..).await;
        Ok(())
    }

    async fn assign_replicas(&self) -> anyhow::Result<()> {
        let (masters, replicas) = self.nodes.split_at(MASTERS);
        for (master, replica) in masters.iter().zip(replicas) {
            let id: String = master.command(&["CLUSTER", "MYID"]).await?;
            replica.command::<()>(&["CLUSTER", "REPLICATE", &id]).await?;
        }
        let up = "master_link_status:up";
        self.wait_until_all("the replicas follow", &["INFO", "replication"], up, MASTERS..).await;
        self.wait_until_all("all slots are served", &["CLUSTER", "INFO"], "cluster_state:ok", ..)
            .await;
        // A node votes only for replicas that it knows.
        for node in &self.nodes {
            eventually(CLUSTER_READY_TIMEOUT, "all nodes know the replicas", || async {
                let seen: String = node.command(&["CLUSTER", "NODES"]).await.unwrap_or_default();
                seen.lines().filter(|line| line.contains("slave")).count() == MASTERS
            })
            .await;
        }
        Ok(())
    }

    async fn wait_until_all<R>(&self, what: &str, arguments: &[&str], expected: &str, which: R)
    where
        R: std::slice::SliceIndex<[Redis], Output = [Redis]>,
    {
        for node in &self.nodes[which] {
            eventually(CLUSTER_READY_TIMEOUT, what, || async {
                let reply: String = node.command(arguments).await.unwrap_or_default();
                reply.contains(expected)
            })
            .await;
        }
    }
}

async fn ranges(node: &Redis) -> anyhow::Result<Vec<(u16, u16, redis::Value)>> {
    let answer: Vec<Vec<redis::Value>> = node.command(&["CLUSTER", "SLOTS"]).await?;
    let read = |range: Vec<redis::Value>| {
        let mut range = range.into_iter();
        let (first, last, master) = (range.next(), range.next(), range.next());
        let (first, last) = (first.context("no range")?, last.context("no range")?);
        let ends = (redis::from_redis_value(first)?, redis::from_redis_value(last)?);
        Ok((ends.0, ends.1, master.context("no master")?))
    };
    answer.into_iter().map(read).collect()
}

/// Returns host, port and id of a node, without the fields that later versions add.
fn first_three(node: redis::Value) -> redis::Value {
    match node {
        redis::Value::Array(words) => redis::Value::Array(words.into_iter().take(3).collect()),
        other => other,
    }
}

async fn is_master(node: &Redis) -> bool {
    let info: String = node.command(&["INFO", "replication"]).await.unwrap_or_default();
    info.contains("role:master")
}

fn node(bus: u16) -> Kind {
    let options = ["--appendonly", "yes", "--appendfsync", "no", "--cluster-enabled", "yes"];
    let bus = bus.to_string();
    // Shorter timeouts than in production, so that tests need not wait.
    let cluster = ["--cluster-node-timeout", "1500", "--cluster-port", &bus];
    let stay = ["--cluster-allow-replica-migration", "no"];
    Kind::with(&[options.as_slice(), &cluster, &stay].concat())
}
