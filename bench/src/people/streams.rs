//! People who listen all the while, each over a stream of their own to one pod, while a leader
//! lets them in, some at every tick.
//!
//! Everybody must hear once that it is their turn, soon after it is; what the pod asks of Redis
//! meanwhile goes through a proxy that counts it. A time counts from the beginning of the tick, so
//! that the leader's work is part of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use daegi_domain::Policy;
use daegi_scheduler::Ticker;
use daegi_store::{RedisStore, SharedStore, Store};
use daegi_testkit::RedisProxy;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use super::Options;
use super::arena::{Arena, SETTINGS, Server, now};
use super::ear::{Channel, Heard, What};
use super::latency::part;
use super::line::Line;
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// A tenth of the people at every tick.
const TICKS: usize = 10;
const TICK: Duration = Duration::from_secs(1);
/// Nothing happens for so long once everybody listens: marks go to the store every three seconds.
const QUIET: Duration = Duration::from_secs(4);
/// A pod looks at entries every 15 s: whoever is told something twice is told it by then.
const AFTERWARDS: Duration = Duration::from_secs(16);
const PATIENCE: Duration = Duration::from_secs(30);

/// Everybody who listens, and the pod they listen to.
struct Audience {
    line: Line,
    proxy: RedisProxy,
    pod: Server,
    heard: UnboundedReceiver<Heard>,
    _ears: JoinSet<anyhow::Result<()>>,
    /// What each of them costs the pod, in kilobytes.
    each: f64,
}

/// What was measured from the first tick to the end.
struct Outcome {
    /// How often everybody was told that it is their turn.
    told: Vec<usize>,
    /// How long after the tick began, sorted.
    delays: Vec<Duration>,
    gossip: usize,
    ends: usize,
    /// Milliseconds of the pod's CPU per tick.
    cpu: f64,
    /// What the pod had asked of Redis when everybody was inside.
    commands: u64,
}

pub(super) async fn hold(
    arena: &Arena,
    options: &Options,
    channel: Channel,
) -> anyhow::Result<Vec<Figure>> {
    let mut audience = Audience::gather(arena, options.listeners, channel).await?;
    let name = channel.name();
    let count = audience.line.tickets.len();
    progress(&format!("{count} listen, {:.1} KB each", audience.each));
    let before = audience.proxy.commands();
    sleep(QUIET).await;
    let quiet = audience.proxy.commands() - before;
    let outcome = audience.enter(arena).await?;
    let (commands, later) = (outcome.commands, audience.proxy.commands() - outcome.commands);
    let (each, total) = (audience.each, audience.pod.memory()?);
    progress(&format!("{name}: {:.0} MB in the end", total / 1e6));
    arena.store.remove_item(&audience.line.item).await?;
    let times = |times: usize| outcome.told.iter().filter(|told| **told == times).count();
    let (never, once) = (times(0), times(1));
    let delay = |of: f64| part(&outcome.delays, of);
    Ok(vec![
        Figure::new(
            &format!("{name}s told ENTERABLE exactly once"),
            once as f64,
            "",
            Goal::Least(count as f64),
        )
        .with(format!(
            "of {count} to one pod; {never} never, {} more often, {} somebody else's, {} broke off",
            count - never - once,
            outcome.gossip,
            outcome.ends,
        )),
        Figure::new(
            &format!("{name}: ENTERABLE after admission"),
            delay(1.0),
            "ms",
            Goal::Most(2e3),
        )
        .with(format!(
            "the slowest; median {:.0} ms, p99 {:.0} ms; {} people per second-long tick, \
                 {:.0} ms of the pod's CPU in each",
            delay(0.5),
            delay(0.99),
            count / TICKS,
            outcome.cpu,
        )),
        Figure::new(&format!("memory per open {name}"), each, "KB", Goal::Most(20.0))
            .with(format!("{count} connections to one pod")),
        Figure::new(
            &format!("Redis calls per {name}"),
            commands as f64 / count as f64,
            "",
            Goal::Most(0.1),
        )
        .with(format!(
            "{commands} by the pod from its start until all are inside, {quiet} of them in {} s of \
             waiting; {later} in the {} s after",
            QUIET.as_secs(),
            AFTERWARDS.as_secs(),
        )),
    ])
}

