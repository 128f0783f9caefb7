//! Admissions through one leader: from the line to the entry set and out of the outbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use daegi_domain::Policy;
use daegi_scheduler::{Outlet, Relay, Ticker};
use daegi_store::{RedisStore, SharedStore, Store};

use super::Options;
use super::arena::{Arena, LATER, SETTINGS, now};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// Everybody at once, in one line: the worst case for one script and one partition.
const PEOPLE: usize = 200_000;
/// So many calls let them in.
const CALLS: usize = PEOPLE / daegi_store::CHUNK as usize;
/// How often the outbox is looked at until it is empty. Looking all the time would take the core
/// that Redis needs.
const GLANCE: Duration = Duration::from_millis(1);
/// No script may take longer, in milliseconds.
const TOO_LONG: f64 = 5.0;
/// Scripts are looked at from here on, in microseconds.
const WATCHED: u32 = 1_000;
/// A script that takes about as long as one that lets people in, and touches nothing. If it is as
/// often one too long, the machine took the core away.
const IDLE_SCRIPT: &str = "local n = 0 for i = 1, 40000 do n = n + i % 7 end return n";

pub(super) async fn measure(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let mut connection = arena.redis.connection().await?;
    let store = RedisStore::open(&arena.redis.url(), arena.store.partitions(), SETTINGS).await?;
    let store: SharedStore = Arc::new(store);
    let (mut rates, mut scripts) = (Vec::new(), Scripts::default());
    for round in 0..=options.rounds {
        let line = arena.line(&format!("door-{round}"), PEOPLE).await?;
        let policy = Policy { tokens_per_tick: Some(PEOPLE as u32), ..Policy::default() };
        arena.set_policy(&line.item, &policy).await?;
        line.was_seen(arena, now() + LATER).await?;
        all_is_freed(arena).await?;
        watch_slow_scripts(&mut connection).await?;
        let mut ticker = Ticker::new(store.clone(), store.begin_term(0).await?, u64::MAX);
        let relay = Relay::new(store.clone(), Outlet::Nowhere);
        let started = Instant::now();
        let emptied = async {
            while outbox(&*store).await? > 0 {
                tokio::time::sleep(GLANCE).await;
            }
            anyhow::Ok(())
        };
        let admitted = async {
            let report = ticker.tick(now() + LATER).await?;
            emptied.await?;
            anyhow::Ok(report.admitted)
        };
        let admitted = tokio::select! {
            () = relay.run() => anyhow::bail!("the relay ended by itself"),
            admitted = admitted => admitted?,
        };
        ensure!(admitted as usize == PEOPLE, "{admitted} of {PEOPLE} were let in");
        let slow = slow_scripts(&mut connection).await?;
        let rate = f64::from(admitted) / started.elapsed().as_secs_f64();
        progress(&format!("admissions: {admitted} people, {rate:.0}/s"));
        let idle = slow_idle_scripts(&mut connection).await?;
        if round > 0 {
            rates.push(rate);
            scripts.add(&slow, &idle);
        }
        store.remove_item(&line.item).await?;
    }
    Ok(vec![
        Figure::new(
            "admissions through one leader, outbox included",
            median(rates.clone()),
            "/s",
            Goal::Least(80_000.0),
        )
        .with("one line, all of them seen lately; written to the outbox, read and removed again")
        .over(rates),
        scripts.figure(),
    ])
}

/// The scripts of all rounds. One that is too long by itself is so in every round; one that had to
/// wait for its core, because Redis measures by the clock, is so in some.
#[derive(Debug, Default)]
struct Scripts {
    /// Of each round, in milliseconds.
    longest: Vec<f64>,
    too_long: usize,
    idle_too_long: usize,
}

impl Scripts {
    fn add(&mut self, slow: &[f64], idle: &[f64]) {
        let too_long = |took: &[f64]| took.iter().filter(|ms| **ms > TOO_LONG).count();
        self.longest.push(slow.iter().copied().fold(f64::from(WATCHED) / 1_000.0, f64::max));
        self.too_long += too_long(slow);
        self.idle_too_long += too_long(idle);
    }

    fn figure(self) -> Figure {
        let (all, Self { longest, too_long, idle_too_long }) = (CALLS * self.longest.len(), self);
        Figure::new("longest script meanwhile", median(longest.clone()), "ms", Goal::Most(TOO_LONG))
            .with(format!(
                "of {all} scripts {too_long} took over 5 ms, and {idle_too_long} of as many that only count"
            ))
            .over(longest)
    }
}

async fn outbox(store: &dyn Store) -> anyhow::Result<u64> {
    let mut events = 0;
    for partition in 0..store.partitions() {
        events += store.outbox_len(partition).await?;
    }
    Ok(events)
}

/// The line of the round before goes in the background, on a core that is not there to spare.
async fn all_is_freed(arena: &Arena) -> anyhow::Result<()> {
    while arena.info("memory", "lazyfree_pending_objects").await? > 0.0 {
        tokio::time::sleep(GLANCE).await;
    }
    Ok(())
}

/// How many milliseconds each of the scripts took that took long.
async fn slow_scripts(
    connection: &mut redis::aio::MultiplexedConnection,
) -> anyhow::Result<Vec<f64>> {
    // Its number, when it was, how long it took, what it was, and who asked for it.
    type Entry = (u64, u64, f64, Vec<String>, String, String);
    let entries: Vec<Entry> =
        redis::cmd("SLOWLOG").arg("GET").arg(-1).query_async(connection).await?;
    let scripts = entries.into_iter().filter(|entry| entry.3[0].starts_with("EVAL"));
    Ok(scripts.map(|entry| entry.2 / 1_000.0).collect())
}

/// The same of as many scripts that do nothing.
async fn slow_idle_scripts(
    connection: &mut redis::aio::MultiplexedConnection,
) -> anyhow::Result<Vec<f64>> {
    watch_slow_scripts(connection).await?;
    for _ in 0..CALLS {
        redis::cmd("EVAL").arg(IDLE_SCRIPT).arg(0).query_async::<()>(connection).await?;
    }
    slow_scripts(connection).await
}

async fn watch_slow_scripts(
    connection: &mut redis::aio::MultiplexedConnection,
) -> anyhow::Result<()> {
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("slowlog-log-slower-than").arg(WATCHED);
    set.arg("slowlog-max-len").arg(2 * CALLS);
    set.query_async::<()>(connection).await?;
    Ok(redis::cmd("SLOWLOG").arg("RESET").query_async::<()>(connection).await?)
}
