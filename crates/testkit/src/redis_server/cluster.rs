//! Three masters, each with a replica and a third of the slots.

use anyhow::Context;
use futures_util::future::try_join_all;

use super::kind::Kind;
use super::{ACQUAINTED, Redis, in_pairs_again, loud};
use crate::patience::eventually;
use crate::port::free_port;

const MASTERS: usize = 3;
const SLOTS: usize = 16384;

/// Six nodes, all of them gone with the value.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

/// A cluster, or `None` as [`super::redis_or_loud`].
///
/// # Panics
/// As [`super::redis_or_loud`].
pub async fn redis_cluster_or_loud() -> Option<RedisCluster> {
    loud(RedisCluster::start().await)
}

impl RedisCluster {
    /// Starts all nodes and waits until a fail-over would work.
    ///
    /// # Errors
    /// If `redis-server` is missing or something does not start.
    pub async fn start() -> anyhow::Result<Self> {
        let ports: Vec<u16> = (0..2 * MASTERS).map(|_| free_port()).collect();
        let nodes = try_join_all(ports.iter().map(|bus| Redis::launched(node(*bus)))).await?;
        let cluster = Self { nodes };
        cluster.share_out().await?;
        cluster.introduce(&ports).await?;
        cluster.give_replicas().await?;
        Ok(cluster)
    }

    /// The address for daegi: two of the nodes are enough to find the others.
    #[must_use]
    pub fn url(&self) -> String {
        let [first, second, ..] = &self.nodes[..] else { return String::new() };
        format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", first.port(), second.port())
    }

    /// The node that has a key now, as the others see it.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn master_of(&mut self, key: &str) -> anyhow::Result<&mut Redis> {
        let port = self.owner(key).await?;
        self.nodes.iter_mut().find(|node| node.port() == port).context("a stranger is master")
    }

    /// A node that is a master now and does not have this key.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn another_master(&mut self, key: &str) -> anyhow::Result<&mut Redis> {
        let owner = self.owner(key).await?;
        for at in 0..self.nodes.len() {
            if self.nodes[at].port() != owner && is_master(&self.nodes[at]).await {
                return Ok(&mut self.nodes[at]);
            }
        }
        anyhow::bail!("there is no other master")
    }

    /// Starts nodes that were stopped, and waits until a fail-over would work again.
    ///
    /// # Errors
    /// If one does not start.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        in_pairs_again(&mut self.nodes).await?;
        self.all_say("all slots are served", &["CLUSTER", "INFO"], "cluster_state:ok", ..).await;
        Ok(())
    }

    /// The node on a port.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn at(&self, port: u16) -> &Redis {
        let found = self.nodes.iter().find(|node| node.port() == port);
        found.unwrap_or_else(|| panic!("no node on port {port}"))
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// If a master does not answer.
    pub async fn flush(&self) -> anyhow::Result<()> {
        for node in &self.nodes {
            if is_master(node).await {
                node.ask::<()>(&["FLUSHALL"]).await?;
            }
        }
        Ok(())
    }

    async fn owner(&self, key: &str) -> anyhow::Result<u16> {
        for node in &self.nodes {
            let Ok(slot) = node.ask::<u16>(&["CLUSTER", "KEYSLOT", key]).await else { continue };
            let ranges: Vec<(u16, u16, redis::Value)> = ranges(node).await?;
            let range =
                ranges.into_iter().find(|(first, last, _)| (*first..=*last).contains(&slot));
            let (_, _, master) = range.context("nobody has the slot")?;
            let (_, port, _): (String, u16, redis::Value) =
                redis::from_redis_value(first_three(master))?;
            return Ok(port);
        }
        anyhow::bail!("no node answers")
    }

    /// Gives each master its slots, before anybody knows anybody.
    async fn share_out(&self) -> anyhow::Result<()> {
        for (at, node) in self.nodes.iter().enumerate() {
            let epoch = (at + 1).to_string();
            node.ask::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await?;
            if at < MASTERS {
                let (first, last) = (at * SLOTS / MASTERS, (at + 1) * SLOTS / MASTERS - 1);
                let range = [first.to_string(), last.to_string()];
                node.ask::<()>(&["CLUSTER", "ADDSLOTSRANGE", &range[0], &range[1]]).await?;
            }
        }
        Ok(())
    }

    async fn introduce(&self, buses: &[u16]) -> anyhow::Result<()> {
        for (node, bus) in self.nodes.iter().zip(buses).skip(1) {
            let (port, bus) = (node.port().to_string(), bus.to_string());
            self.nodes[0].ask::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).await?;
        }
        let known = format!("cluster_known_nodes:{}", self.nodes.len());
        self.all_say("the nodes know each other", &["CLUSTER", "INFO"], &known, ..).await;
        Ok(())
    }

    async fn give_replicas(&self) -> anyhow::Result<()> {
        let (masters, replicas) = self.nodes.split_at(MASTERS);
        for (master, replica) in masters.iter().zip(replicas) {
            let id: String = master.ask(&["CLUSTER", "MYID"]).await?;
            replica.ask::<()>(&["CLUSTER", "REPLICATE", &id]).await?;
        }
        let up = "master_link_status:up";
        self.all_say("the replicas follow", &["INFO", "replication"], up, MASTERS..).await;
        self.all_say("all slots are served", &["CLUSTER", "INFO"], "cluster_state:ok", ..).await;
        // Who does not know of a master's replica could not vote for it.
        for node in &self.nodes {
            eventually(ACQUAINTED, "everybody knows the replicas", || async {
                let seen: String = node.ask(&["CLUSTER", "NODES"]).await.unwrap_or_default();
                seen.lines().filter(|line| line.contains("slave")).count() == MASTERS
            })
            .await;
        }
        Ok(())
    }

    async fn all_say<R>(&self, what: &str, asked: &[&str], said: &str, which: R)
    where
        R: std::slice::SliceIndex<[Redis], Output = [Redis]>,
    {
        for node in &self.nodes[which] {
            eventually(ACQUAINTED, what, || async {
                let answer: String = node.ask(asked).await.unwrap_or_default();
                answer.contains(said)
            })
            .await;
        }
    }
}

