//! Admissions through one leader: from the line to the entry set and out of the outbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use daegi_domain::Policy;
use daegi_scheduler::{Outlet, Relay, Ticker};
use daegi_store::{RedisStore, SharedStore, Store};

use super::arena::{Arena, LATER, SETTINGS, now};
use super::{Options, script_time};
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
/// A script over this is one too long, in milliseconds.
pub(super) const TOO_LONG: f64 = 5.0;

pub(super) async fn measure(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let mut connection = arena.redis.connection().await?;
    let store = RedisStore::open(&arena.redis.url(), arena.store.partitions(), SETTINGS).await?;
    let store: SharedStore = Arc::new(store);
    let (mut rates, mut slow) = (Vec::new(), Vec::new());
    for round in 0..=options.rounds {
        let line = arena.line(&format!("door-{round}"), PEOPLE).await?;
        let policy = Policy { tokens_per_tick: Some(PEOPLE as u32), ..Policy::default() };
        line.set_policy(&arena.store, &policy).await?;
        line.was_seen(&arena.store, now() + LATER).await?;
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
        let too_long = slow_scripts(&mut connection).await?;
        let rate = f64::from(admitted) / started.elapsed().as_secs_f64();
        progress(&format!("admissions: {admitted} people, {rate:.0}/s"));
        if round > 0 {
            rates.push(rate);
            slow.extend(too_long);
        }
        arena.remove(line).await?;
    }
    let mut figures = vec![
        Figure::new(
            "admissions through one leader, outbox included",
            median(rates.clone()),
            "/s",
            Goal::Least(80_000.0),
        )
        .with("one line, all of them seen lately; written to the outbox, read and removed again")
        .over(rates),
    ];
    figures.extend(script_time::of_a_leader(arena, options).await?);
    figures.push(
        Figure::new("… over 5 ms at full load", slow.len() as f64, "", Goal::Most(0.0))
            .with(format!("of {} by the clock{}", CALLS * options.rounds, longest(slow))),
    );
    Ok(figures)
}

async fn outbox(store: &dyn Store) -> anyhow::Result<u64> {
    let mut events = 0;
    for partition in 0..store.partitions() {
        events += store.outbox_len(partition).await?;
    }
    Ok(events)
}

/// The longest few of them, in words.
pub(super) fn longest(mut slow: Vec<f64>) -> String {
    slow.sort_by(|one, other| other.total_cmp(one));
    let few: Vec<_> = slow.iter().take(5).map(|ms| format!("{ms:.1}")).collect();
    if few.is_empty() { String::new() } else { format!(" ({} ms)", few.join(", ")) }
}

/// How many milliseconds each of the scripts took that took too long.
async fn slow_scripts(
    connection: &mut redis::aio::MultiplexedConnection,
) -> anyhow::Result<Vec<f64>> {
    let entries: Vec<Vec<redis::Value>> =
        redis::cmd("SLOWLOG").arg("GET").arg(-1).query_async(connection).await?;
    let milliseconds = |entry: Vec<redis::Value>| {
        // Its number, when it was, how long it took, and what it was.
        let took = entry.into_iter().nth(2).context("no duration")?;
        Ok(redis::from_redis_value::<f64>(took)? / 1_000.0)
    };
    entries.into_iter().map(milliseconds).collect()
}

async fn watch_slow_scripts(
    connection: &mut redis::aio::MultiplexedConnection,
) -> anyhow::Result<()> {
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("slowlog-log-slower-than").arg((TOO_LONG * 1e3) as u32);
    set.query_async::<()>(connection).await?;
    Ok(redis::cmd("SLOWLOG").arg("RESET").query_async::<()>(connection).await?)
}
