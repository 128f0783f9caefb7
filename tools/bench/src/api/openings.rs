//! The opening of a drawn line: how long the leader takes, and the instructions of the Redis commands that it sends.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use daegi_domain::{Drawn, Policy};
use daegi_scheduler::Ticker;
use daegi_store::{
    AdmissionStore, ItemStore, LEAVES_PER_CALL, MAX_USERS_PER_CALL, OpeningStore, RedisStore,
    SharedStore, Store,
};

use super::Options;
use super::callgrind::{CountedFunction, CountedRedis};
use super::fixture::{ApiFixture, SETTINGS, now_ms};
use super::line::{Line, draw_at};
use crate::measurement::{Measurement, Target, median};
use crate::report::progress;

/// 5 ms at the 6.5 million instructions per millisecond of ADR 016, and 3 ms as for the longest script of a leader.
const MAX_OPENING_MILLIONS: f64 = 32.5;
const MAX_OTHER_MILLIONS: f64 = 20.0;
/// The leader's other lines wait for the end of the tick that opens a line.
const MAX_SECONDS: f64 = 10.0;
/// Tickets that the leader reads per call.
const TICKETS_PER_CALL: u32 = 2_000;
/// Calls that admit drawn tickets.
const ADMISSION_CALLS: u32 = 20;

pub(super) async fn measure(
    fixture: &ApiFixture,
    options: &Options,
) -> anyhow::Result<Vec<Measurement>> {
    let mut measurements = vec![time_opening(fixture, options.users).await?];
    measurements.extend(count_commands(options.users).await?);
    Ok(measurements)
}

/// Opens a line as the leader does: one tick, from the frozen cohort to the event.
async fn time_opening(fixture: &ApiFixture, users: usize) -> anyhow::Result<Measurement> {
    progress(&format!("filling a lobby with {users} users"));
    let opens_at = now_ms();
    let line = Line::fill_lobby(&fixture.store, "opening", users, opens_at).await?;
    let (partitions, url) = (fixture.store.partitions(), fixture.redis.url());
    let store: SharedStore = Arc::new(RedisStore::open(&url, partitions, SETTINGS).await?);
    let epoch = store.begin_term(0).await?;
    let mut ticker = Ticker::new(store, epoch, u64::MAX).with_ticket_keys(fixture.keys.clone());
    let redis_before = fixture.redis_cpu_seconds().await?;
    let started = Instant::now();
    ticker.tick(now_ms()).await?;
    let seconds = started.elapsed().as_secs_f64();
    let redis_seconds = fixture.redis_cpu_seconds().await? - redis_before;
    let item = fixture.store.item(&line.item).await?.context("item not found")?;
    ensure!(item.opened_at.is_some(), "the line has not opened");
    fixture.remove(line).await?;
    let measurement =
        Measurement::new("opening of a drawn line", seconds, "s", Target::AtMost(MAX_SECONDS));
    Ok(measurement.with_detail(format!("{users} in the lobby; CPU of Redis {redis_seconds:.2} s")))
}

/// Counts the instructions of each kind of command of an opening and of the admissions after it.
async fn count_commands(users: usize) -> anyhow::Result<Vec<Measurement>> {
    let Some(redis) = CountedRedis::start(CountedFunction::Command).await? else {
        return Ok(Vec::new());
    };
    progress("counting the instructions of an opening");
    let (store, now) = (&redis.store, now_ms());
    let line = Line::fill_lobby(store, "opening", users, now).await?;
    let epoch = store.begin_term(0).await?;

    redis.start_counting()?;
    let cohort = store.freeze_cohort(epoch, &line.item, now).await?.context("no draw is due")?;
    let Some(freeze) = redis.take_counts()? else { return Ok(Vec::new()) };
    ensure!(cohort.size == users as u64, "{cohort:?}");
    redis.start_counting()?;
    store.waiting_from(&line.item, cohort.first, TICKETS_PER_CALL).await?;
    let read = redis.take_counts()?.unwrap_or_default();
    redis.start_counting()?;
    store.put_leaves(&line.item, &[1; 32], 0, &[[2; 32]; LEAVES_PER_CALL]).await?;
    let leaves = redis.take_counts()?.unwrap_or_default();
    let drawn = Drawn { root: [1; 32], beacon: None, seed: [9; 32] };
    redis.start_counting()?;
    ensure!(store.open_line(epoch, &line.item, Some(drawn), now).await?, "not opened");
    let open = redis.take_counts()?.unwrap_or_default();

    let quota = ADMISSION_CALLS * MAX_USERS_PER_CALL;
    let opening = Some(draw_at(now));
    let policy =
        Policy { tokens_per_tick: Some(quota), opening, grace_seconds: 0, ..Policy::default() };
    line.set_policy(store, &policy).await?;
    redis.start_counting()?;
    let admission = store.admit(epoch, &line.item, quota, 0, u64::MAX >> 1, now).await?;
    let admit = redis.take_counts()?.unwrap_or_default();
    ensure!(admission.admitted > 0, "{admission:?}");

    let detail = format!(
        "{users} in the lobby; freeze_cohort {:.2}, open_line {:.2} million",
        longest(&freeze),
        longest(&open)
    );
    let others = format!(
        "admit: {:.1}, median {:.1}; {TICKETS_PER_CALL} tickets read: {:.1}; {LEAVES_PER_CALL} leaves stored: {:.2} million",
        longest(&admit),
        median(admit.clone()) / 1e6,
        longest(&read),
        longest(&leaves),
    );
    Ok(vec![
        row("… longest opening script, by instructions", &[&freeze, &open], MAX_OPENING_MILLIONS)
            .with_detail(detail),
        row("… longest other command of a draw", &[&admit, &read, &leaves], MAX_OTHER_MILLIONS)
            .with_detail(others),
    ])
}

/// The most instructions of one command, in millions.
fn longest(counts: &[f64]) -> f64 {
    counts.iter().copied().fold(0.0, f64::max) / 1e6
}

fn row(name: &str, counts: &[&[f64]], most: f64) -> Measurement {
    let longest = counts.iter().map(|counts| longest(counts)).fold(0.0, f64::max);
    Measurement::new(name, longest, "million", Target::AtMost(most))
}
