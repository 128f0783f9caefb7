//! Which node of a cluster has which keys.
//!
//! The keys of a partition share a slot, so a call goes to one node: no command is spread over several
//! nodes, and an unavailable node affects only its own partitions. The slot table comes from the nodes, is
//! corrected by redirections, and is refreshed when a node is unavailable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use ::redis::{Cmd, ErrorKind, ServerErrorKind, Value, cmd};
use futures_util::future::join_all;
use tokio::time::Instant;

use super::call_error::CallError;
use super::endpoint::Endpoint;
use super::node::{CallMode, RedisNode};
use super::slots::{SLOTS, SlotOwners};
use super::url::{Credentials, NodeAddr};
use crate::Error;

/// Timeout of `CLUSTER SLOTS`: 250 ms, so that an unavailable node does not use up the time of a call.
const TOPOLOGY_TIMEOUT: Duration = Duration::from_millis(250);

/// Interval between two refreshes of the slot table; half of it is random.
const SLOT_REFRESH_INTERVAL: Duration = Duration::from_millis(500);

/// Redirections that one call follows at most.
const MAX_REDIRECTS: usize = 5;

/// The nodes of a cluster and their slots.
#[derive(Debug)]
pub(in crate::redis) struct Cluster {
    seeds: Vec<NodeAddr>,
    credentials: Credentials,
    table: RwLock<SlotTable>,
    /// When the next refresh is allowed.
    refresh_at: Mutex<Option<Instant>>,
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct SlotTable {
    nodes: HashMap<NodeAddr, Arc<RedisNode>>,
    slots: Vec<Option<Arc<RedisNode>>>,
}

impl Cluster {
    pub(super) fn new(seeds: Vec<NodeAddr>, credentials: Credentials) -> Self {
        let table = SlotTable { nodes: HashMap::new(), slots: vec![None; SLOTS] };
        let cluster = Self {
            seeds,
            credentials,
            table: RwLock::new(table),
            refresh_at: Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
        };
        for seed in &cluster.seeds {
            cluster.node(seed);
        }
        cluster
    }

    /// Sends a command to the node that has the slot, and follows redirections.
    pub(super) async fn call(
        &self,
        command: &Cmd,
        slot: u16,
        deadline: Instant,
    ) -> Result<Value, CallError> {
        let mut node = self.node_of(slot, deadline).await?;
        let mut mode = CallMode::Normal;
        for _ in 0..MAX_REDIRECTS {
            let reply = node.call(command, mode, deadline).await;
            let Err(CallError::Reply(error)) = &reply else { return reply };
            let Some((target, moved)) = error.redirect_node() else { return reply };
            let Some(addr) = NodeAddr::parse(target, 0) else { return reply };
            node = self.node(&addr);
            mode = if error.kind() == ErrorKind::Server(ServerErrorKind::Moved) {
                self.write(|table| table.slots[usize::from(moved) % SLOTS] = Some(node.clone()));
                CallMode::Normal
            } else {
                CallMode::Asking
            };
        }
        Err(CallError::unavailable(self, format!("more than {MAX_REDIRECTS} redirections")))
    }

    /// Returns the node that has a slot. If that node is unavailable, refreshes the slot table first,
    /// because another node may have taken the slot over.
    pub(super) async fn node_of(
        &self,
        slot: u16,
        deadline: Instant,
    ) -> Result<Arc<RedisNode>, CallError> {
        let known = || self.read(|table| table.slots[usize::from(slot) % SLOTS].clone());
        if let Some(node) = known().filter(|node| !node.is_unavailable()) {
            return Ok(node);
        }
        self.refresh_slots(deadline).await?;
        known().ok_or_else(|| CallError::unavailable(self, format!("no node has slot {slot}")))
    }

    /// Returns every node that has slots.
    pub(super) async fn masters(
        &self,
        deadline: Instant,
    ) -> Result<Vec<Arc<RedisNode>>, CallError> {
        self.refresh_slots(deadline).await?;
        let mut masters: Vec<Arc<RedisNode>> =
            self.read(|table| table.slots.iter().flatten().cloned().collect());
        masters.sort_unstable_by_key(Arc::as_ptr);
        masters.dedup_by(|one, other| Arc::ptr_eq(one, other));
        if masters.is_empty() {
            return Err(CallError::unavailable(self, "no node replies"));
        }
        Ok(masters)
    }

    /// Reads the slot table of all nodes and takes the majority; at most once per
    /// [`SLOT_REFRESH_INTERVAL`].
    async fn refresh_slots(&self, deadline: Instant) -> Result<(), CallError> {
        let locked = tokio::time::timeout_at(deadline, self.refreshing.lock()).await;
        let Ok(_refreshing) = locked else { return Ok(()) };
        if !self.refresh_allowed() {
            return Ok(());
        }
        let deadline = deadline.min(Instant::now() + TOPOLOGY_TIMEOUT);
        let nodes: Vec<_> = self.read(|table| {
            table.nodes.iter().map(|(addr, node)| (addr.clone(), node.clone())).collect()
        });
        let queries = nodes.iter().map(|(addr, node)| async move {
            let mut query = cmd("CLUSTER");
            query.arg("SLOTS");
            let reply = node.call_unguarded(&query, deadline).await;
            reply.map(|value| SlotOwners::parse(&value, addr))
        });
        let mut reports = Vec::new();
        for report in join_all(queries).await {
            match report {
                Ok(owners) => reports.push(owners),
                Err(CallError::Reply(error)) if !error.is_cluster_error() => {
                    let reason = format!("no cluster: {}", error.detail().unwrap_or_default());
                    return Err(CallError::Config(Error::InvalidUrl(reason.into())));
                }
                Err(CallError::Config(error)) => return Err(CallError::Config(error)),
                Err(_) => {}
            }
        }
        if let Some(owners) = SlotOwners::majority(&reports) {
            self.apply_slots(&owners);
        }
        Ok(())
    }

    fn refresh_allowed(&self) -> bool {
        let mut refresh_at = self.refresh_at.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if refresh_at.is_some_and(|at| at > now) {
            return false;
        }
        *refresh_at = Some(now + SLOT_REFRESH_INTERVAL.mul_f64(0.5 + 0.5 * fastrand::f64()));
        true
    }

    /// Replaces the slot table. Removes nodes without slots, except the seeds.
    fn apply_slots(&self, owners: &SlotOwners) {
        let nodes: HashMap<&NodeAddr, Arc<RedisNode>> =
            owners.nodes().into_iter().map(|addr| (addr, self.node(addr))).collect();
        self.write(|table| {
            for (slot, owner) in table.slots.iter_mut().enumerate() {
                *owner = owners.of(slot).and_then(|addr| nodes.get(addr).cloned());
            }
            table.nodes.retain(|addr, _| nodes.contains_key(addr) || self.seeds.contains(addr));
        });
    }

    fn node(&self, addr: &NodeAddr) -> Arc<RedisNode> {
        if let Some(known) = self.read(|table| table.nodes.get(addr).cloned()) {
            return known;
        }
        self.write(|table| {
            let credentials = self.credentials.clone();
            let endpoint = Endpoint::ClusterNode { node: addr.clone(), credentials };
            let node = || Arc::new(RedisNode::new(endpoint));
            table.nodes.entry(addr.clone()).or_insert_with(node).clone()
        })
    }

    fn read<T>(&self, read: impl FnOnce(&SlotTable) -> T) -> T {
        read(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut SlotTable) -> T) -> T {
        change(&mut self.table.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Display for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the cluster")
    }
}
