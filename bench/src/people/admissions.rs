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
use super::script_watch::{Script, TOO_LONG, Watch};
use super::{Options, script_count};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

const RATE: &str = "admissions through one leader, outbox included";
const OVER: &str = "… of its scripts over 5 ms, by the clock";

/// How often the outbox is looked at until it is empty. Looking all the time would take the core
/// that Redis needs.
const GLANCE: Duration = Duration::from_millis(1);
/// So many slow scripts are told one by one.
const TOLD: usize = 5;

pub(super) async fn measure(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let leader = Leader::new(arena).await?;
    let (mut together, mut apart, mut watched) = (Rounds::default(), Rounds::default(), true);
    for round in 0..=options.rounds {
        let on_two_cores = leader.serve(&format!("two-cores-{round}"), watched).await?;
        // Who cannot be watched once is not watched at all.
        watched = on_two_cores.scripts.is_some();
        let one_core = OneCore::share(arena.of_a_leader()?)?;
        let on_one_core = leader.serve(&format!("one-core-{round}"), watched).await?;
        drop(one_core);
        watched = on_one_core.scripts.is_some();
        // The first round of each finds everything cold.
        if round > 0 {
            apart.push(on_two_cores);
            together.push(on_one_core);
        }
    }
    let rate = together.rate(RATE, Goal::Least(80_000.0)).with(
        "one line, all of them seen lately; written to the outbox, read and removed again; Redis, leader \
         and relay share a core",
    );
    let mut figures = vec![rate];
    let mut on_a_core_each = apart.rate("… with a core each", Goal::None).with("the same in turns");
    if watched {
        figures.extend(together.scripts());
        match script_count::longest(together.usual()).await {
            Ok(count) => figures.extend(count),
            // A machine that stops for most of a second under callgrind must not cost all other figures.
            Err(why) => progress(&format!("INSTRUCTIONS OF SCRIPTS ARE NOT COUNTED: {why:#}")),
        }
        on_a_core_each = on_a_core_each.and(&apart.in_words());
    }
    figures.push(on_a_core_each);
    Ok(figures)
}

/// What a round has told: how many people a second, and, where somebody watched, every script.
struct Round {
    rate: f64,
    scripts: Option<Vec<Script>>,
}

/// The same of all of them.
#[derive(Default)]
struct Rounds {
    rates: Vec<f64>,
    scripts: Vec<Vec<Script>>,
}

impl Rounds {
    fn push(&mut self, round: Round) {
        self.rates.push(round.rate);
        self.scripts.extend(round.scripts);
    }

    fn rate(&self, name: &str, goal: Goal) -> Figure {
        Figure::new(name, median(self.rates.clone()), "/s", goal).over(self.rates.clone())
    }

    /// Every single one: by the clock, as whoever waits for Redis feels it, and while its core ran, which
    /// tells whose doing a slow one is.
    fn scripts(&self) -> [Figure; 2] {
        let scripts = self.scripts.concat();
        [
            Figure::new(OVER, slow(&scripts).len() as f64, "", Goal::Most(0.0))
                .with(by_the_clock(&scripts)),
            Figure::new(
                "… the longest, while its core ran",
                longest(&scripts),
                "ms",
                Goal::Most(TOO_LONG),
            )
            .with("every single one; what the machine took away is not its own")
            .over(self.scripts.iter().map(|scripts| longest(scripts)).collect()),
        ]
    }

    fn in_words(&self) -> String {
        let scripts = self.scripts.concat();
        format!(
            "over 5 ms by the clock {} {}; the longest {:.1} ms while its core ran",
            slow(&scripts).len(),
            by_the_clock(&scripts),
            longest(&scripts),
        )
    }

    /// What a script takes as a rule, in milliseconds.
    fn usual(&self) -> f64 {
        median(self.scripts.concat().iter().map(|script| script.took).collect())
    }
}

fn longest(scripts: &[Script]) -> f64 {
    scripts.iter().map(|script| script.own()).fold(0.0, f64::max)
}

/// Those that took too long by the clock, the longest first.
fn slow(scripts: &[Script]) -> Vec<Script> {
    let mut slow: Vec<_> = scripts.iter().copied().filter(|it| it.took > TOO_LONG).collect();
    slow.sort_by(|one, other| other.took.total_cmp(&one.took));
    slow
}

fn by_the_clock(scripts: &[Script]) -> String {
    let told = slow(scripts).into_iter().take(TOLD).map(|script| {
        format!("; {:.1} ms, its core stood still for {:.1} of them", script.took, script.stood)
    });
    format!("of {}{}", scripts.len(), told.collect::<String>())
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
    async fn serve(&self, name: &str, watched: bool) -> anyhow::Result<Round> {
        let line = self.line(name).await?;
        let watch = if watched { Watch::start(&self.arena.redis).await } else { None };
        let took = self.let_in().await?;
        let scripts = match watch {
            Some(watch) => Some(watch.end().await?),
            None => None,
        };
        if let Some(seen) = scripts.as_ref().map(Vec::len) {
            ensure!(seen >= CALLS, "{seen} of at least {CALLS} scripts were seen");
        }
        self.arena.remove(line).await?;
        let rate = f64::from(PEOPLE) / took.as_secs_f64();
        progress(&format!("admissions: {PEOPLE} people, {name}, {rate:.0}/s"));
        Ok(Round { rate, scripts })
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
