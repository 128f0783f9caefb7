//! Admissions through one leader: from the line to the entry set and out of the outbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use daegi_domain::Policy;
use daegi_scheduler::{Outlet, Relay, Ticker};
use daegi_store::{RedisStore, SharedStore, Store};

use super::arena::{Arena, LATER, SETTINGS, now};
use super::gate::{CALLS, PEOPLE};
use super::line::Line;
use super::one_core::OneCore;
use super::script_time::most;
use super::slow_log::{self, Slow, TOO_LONG};
use super::standstill::{Watch, own_times};
use super::{Options, script_time};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

const RATE: &str = "admissions through one leader, outbox included";

/// How often the outbox is looked at until it is empty. Looking all the time would take the core
/// that Redis needs.
const GLANCE: Duration = Duration::from_millis(1);

pub(super) async fn measure(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let leader = Leader::new(arena).await?;
    let (mut together, mut apart, mut own) = (Rounds::default(), Rounds::default(), Vec::new());
    for round in 0..=options.rounds {
        let on_two_cores = leader.serve(&format!("two-cores-{round}")).await?;
        let one_core = OneCore::share(arena.of_a_leader().await?)?;
        let watch = Watch::start()?;
        let on_one_core = leader.serve(&format!("one-core-{round}")).await?;
        let pauses = watch.end()?;
        drop(one_core);
        // The first round of each finds everything cold.
        if round > 0 {
            own.extend(own_times(&on_one_core.slow, pauses));
            apart.push(on_two_cores);
            together.push(on_one_core);
        }
    }
    let calls = CALLS * options.rounds;
    let mut figures = vec![
        Figure::new(RATE, median(together.rates.clone()), "/s", Goal::Least(80_000.0))
            .with(
                "one line, all of them seen lately; written to the outbox, read and removed again; Redis, \
                 leader and relay share a core",
            )
            .over(together.rates),
        Figure::new("… with a core each", median(apart.rates.clone()), "/s", Goal::None)
            .with(format!("the same in turns; {} over 5 ms by the clock", told(&apart.slow, calls)))
            .over(apart.rates),
    ];
    figures.extend(script_time::of_a_leader(arena, options).await?);
    let clock = together.slow.len() as f64;
    figures.push(
        Figure::new("… over 5 ms by the clock", clock, "", Goal::Most(0.0))
            .with(format!("{} while the rate was measured", told(&together.slow, calls))),
    );
    let too_long = own.iter().filter(|own| **own > TOO_LONG).count();
    figures.push(
        Figure::new("… less the pauses of its core", too_long as f64, "", Goal::Most(0.0)).with(
            format!("of these, by a thread that no script holds up; {:.1} ms at most", most(&own)),
        ),
    );
    Ok(figures)
}

/// How many scripts took too long, in words.
fn told(slow: &[Slow], calls: usize) -> String {
    format!("{} of {calls} scripts{}", slow.len(), slow_log::longest(slow))
}

/// What a round has told: how many people a second, and the scripts that took too long.
struct Round {
    rate: f64,
    slow: Vec<Slow>,
}

/// The same of all of them.
#[derive(Default)]
struct Rounds {
    rates: Vec<f64>,
    slow: Vec<Slow>,
}

impl Rounds {
    fn push(&mut self, round: Round) {
        self.rates.push(round.rate);
        self.slow.extend(round.slow);
    }
}

/// A leader with its relay, as fast as both can.
struct Leader<'a> {
    arena: &'a Arena,
    store: SharedStore,
}

impl<'a> Leader<'a> {
    async fn new(arena: &'a Arena) -> anyhow::Result<Self> {
        let store =
            RedisStore::open(&arena.redis.url(), arena.store.partitions(), SETTINGS).await?;
        Ok(Self { arena, store: Arc::new(store) })
    }

    /// Fills a line, lets it in and takes it away.
    async fn serve(&self, name: &str) -> anyhow::Result<Round> {
        let mut connection = self.arena.redis.connection().await?;
        let line = self.line(name).await?;
        slow_log::watch(&mut connection).await?;
        let took = self.let_in().await?;
        let slow = slow_log::read(&mut connection).await?;
        self.arena.remove(line).await?;
        let rate = f64::from(PEOPLE) / took.as_secs_f64();
        progress(&format!("admissions: {PEOPLE} people, {name}, {rate:.0}/s"));
        Ok(Round { rate, slow })
    }

    /// A line in which all are there and may be let in by one tick.
    async fn line(&self, name: &str) -> anyhow::Result<Line> {
        let line = self.arena.line(name, PEOPLE as usize).await?;
        let policy = Policy { tokens_per_tick: Some(PEOPLE), ..Policy::default() };
        line.set_policy(&self.arena.store, &policy).await?;
        line.was_seen(&self.arena.store, now() + LATER).await?;
        Ok(line)
    }

    /// Lets everybody in who waits, and says how long it took until the outbox was empty again.
    async fn let_in(&self) -> anyhow::Result<Duration> {
        let epoch = self.store.begin_term(0).await?;
        let mut ticker = Ticker::new(self.store.clone(), epoch, u64::MAX);
        let relay = Relay::new(self.store.clone(), Outlet::Nowhere);
        let started = Instant::now();
        let admitted = async {
            let report = ticker.tick(now() + LATER).await?;
            while self.outbox().await? > 0 {
                tokio::time::sleep(GLANCE).await;
            }
            anyhow::Ok(report.admitted)
        };
        let admitted = tokio::select! {
            () = relay.run() => anyhow::bail!("the relay ended by itself"),
            admitted = admitted => admitted?,
        };
        ensure!(admitted == PEOPLE, "{admitted} of {PEOPLE} were let in");
        Ok(started.elapsed())
    }

    async fn outbox(&self) -> anyhow::Result<u64> {
        let mut events = 0;
        for partition in 0..self.store.partitions() {
            events += self.store.outbox_len(partition).await?;
        }
        Ok(events)
    }
}
