//! Open streams to one pod while a leader admits their users, a tenth at each tick.
//!
//! Every client must receive `ENTERABLE` exactly once and soon. A delay counts from the beginning of the tick, so that it
//! includes the work of the leader. The pod reaches Redis through a proxy that counts its commands.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use daegi_domain::Policy;
use daegi_scheduler::Ticker;
use daegi_store::{ItemStore, RedisStore, SharedStore, Store};
use daegi_testkit::RedisProxy;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use super::Options;
use super::fixture::{ApiFixture, SETTINGS, Server, now_ms};
use super::line::Line;
use super::stream_client::{Observation, StreamEvent, Transport};
use crate::measurement::{Measurement, Target};
use crate::report::progress;

/// One tenth of the users is admitted at each tick.
const TICKS: usize = 10;
const TICK: Duration = Duration::from_secs(1);
/// Pods check entries every 15 s, so a duplicate event arrives by then.
const TRAILING_TIME: Duration = Duration::from_secs(16);
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// All clients, and the pod that they are connected to.
struct StreamClients {
    line: Line,
    proxy: RedisProxy,
    pod: Server,
    observations: UnboundedReceiver<Observation>,
    _tasks: JoinSet<anyhow::Result<()>>,
    /// Memory of the pod per stream.
    kilobytes: f64,
}

struct Outcome {
    /// How often each client received `ENTERABLE`.
    received: Vec<usize>,
    /// From the beginning of the tick, sorted.
    delays: Vec<Duration>,
    other_tickets: usize,
    closed: usize,
    /// CPU of the pod per tick.
    cpu_ms: f64,
    /// Redis commands of the pod until the last tick.
    commands: u64,
}

pub(super) async fn measure(
    fixture: &ApiFixture,
    options: &Options,
    transport: Transport,
) -> anyhow::Result<Vec<Measurement>> {
    let mut clients = StreamClients::connect(fixture, options.streams, transport).await?;
    let name = transport.name();
    let count = clients.line.tickets.len();
    progress(&format!("{count} {name}s open, {:.1} KB each", clients.kilobytes));
    let outcome = clients.admit_all(fixture).await?;
    fixture.store.remove_item(&clients.line.item, 0).await?;
    let times = |times: usize| outcome.received.iter().filter(|it| **it == times).count();
    let (never, once) = (times(0), times(1));
    let delay = |share: f64| {
        let index = ((outcome.delays.len() - 1) as f64 * share) as usize;
        outcome.delays[index].as_secs_f64() * 1e3
    };
    Ok(vec![
        Measurement::new(
            &format!("{name}s with exactly one ENTERABLE"),
            once as f64,
            "",
            Target::AtLeast(count as f64),
        )
        .with_detail(format!(
            "of {count} to one pod; {never} with none, {} with several, {} for another ticket, {} closed early",
            count - never - once,
            outcome.other_tickets,
            outcome.closed,
        )),
        Measurement::new(
            &format!("{name}: admission to ENTERABLE"),
            delay(1.0),
            "ms",
            Target::AtMost(2e3),
        )
        .with_detail(format!(
            "the slowest; median {:.0} ms, p99 {:.0} ms; {} users per tick of 1 s; pod CPU {:.0} ms per tick",
            delay(0.5),
            delay(0.99),
            count / TICKS,
            outcome.cpu_ms,
        )),
        Measurement::new(
            &format!("memory per open {name}"),
            clients.kilobytes,
            "KB",
            Target::AtMost(20.0),
        )
        .with_detail(format!("{count} connections to one pod")),
        Measurement::new(
            &format!("Redis commands per {name}"),
            outcome.commands as f64 / count as f64,
            "",
            Target::AtMost(0.1),
        )
        .with_detail(format!("{} by the pod from its start to the last tick", outcome.commands)),
    ])
}

