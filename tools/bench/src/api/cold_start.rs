//! A pod that starts while a long line waits, and the Redis memory of that line.

use anyhow::Context;
use daegi_domain::Policy;
use daegi_domain::liveness::SLICE_MS;
use daegi_store::TicketStore;

use super::Options;
use super::fixture::{ApiFixture, now_ms};
use crate::measurement::{Measurement, Target, median};
use crate::report::progress;

/// One of so many users has left the middle of the line.
const DEPARTED_EVERY: usize = 10;
/// Liveness slices that the store keeps for a line with the default policy.
const SLICES: u64 = 27;

pub(super) async fn measure(
    fixture: &ApiFixture,
    options: &Options,
) -> anyhow::Result<Vec<Measurement>> {
    let users = options.users;
    progress(&format!("filling a line with {users} users for the cold start"));
    let before = fixture.redis_info("memory", "used_memory").await?;
    let line = fixture.line("cold-start", users).await?;
    line.set_policy(&fixture.store, &Policy::default()).await?;
    let now = now_ms();
    for age in (0..SLICES).rev() {
        line.mark_all_seen(&fixture.store, now - age * SLICE_MS).await?;
    }
    let bytes = fixture.redis_info("memory", "used_memory").await? - before;
    for ticket in line.tickets.iter().step_by(DEPARTED_EVERY) {
        fixture.store.leave(ticket, now_ms()).await?;
    }
    let last = line.tickets.last().context("the line is empty")?;
    let path = line.poll_path(&fixture.keys, last);
    let mut seconds = Vec::new();
    for round in 1..=options.rounds {
        let pod = ApiFixture::pod(&fixture.redis.url())?;
        seconds.push(pod.wait_until_ready(&path).await?.as_secs_f64());
        progress(&format!("cold start: round {round} of {}", options.rounds));
    }
    fixture.remove(line).await?;
    let departed = users.div_ceil(DEPARTED_EVERY);
    Ok(vec![
        Measurement::new("cold start of a pod", median(seconds.clone()), "s", Target::AtMost(1.0))
            .with_detail(format!(
                "start to first poll response; {users} joined, {departed} departed"
            ))
            .with_rounds(seconds),
        Measurement::new(
            "Redis memory per waiting user",
            bytes / users as f64,
            "B",
            Target::AtMost(120.0),
        )
        .with_detail(format!("{users} users, ids of 10 characters, seen in all {SLICES} slices")),
    ])
}
