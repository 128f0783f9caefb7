//! The Redis of a run in one of three topologies.

use std::time::Duration;

use clap::ValueEnum;
use daegi_store::RedisConfig;
use daegi_testkit::{Redis, RedisCluster, RedisSentinel};
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};

/// Hash tag of the lease. Fail-overs kill the master that holds it.
const LEASE_PARTITION: &str = "{p00}";

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Limit for a fail-over; the run fails after it. The checker applies a shorter limit to calls.
const FAIL_OVER_TIMEOUT: Duration = Duration::from_secs(60);

/// The topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Topology {
    /// One server that keeps acknowledged writes (AOF).
    One,
    /// A master with a replica and three sentinels.
    Sentinel,
    /// Three masters, each with a replica.
    Cluster,
}

/// The servers; they stop when this value is dropped.
#[derive(Debug)]
pub enum RedisUnderTest {
    /// See [`Topology::One`].
    One(Redis),
    /// See [`Topology::Sentinel`].
    Sentinel(RedisSentinel),
    /// See [`Topology::Cluster`].
    Cluster(RedisCluster),
}

impl RedisUnderTest {
    /// Starts all servers.
    ///
    /// # Errors
    /// If a server does not start.
    pub async fn start(shape: Topology) -> anyhow::Result<Self> {
        Ok(match shape {
            Topology::One => Self::One(Redis::start_durable().await?),
            Topology::Sentinel => Self::Sentinel(RedisSentinel::start().await?),
            Topology::Cluster => Self::Cluster(RedisCluster::start().await?),
        })
    }

    /// The address for daegi; with `DAEGI_TEST_REDIS=tls` over TLS. There the proxies recognize no admission, so that the fault of a
    /// delayed admission has no effect.
    pub(super) fn config(&self) -> RedisConfig {
        match self {
            Self::One(redis) => redis.config(),
            Self::Sentinel(redis) => redis.config(),
            Self::Cluster(redis) => redis.config(),
        }
    }

    /// The server of `Topology::One`, which all processes reach through fault proxies.
    pub(crate) fn single(&self) -> Option<&Redis> {
        match self {
            Self::One(redis) => Some(redis),
            Self::Sentinel(_) | Self::Cluster(_) => None,
        }
    }

    pub(super) fn single_mut(&mut self) -> Option<&mut Redis> {
        match self {
            Self::One(redis) => Some(redis),
            Self::Sentinel(_) | Self::Cluster(_) => None,
        }
    }

    /// The port of a server that fail-overs do not affect.
    pub(super) async fn unaffected_node(&mut self) -> anyhow::Result<u16> {
        Ok(match self {
            Self::One(redis) => redis.port(),
            Self::Sentinel(redis) => redis.sentinel().port(),
            Self::Cluster(redis) => redis.another_master(LEASE_PARTITION).await?.port(),
        })
    }

    /// Kills the master that holds the lease, and returns when its replica has taken over.
    pub(super) async fn fail_over(&mut self) -> anyhow::Result<()> {
        let master = self.master().await?;
        let dead = master.port();
        block_in_place(|| master.stop());
        let deadline = Instant::now() + FAIL_OVER_TIMEOUT;
        // Until then, the topology names the dead master or none.
        while self.master().await.map_or(dead, |master| master.port()) == dead {
            anyhow::ensure!(Instant::now() < deadline, "no replica took over in time");
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    async fn master(&mut self) -> anyhow::Result<&mut Redis> {
        match self {
            Self::One(_) => anyhow::bail!("a single Redis has no replica"),
            Self::Sentinel(redis) => redis.master().await,
            Self::Cluster(redis) => redis.master_of(LEASE_PARTITION).await,
        }
    }

    /// Restarts killed servers as replicas.
    pub(super) async fn restart_stopped(&mut self) -> anyhow::Result<()> {
        match self {
            Self::One(_) => Ok(()),
            Self::Sentinel(redis) => redis.start_again().await,
            Self::Cluster(redis) => redis.start_again().await,
        }
    }
}
