//! What people cost Redis.

use anyhow::{Context, ensure};
use daegi_domain::liveness::SLICE_MS;
use daegi_domain::{Policy, UserId};
use daegi_store::Store;
use futures_util::{StreamExt, stream};
use tokio::process::Command;

use super::arena::{Arena, SETTINGS, now};
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// How many people join one by one in a round, and how many of them at once.
const LONERS: usize = 20_000;
const ABREAST: usize = 64;
/// How many slices of liveness the store keeps for a line with the usual policy.
const SLICES: u64 = 27;

/// A line before and after everybody joined and was seen for as long as the store keeps that.
pub(super) async fn memory(arena: &Arena, people: usize) -> anyhow::Result<Vec<Figure>> {
    progress("filling a line, to weigh it");
    let before = arena.info("memory", "used_memory").await?;
    let line = arena.line("scales", people).await?;
    line.set_policy(&arena.store, &Policy::default()).await?;
    let now = now();
    for ago in (0..SLICES).rev() {
        line.was_seen(&arena.store, now - ago * SLICE_MS).await?;
    }
    let each = (arena.info("memory", "used_memory").await? - before) / people as f64;
    arena.store.reset(&line.item, now).await?;
    let name = "Redis memory per waiting person";
    Ok(vec![Figure::new(name, each, "B", Goal::Most(120.0)).with(format!(
        "{people} people, ids of 10 characters, all seen in {SLICES} slices of time"
    ))])
}

/// Microseconds of Redis per person where each one has a script call of their own.
pub(super) async fn cpu_of_lone_joins(arena: &Arena, round: usize) -> anyhow::Result<f64> {
    let line = arena.line("loners", 0).await?;
    let users: Result<Vec<_>, _> =
        (0..LONERS).map(|person| UserId::parse(&format!("l{round:03}{person:06}"))).collect();
    let before = arena.redis_cpu().await?;
    let joins = users?.into_iter().map(|user| {
        let item = &line.item;
        async move { arena.store.join(item, &[user], &SETTINGS, now()).await }
    });
    let mut joins = stream::iter(joins).buffer_unordered(ABREAST);
    while let Some(joined) = joins.next().await {
        joined?;
    }
    Ok((arena.redis_cpu().await? - before) * 1e6 / LONERS as f64)
}

/// Microseconds of Redis per person where nothing is done but to write each of them down, by a
/// command of its own, so many at a time: what is left of a join if all its rules are left out.
pub(super) async fn cpu_of_bare_writes(arena: &Arena, at_a_time: usize) -> anyhow::Result<f64> {
    let before = arena.redis_cpu().await?;
    // Where many go together all is over so soon that more of them have to be measured.
    let (count, connections) = if at_a_time > 1 { (10 * LONERS, "8") } else { (LONERS, "64") };
    let (at_a_time, requests) = (at_a_time.to_string(), count.to_string());
    let mut benchmark = Command::new("redis-benchmark");
    benchmark.args(["-p", &arena.redis.port().to_string(), "-q", "-c", connections]);
    benchmark.args(["-P", &at_a_time, "-n", &requests]);
    benchmark.args(["-r", "1000000000", "ZADD", "bare", "__rand_int__", "u__rand_int__"]);
    let output = benchmark.output().await.context("redis-benchmark comes with redis-server")?;
    ensure!(output.status.success(), "redis-benchmark: {output:?}");
    Ok((arena.redis_cpu().await? - before) * 1e6 / count as f64)
}
