//! The way to Redis: one server, the sentinels' master, or the nodes of a cluster.
//!
//! Every command and script goes through here, with one deadline for all that it takes:
//! connecting, being sent elsewhere, a script the server has to be told again. A call is never
//! repeated if it may have been carried out.

use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, FromRedisValue, Value, cmd, from_redis_value};
use futures_util::future::try_join_all;
use rslock::LockManager;
use tokio::time::Instant;

use super::address::Address;
use super::cluster::{Cluster, slot_of};
use super::connect::Whereabouts;
use super::failure::{self, Failure};
use super::scripts::{ScriptInvocation, scripts};
use super::sentinel::Sentinels;
use super::server::{Contact, Manner, Server};
use super::{keys, version};
use crate::Result;

/// A person is told "try again" within a second, so the store gets less than that.
const ANSWER_WITHIN: Duration = Duration::from_millis(700);

/// Opening may take longer than a call: nobody waits for it yet.
const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// The way to where lines live.
#[derive(Debug)]
pub(super) enum Link {
    One(Arc<Server>),
    Cluster(Cluster),
}

impl Link {
    pub(super) fn new(address: Address) -> Self {
        let one = |whereabouts| Self::One(Arc::new(Server::new(whereabouts)));
        match address {
            Address::Standalone(url) => one(Whereabouts::At(url)),
            Address::Sentinel { sentinels, service, login } => {
                one(Whereabouts::Named(Sentinels::new(sentinels, service, login)))
            }
            Address::Cluster { seeds, login } => Self::Cluster(Cluster::new(seeds, login)),
        }
    }

    /// Meets every server: each must be new enough and keep all keys, and learns the scripts.
    pub(super) async fn open(&self, allow_eviction: bool) -> Result<()> {
        let deadline = Instant::now() + OPEN_WITHIN;
        let servers = self.servers(deadline).await?;
        let met = servers.iter().map(|server| async move {
            let info = info_of(server, "server", deadline).await?;
            version::check(&info, matches!(self, Self::Cluster(_)))?;
            if !allow_eviction {
                version::check_eviction(&info_of(server, "memory", deadline).await?)?;
            }
            let loads: Vec<Cmd> = scripts().all().map(|script| script.load()).collect();
            let loads = loads.iter().map(|load| server.call(load, Manner::Plain, deadline));
            try_join_all(loads).await?;
            Ok(())
        });
        try_join_all(met).await.map(drop)
    }

    /// What every server says about itself.
    pub(super) async fn infos(&self, section: &str) -> Result<Vec<String>> {
        let deadline = Instant::now() + ANSWER_WITHIN;
        let servers = self.servers(deadline).await?;
        try_join_all(servers.iter().map(|server| info_of(server, section, deadline))).await
    }

    async fn servers(&self, deadline: Instant) -> Result<Vec<Arc<Server>>> {
        Ok(match self {
            Self::One(server) => vec![server.clone()],
            Self::Cluster(cluster) => cluster.masters(deadline).await?,
        })
    }

    /// Runs a script; a server that has forgotten it is told it again.
    pub(super) async fn run<T: FromRedisValue>(&self, script: ScriptInvocation<'_>) -> Result<T> {
        let deadline = Instant::now() + ANSWER_WITHIN;
        let key = script.first_key().unwrap_or_default();
        let answer = match self.send(&script.by_hash(), key, deadline).await {
            Err(unknown) if failure::is_unknown_script(&unknown) => {
                self.send(&script.by_text(), key, deadline).await
            }
            answer => answer,
        };
        decode(answer?)
    }

    /// Sends a command whose first argument is its key.
    pub(super) async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        let key = match command.args_iter().nth(1) {
            Some(::redis::Arg::Simple(key)) => key,
            _ => &[],
        };
        decode(self.send(command, key, Instant::now() + ANSWER_WITHIN).await?)
    }

    /// Sends a command without a key to the server that has the lease.
    pub(super) async fn lease_command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        let deadline = Instant::now() + ANSWER_WITHIN;
        decode(self.send(command, keys::lease().as_bytes(), deadline).await?)
    }

    async fn send(&self, command: &Cmd, key: &[u8], deadline: Instant) -> Answer {
        match self {
            Self::One(server) => server.call(command, Manner::Plain, deadline).await,
            Self::Cluster(cluster) => cluster.call(command, slot_of(key), deadline).await,
        }
    }

    /// The lock manager of the server that has the lease, if it can be reached now.
    pub(super) async fn locks(&self) -> Option<LockManager> {
        let (_, contact) = self.lease_holder().await.ok()?;
        Some(contact.locks.clone())
    }

    /// Gives up the connection on which the lock was asked for in vain.
    pub(super) async fn doubt_locks(&self) {
        if let Ok((server, contact)) = self.lease_holder().await {
            server.retire(&contact);
        }
    }

    async fn lease_holder(&self) -> std::result::Result<(Arc<Server>, Arc<Contact>), Failure> {
        let deadline = Instant::now() + ANSWER_WITHIN;
        let server = match self {
            Self::One(server) => server.clone(),
            Self::Cluster(cluster) => {
                cluster.server(slot_of(keys::lease().as_bytes()), deadline).await?
            }
        };
        let contact = server.reached(deadline).await?;
        Ok((server, contact))
    }
}

type Answer = std::result::Result<Value, Failure>;

async fn info_of(server: &Server, section: &str, deadline: Instant) -> Result<String> {
    let mut info = cmd("INFO");
    decode(server.call(info.arg(section), Manner::Plain, deadline).await?)
}

fn decode<T: FromRedisValue>(value: Value) -> Result<T> {
    from_redis_value(value).map_err(|error| crate::Error::corrupt(error.to_string()))
}
