//! Which node has which keys.
//!
//! A partition's keys share a slot, so a call goes to one node: no command of ours is ever spread
//! over several, and a node that is away costs its own partitions only. The map of slots is
//! learned from the nodes, corrected by their redirections, and asked for again when a node does
//! not answer.

mod slots;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use ::redis::{Cmd, ErrorKind, ServerErrorKind, Value, cmd};
use futures_util::future::join_all;
use tokio::time::Instant;

pub(super) use self::slots::slot_of;
use self::slots::{Owners, SLOTS, owners};
use super::address::{Login, Node};
use super::connect::Whereabouts;
use super::failure::Failure;
use super::server::{Manner, Server};
use crate::Error;

/// How long a node may take to tell the map; one that is away must not use up the time of a call.
const ASK_WITHIN: Duration = Duration::from_millis(250);

/// The rest between two times of asking for the map, at least; half of it is chance.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// How often a call lets itself be sent elsewhere.
const HOPS: usize = 5;

/// All nodes that have something of ours.
#[derive(Debug)]
pub(super) struct Cluster {
    seeds: Vec<Node>,
    login: Login,
    map: RwLock<Map>,
    /// When the map may be asked for.
    ask_at: Mutex<Option<Instant>>,
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Map {
    nodes: HashMap<Node, Arc<Server>>,
    slots: Vec<Option<Arc<Server>>>,
}

impl Cluster {
    pub(super) fn new(seeds: Vec<Node>, login: Login) -> Self {
        let map = Map { nodes: HashMap::new(), slots: vec![None; SLOTS] };
        let cluster = Self {
            seeds,
            login,
            map: RwLock::new(map),
            ask_at: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        };
        for seed in &cluster.seeds {
            cluster.node(seed);
        }
        cluster
    }

    /// Sends a command to whoever has the slot.
    pub(super) async fn call(
        &self,
        command: &Cmd,
        slot: u16,
        deadline: Instant,
    ) -> Result<Value, Failure> {
        let mut server = self.server(slot, deadline).await?;
        let mut manner = Manner::Plain;
        for _ in 0..HOPS {
            let answer = server.call(command, manner, deadline).await;
            let Err(Failure::Answered(error)) = &answer else { return answer };
            let Some((address, moved)) = error.redirect_node() else { return answer };
            let Some(node) = Node::parse(address, 0) else { return answer };
            server = self.node(&node);
            manner = if error.kind() == ErrorKind::Server(ServerErrorKind::Moved) {
                self.write(|map| map.slots[usize::from(moved) % SLOTS] = Some(server.clone()));
                Manner::Plain
            } else {
                Manner::Asking
            };
        }
        Err(Failure::away(self, "nobody knows who has the keys"))
    }

    /// The node that has a slot, as far as is known. If it does not answer, somebody else may have
    /// taken its place.
    pub(super) async fn server(
        &self,
        slot: u16,
        deadline: Instant,
    ) -> Result<Arc<Server>, Failure> {
        let known = || self.read(|map| map.slots[usize::from(slot) % SLOTS].clone());
        if let Some(server) = known().filter(|server| !server.is_away()) {
            return Ok(server);
        }
        self.ask_for_map(deadline).await?;
        known().ok_or_else(|| Failure::away(self, format!("nobody has slot {slot}")))
    }

    /// Every node that has keys.
    pub(super) async fn masters(&self, deadline: Instant) -> Result<Vec<Arc<Server>>, Failure> {
        self.ask_for_map(deadline).await?;
        let mut masters: Vec<Arc<Server>> =
            self.read(|map| map.slots.iter().flatten().cloned().collect());
        masters.sort_unstable_by_key(Arc::as_ptr);
        masters.dedup_by(|one, other| Arc::ptr_eq(one, other));
        if masters.is_empty() {
            return Err(Failure::away(self, "no node answers"));
        }
        Ok(masters)
    }

    /// Asks all nodes for the map, not too often, and believes the most of them.
    async fn ask_for_map(&self, deadline: Instant) -> Result<(), Failure> {
        let waiting = tokio::time::timeout_at(deadline, self.asking.lock()).await;
        let Ok(_asking) = waiting else { return Ok(()) };
        if !self.may_ask() {
            return Ok(());
        }
        let deadline = deadline.min(Instant::now() + ASK_WITHIN);
        let nodes: Vec<_> = self.read(|map| {
            map.nodes.iter().map(|(node, server)| (node.clone(), server.clone())).collect()
        });
        let asked = nodes.iter().map(|(node, server)| async move {
            let mut ask = cmd("CLUSTER");
            ask.arg("SLOTS");
            server.ask(&ask, deadline).await.map(|value| owners(&value, node))
        });
        let mut views = Vec::new();
        for answer in join_all(asked).await {
            match answer {
                Ok(view) => views.push(view),
                Err(Failure::Answered(error)) if !error.is_cluster_error() => {
                    let told = format!("no cluster: {}", error.detail().unwrap_or_default());
                    return Err(Failure::Wrong(Error::Address(told.into())));
                }
                Err(Failure::Wrong(error)) => return Err(Failure::Wrong(error)),
                Err(_) => {}
            }
        }
        if let Some(owners) = Owners::of_most(&views) {
            self.learn(&owners);
        }
        Ok(())
    }

    fn may_ask(&self) -> bool {
        let mut ask_at = self.ask_at.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if ask_at.is_some_and(|at| at > now) {
            return false;
        }
        *ask_at = Some(now + ASK_AGAIN.mul_f64(0.5 + 0.5 * fastrand::f64()));
        true
    }

    /// Nodes that have nothing of ours any more are forgotten, but never the seeds.
    fn learn(&self, owners: &Owners) {
        let servers: HashMap<&Node, Arc<Server>> =
            owners.nodes().into_iter().map(|node| (node, self.node(node))).collect();
        self.write(|map| {
            for (slot, place) in map.slots.iter_mut().enumerate() {
                *place = owners.of(slot).and_then(|node| servers.get(node).cloned());
            }
            map.nodes.retain(|node, _| servers.contains_key(node) || self.seeds.contains(node));
        });
    }

    fn node(&self, node: &Node) -> Arc<Server> {
        if let Some(known) = self.read(|map| map.nodes.get(node).cloned()) {
            return known;
        }
        self.write(|map| {
            let whereabouts = Whereabouts::Node { node: node.clone(), login: self.login.clone() };
            let server = || Arc::new(Server::new(whereabouts));
            map.nodes.entry(node.clone()).or_insert_with(server).clone()
        })
    }

    fn read<T>(&self, look: impl FnOnce(&Map) -> T) -> T {
        look(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Map) -> T) -> T {
        change(&mut self.map.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Display for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the cluster")
    }
}