impl Audience {
    async fn gather(arena: &Arena, count: usize, channel: Channel) -> anyhow::Result<Self> {
        let name = channel.name().replace(' ', "-");
        let line = arena.line(&name, count - count % TICKS).await?;
        let per_tick = u32::try_from(line.tickets.len() / TICKS)?;
        let policy =
            Policy { grace_seconds: 60, tokens_per_tick: Some(per_tick), ..Policy::default() };
        line.set_policy(&arena.store, &policy).await?;
        let proxy = RedisProxy::start(arena.redis.port()).await?;
        let pod = Arena::pod(&proxy.url())?;
        let addresses = line.addresses(&arena.keys, line.tickets.len());
        pod.answers(&addresses[0]).await?;
        let idle = pod.memory()?;
        let (tell, heard) = unbounded_channel();
        let mut ears = JoinSet::new();
        for (who, address) in addresses.iter().enumerate() {
            channel.open(&pod.address, (who, address), &mut ears, &tell).await?;
        }
        let mut audience = Self { line, proxy, pod, heard, _ears: ears, each: 0.0 };
        audience.all_wait().await?;
        audience.each =
            (audience.pod.memory()? - idle) / audience.line.tickets.len() as f64 / 1024.0;
        Ok(audience)
    }

    /// Until everybody has been told their place.
    async fn all_wait(&mut self) -> anyhow::Result<()> {
        let all = async {
            for _ in &self.line.tickets {
                let heard = self.heard.recv().await.context("nobody listens")?;
                ensure!(heard.what == What::Place, "{heard:?}");
            }
            Ok(())
        };
        timeout(PATIENCE, all).await.context("not everybody was told a place")?
    }

    /// Lets everybody in and hears what they hear.
    async fn enter(&mut self, arena: &Arena) -> anyhow::Result<Outcome> {
        let before = self.pod.cpu()?;
        let begun = self.tick(arena).await?;
        let cpu = (self.pod.cpu()? - before) * 1e3 / TICKS as f64;
        let commands = self.proxy.commands();
        sleep(AFTERWARDS).await;
        let people = self.line.tickets.len();
        let (told, delays) = (vec![0; people], Vec::with_capacity(people));
        let mut outcome = Outcome { told, delays, gossip: 0, ends: 0, cpu, commands };
        while let Ok(heard) = self.heard.try_recv() {
            match heard.what {
                What::Place => {}
                What::Turn => {
                    // First come, first served: who it is says with which tick they came in.
                    let tick = begun[heard.who * TICKS / people];
                    if outcome.told[heard.who] == 0 {
                        outcome.delays.push(heard.at.saturating_duration_since(tick));
                    }
                    outcome.told[heard.who] += 1;
                }
                What::Gossip => outcome.gossip += 1,
                What::End => outcome.ends += 1,
            }
        }
        ensure!(!outcome.delays.is_empty(), "nobody was told anything");
        outcome.delays.sort_unstable();
        Ok(outcome)
    }

    /// All ticks, and when each of them began.
    async fn tick(&self, arena: &Arena) -> anyhow::Result<Vec<Instant>> {
        let partitions = arena.store.partitions();
        let store = RedisStore::open(&arena.redis.url(), partitions, SETTINGS).await?;
        let store: SharedStore = Arc::new(store);
        let mut ticker = Ticker::new(store.clone(), store.begin_term(0).await?, u64::MAX);
        let mut begun = Vec::with_capacity(TICKS);
        for tick in 0..TICKS {
            let began = Instant::now();
            let admitted = ticker.tick(now()).await?.admitted as usize;
            let expected = self.line.tickets.len() / TICKS;
            ensure!(admitted == expected, "tick {tick} let {admitted} in, not {expected}");
            begun.push(began);
            sleep_until((began + TICK).into()).await;
        }
        Ok(begun)
    }
}
