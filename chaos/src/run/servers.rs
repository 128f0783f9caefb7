//! The Redis of a run, in one of the ways people run it.

use std::time::Duration;

use clap::ValueEnum;
use daegi_testkit::{Redis, RedisCluster, RedisSentinel};
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};

/// The key that decides who leads. Whoever has it dies first.
const LEASE_PARTITION: &str = "{p00}";

const GLANCE: Duration = Duration::from_millis(10);

/// So long a replica has to take over. People are judged by a shorter time; this ends the run.
const TAKES_OVER: Duration = Duration::from_secs(60);

/// In which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// One that keeps what it has acknowledged.
    One,
    /// A master and its replica, watched by three sentinels.
    Sentinel,
    /// Three masters, each with a replica.
    Cluster,
}

/// The servers themselves; they end with this value.
#[derive(Debug)]
pub enum Servers {
    /// See [`Shape::One`].
    One(Redis),
    /// See [`Shape::Sentinel`].
    Sentinel(RedisSentinel),
    /// See [`Shape::Cluster`].
    Cluster(RedisCluster),
}

impl Servers {
    /// Starts all there are.
    ///
    /// # Errors
    /// If one does not start.
    pub async fn start(shape: Shape) -> anyhow::Result<Self> {
        Ok(match shape {
            Shape::One => Self::One(Redis::start_durable().await?),
            Shape::Sentinel => Self::Sentinel(RedisSentinel::start().await?),
            Shape::Cluster => Self::Cluster(RedisCluster::start().await?),
        })
    }

    /// The address for daegi.
    pub(super) fn url(&self) -> String {
        match self {
            Self::One(redis) => redis.url(),
            Self::Sentinel(redis) => redis.url(),
            Self::Cluster(redis) => redis.url(),
        }
    }

    /// The only one, if there is but one: then everybody's way to it can be broken.
    pub(crate) fn alone(&self) -> Option<&Redis> {
        match self {
            Self::One(redis) => Some(redis),
            Self::Sentinel(_) | Self::Cluster(_) => None,
        }
    }

    pub(super) fn alone_mut(&mut self) -> Option<&mut Redis> {
        match self {
            Self::One(redis) => Some(redis),
            Self::Sentinel(_) | Self::Cluster(_) => None,
        }
    }

    /// The port of a server that goes on while another one's replica takes over.
    pub(super) async fn bystander(&mut self) -> anyhow::Result<u16> {
        Ok(match self {
            Self::One(redis) => redis.port(),
            Self::Sentinel(redis) => redis.sentinel().port(),
            Self::Cluster(redis) => redis.another_master(LEASE_PARTITION).await?.port(),
        })
    }

    /// Kills the master that leaders need, and returns when its replica is the master.
    pub(super) async fn fail_over(&mut self) -> anyhow::Result<()> {
        let master = self.master().await?;
        let dead = master.port();
        block_in_place(|| master.stop());
        let deadline = Instant::now() + TAKES_OVER;
        // Until then the one that was is named, or nobody.
        while self.master().await.map_or(dead, |master| master.port()) == dead {
            anyhow::ensure!(Instant::now() < deadline, "no replica has taken over");
            sleep(GLANCE).await;
        }
        Ok(())
    }

    async fn master(&mut self) -> anyhow::Result<&mut Redis> {
        match self {
            Self::One(_) => anyhow::bail!("a Redis alone has nobody to take over"),
            Self::Sentinel(redis) => redis.master().await,
            Self::Cluster(redis) => redis.master_of(LEASE_PARTITION).await,
        }
    }

    /// Those that were killed come back, as replicas.
    pub(super) async fn complete(&mut self) -> anyhow::Result<()> {
        match self {
            Self::One(_) => Ok(()),
            Self::Sentinel(redis) => redis.start_again().await,
            Self::Cluster(redis) => redis.start_again().await,
        }
    }
}
