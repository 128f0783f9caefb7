//! Admissions through one leader: from the line into the entry set and out of the outbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use daegi_domain::Policy;
use daegi_scheduler::{DiscardSink, Relay, Ticker};
use daegi_store::{RedisStore, SharedStore, Store};
use tokio::process::Command;

use super::fixture::{ApiFixture, ROUND_DELAY_MS, SETTINGS, now_ms};
use super::line::Line;
use super::{Options, longest_script};
use crate::measurement::{Measurement, Target, median};
use crate::report::progress;

/// One line with a quota for all of them: the worst case for one partition.
pub(super) const USERS: u32 = 200_000;
/// Interval between two reads of the outbox length. Reading without a pause would take the core that Redis needs.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

pub(super) async fn measure(
    fixture: &ApiFixture,
    options: &Options,
) -> anyhow::Result<Vec<Measurement>> {
    let (partitions, url) = (fixture.store.partitions(), fixture.redis.url());
    let store: SharedStore = Arc::new(RedisStore::open(&url, partitions, SETTINGS).await?);
    let (mut rates, mut writes) = (Vec::new(), Vec::new());
    for round in 0..=options.rounds {
        let line = ready_line(&fixture.store, &format!("admissions-{round}")).await?;
        let rate = f64::from(USERS) / admit_all(&store).await?.as_secs_f64();
        fixture.remove(line).await?;
        let write_rate = baseline_writes_per_second(fixture).await?;
        progress(&format!("admissions: {rate:.0}/s; ZADD {write_rate:.0}/s"));
        if round > 0 {
            rates.push(rate);
            writes.push(write_rate);
        }
    }
    let ratios = rates.iter().zip(&writes).map(|(rate, writes)| rate / writes).collect();
    let (rate, write_rate) = (median(rates.clone()), median(writes));
    let mut measurements = vec![
        Measurement::new("admissions through one leader", rate, "/s", Target::AtLeast(80_000.0))
            .with_detail("one line, all users seen; written to the outbox, read and acknowledged")
            .with_rounds(rates),
        Measurement::new("… vs one pipelined ZADD per user", rate / write_rate, "", Target::None)
            .with_detail(format!("redis-benchmark, 64 commands per pipeline: {write_rate:.0}/s"))
            .with_rounds(ratios),
    ];
    measurements.extend(longest_script::measure().await?);
    Ok(measurements)
}

/// A line whose users were all seen and may be admitted by one tick.
pub(super) async fn ready_line(store: &RedisStore, name: &str) -> anyhow::Result<Line> {
    let line = Line::fill(store, name, USERS as usize).await?;
    let policy = Policy { tokens_per_tick: Some(USERS), ..Policy::default() };
    line.set_policy(store, &policy).await?;
    line.mark_all_seen(store, now_ms() + ROUND_DELAY_MS).await?;
    Ok(line)
}

/// Runs one tick with a relay that publishes nowhere. Returns the time until the outbox is empty.
pub(super) async fn admit_all(store: &SharedStore) -> anyhow::Result<Duration> {
    let epoch = store.begin_term(0).await?;
    let mut ticker = Ticker::new(store.clone(), epoch, u64::MAX);
    let relay = Relay::new(store.clone(), Arc::new(DiscardSink));
    let started = Instant::now();
    let admitted = async {
        let report = ticker.tick(now_ms() + ROUND_DELAY_MS).await?;
        for partition in 0..store.partitions() {
            while store.outbox_len(partition).await? > 0 {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        anyhow::Ok(report.admitted)
    };
    let admitted = tokio::select! {
        () = relay.run() => anyhow::bail!("the relay stopped"),
        admitted = admitted => admitted?,
    };
    ensure!(admitted == USERS, "{admitted} of {USERS} users admitted");
    Ok(started.elapsed())
}

/// The least a store must write: one sorted set member per user.
async fn baseline_writes_per_second(fixture: &ApiFixture) -> anyhow::Result<f64> {
    let mut benchmark = Command::new("redis-benchmark");
    benchmark.args(["-p", &fixture.redis.port().to_string(), "--csv", "-c", "8", "-P", "64"]);
    benchmark.args(["-n", &USERS.to_string(), "-r", "1000000000"]);
    benchmark.args(["ZADD", "baseline", "__rand_int__", "u__rand_int__"]);
    let output = benchmark.output().await.context("redis-benchmark comes with redis-server")?;
    ensure!(output.status.success(), "redis-benchmark: {output:?}");
    let text = String::from_utf8(output.stdout)?;
    let row = text.lines().last().context("redis-benchmark printed nothing")?;
    // "ZADD baseline …","123456.78",…
    let rate = row.split("\",\"").nth(1).context("redis-benchmark printed no rate")?;
    Ok(rate.trim_matches('"').parse()?)
}