async fn ranges(node: &Redis) -> anyhow::Result<Vec<(u16, u16, redis::Value)>> {
    let answer: Vec<Vec<redis::Value>> = node.ask(&["CLUSTER", "SLOTS"]).await?;
    let read = |range: Vec<redis::Value>| {
        let mut range = range.into_iter();
        let (first, last, master) = (range.next(), range.next(), range.next());
        let (first, last) = (first.context("no range")?, last.context("no range")?);
        let ends = (redis::from_redis_value(first)?, redis::from_redis_value(last)?);
        Ok((ends.0, ends.1, master.context("no master")?))
    };
    answer.into_iter().map(read).collect()
}

/// A node is host, port, id and what later versions add.
fn first_three(node: redis::Value) -> redis::Value {
    match node {
        redis::Value::Array(words) => redis::Value::Array(words.into_iter().take(3).collect()),
        other => other,
    }
}

async fn is_master(node: &Redis) -> bool {
    let info: String = node.ask(&["INFO", "replication"]).await.unwrap_or_default();
    info.contains("role:master")
}

fn node(bus: u16) -> Kind {
    let options = ["--appendonly", "yes", "--appendfsync", "no", "--cluster-enabled", "yes"];
    let bus = bus.to_string();
    // Quick to notice, so that tests need not wait for what production gives more time.
    let cluster = ["--cluster-node-timeout", "1500", "--cluster-port", &bus];
    let stay = ["--cluster-allow-replica-migration", "no"];
    Kind::with(&[options.as_slice(), &cluster, &stay].concat())
}
