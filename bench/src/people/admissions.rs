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
use super::{Options, full_load, script_time, slow_log};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// How often the outbox is looked at until it is empty. Looking all the time would take the core
/// that Redis needs.
const GLANCE: Duration = Duration::from_millis(1);

pub(super) async fn measure(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let mut connection = arena.redis.connection().await?;
    let leader = Leader::new(arena).await?;
    let (mut rates, mut slow) = (Vec::new(), Vec::new());
    for round in 0..=options.rounds {
        let line = leader.line(&format!("door-{round}")).await?;
        slow_log::watch(&mut connection).await?;
        let took = leader.let_in().await?;
        let too_long = slow_log::read(&mut connection).await?;
        arena.remove(line).await?;
        let rate = f64::from(PEOPLE) / took.as_secs_f64();
        progress(&format!("admissions: {PEOPLE} people, {rate:.0}/s"));
        if round > 0 {
            rates.push(rate);
            slow.extend(too_long);
        }
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
    figures.push(full_load::in_turns(arena, &leader, options).await?);
    figures.push(
        Figure::new("… over 5 ms by the clock", slow.len() as f64, "", Goal::Most(0.0)).with(
            format!(
                "of {} while the rate was measured, with nothing beside them{}",
                CALLS * options.rounds,
                slow_log::longest(&slow),
            ),
        ),
    );
    Ok(figures)
}

/// A leader with its relay, as fast as both can.
pub(super) struct Leader<'a> {
    arena: &'a Arena,
    store: SharedStore,
}

impl<'a> Leader<'a> {
    async fn new(arena: &'a Arena) -> anyhow::Result<Self> {
        let store =
            RedisStore::open(&arena.redis.url(), arena.store.partitions(), SETTINGS).await?;
        Ok(Self { arena, store: Arc::new(store) })
    }

    /// A line in which all are there and may be let in by one tick.
    pub(super) async fn line(&self, name: &str) -> anyhow::Result<Line> {
        let line = self.arena.line(name, PEOPLE as usize).await?;
        let policy = Policy { tokens_per_tick: Some(PEOPLE), ..Policy::default() };
        line.set_policy(&self.arena.store, &policy).await?;
        line.was_seen(&self.arena.store, now() + LATER).await?;
        Ok(line)
    }

    /// Lets everybody in who waits, and says how long it took until the outbox was empty again.
    pub(super) async fn let_in(&self) -> anyhow::Result<Duration> {
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