impl StreamClients {
    /// Opens all streams and waits until each has received its position.
    async fn connect(
        fixture: &ApiFixture,
        count: usize,
        transport: Transport,
    ) -> anyhow::Result<Self> {
        let name = transport.name().replace(' ', "-");
        let line = fixture.line(&name, count - count % TICKS).await?;
        let per_tick = u32::try_from(line.tickets.len() / TICKS)?;
        let policy =
            Policy { grace_seconds: 60, tokens_per_tick: Some(per_tick), ..Policy::default() };
        line.set_policy(&fixture.store, &policy).await?;
        let proxy = RedisProxy::start(fixture.redis.port()).await?;
        let pod = ApiFixture::pod(&proxy.url())?;
        let paths = line.poll_paths(&fixture.keys, line.tickets.len());
        pod.wait_until_ready(&paths[0]).await?;
        let before = pod.memory_bytes()?;
        let (sender, observations) = unbounded_channel();
        let mut tasks = JoinSet::new();
        for (client, path) in paths.iter().enumerate() {
            transport.open(&pod.address, (client, path), &mut tasks, &sender).await?;
        }
        let mut clients = Self { line, proxy, pod, observations, _tasks: tasks, kilobytes: 0.0 };
        timeout(OPEN_TIMEOUT, clients.all_waiting()).await.context("not all streams opened")??;
        let bytes = clients.pod.memory_bytes()? - before;
        clients.kilobytes = bytes / clients.line.tickets.len() as f64 / 1024.0;
        Ok(clients)
    }

    async fn all_waiting(&mut self) -> anyhow::Result<()> {
        for _ in &self.line.tickets {
            let observation = self.observations.recv().await.context("all clients stopped")?;
            ensure!(observation.event == StreamEvent::Waiting, "{observation:?}");
        }
        Ok(())
    }

    /// Runs all ticks and evaluates what the clients received.
    async fn admit_all(&mut self, fixture: &ApiFixture) -> anyhow::Result<Outcome> {
        let before = self.pod.cpu_seconds()?;
        let ticks = self.run_ticks(fixture).await?;
        let cpu_ms = (self.pod.cpu_seconds()? - before) * 1e3 / TICKS as f64;
        let commands = self.proxy.commands();
        sleep(TRAILING_TIME).await;
        let users = self.line.tickets.len();
        let (received, delays) = (vec![0; users], Vec::with_capacity(users));
        let mut outcome =
            Outcome { received, delays, other_tickets: 0, closed: 0, cpu_ms, commands };
        while let Ok(Observation { client, event, at }) = self.observations.try_recv() {
            match event {
                StreamEvent::Waiting => {}
                StreamEvent::Enterable => {
                    // The line is first-come, first-served: the index gives the tick of the admission.
                    let tick = ticks[client * TICKS / users];
                    if outcome.received[client] == 0 {
                        outcome.delays.push(at.saturating_duration_since(tick));
                    }
                    outcome.received[client] += 1;
                }
                StreamEvent::OtherTicket => outcome.other_tickets += 1,
                StreamEvent::Closed => outcome.closed += 1,
            }
        }
        ensure!(!outcome.delays.is_empty(), "no client received ENTERABLE");
        outcome.delays.sort_unstable();
        Ok(outcome)
    }

    /// Returns when each tick began.
    async fn run_ticks(&self, fixture: &ApiFixture) -> anyhow::Result<Vec<Instant>> {
        let partitions = fixture.store.partitions();
        let store = RedisStore::open(&fixture.redis.url(), partitions, SETTINGS).await?;
        let store: SharedStore = Arc::new(store);
        let mut ticker = Ticker::new(store.clone(), store.begin_term(0).await?, u64::MAX);
        let expected = self.line.tickets.len() / TICKS;
        let mut ticks = Vec::with_capacity(TICKS);
        for tick in 0..TICKS {
            let began = Instant::now();
            let admitted = ticker.tick(now_ms()).await?.admitted as usize;
            ensure!(admitted == expected, "tick {tick} admitted {admitted} of {expected} users");
            ticks.push(began);
            sleep_until((began + TICK).into()).await;
        }
        Ok(ticks)
    }
}
