//! Constant load without faults. Checks that no process and no data in Redis grows.

mod chart;
mod growth;
mod report;
mod sample;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemId, UserId};
use daegi_testkit::Kafka;
use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::runner::arrival::Arrival;
use crate::runner::client::{RecordingClient, UserRef};
use crate::runner::fleet::ChaosFleet;
use crate::runner::items::{ItemKind, UNLIMITED};
use crate::runner::recorder::Recorder;
use crate::runner::redis::RedisUnderTest;
use crate::runner::virtual_user::VirtualUser;
pub use report::SoakReport;
use sample::{Calls, Sample};

/// Number of lines.
const LINES: usize = 4;

/// Estimated calls per user. The actual rate is measured, and the arrival rate is adjusted.
const CALLS_EACH: f64 = 6.0;

/// Intervals of arrivals and samples.
const ARRIVAL_INTERVAL: Duration = Duration::from_millis(100);
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// Progress is printed once per minute.
const SAMPLES_PER_REPORT: usize = 12;

/// Limit for users that are still in line at the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs on a single Redis and writes a chart to this directory.
///
/// # Errors
/// If the fleet cannot be started or a file cannot be written.
pub async fn run(
    length: Duration,
    rate: f64,
    out: &Path,
    redis: RedisUnderTest,
    kafka: Kafka,
) -> anyhow::Result<SoakReport> {
    let logs = out.join("logs");
    std::fs::create_dir_all(&logs)?;
    let fleet = ChaosFleet::start(redis, kafka, &logs).await?;
    // The quota is twice the arrival rate, so that lines neither vanish nor grow.
    let per_tick = (rate / CALLS_EACH / LINES as f64).ceil() as u32;
    let kinds = [ItemKind::new("evening", LINES, "always", None, UNLIMITED, per_tick.max(1))];
    fleet.put_items(&kinds).await?;
    let recorder = Arc::new(Recorder::counting());
    let client = Arc::new(RecordingClient::new(&fleet, recorder.clone()).await?);
    let end = Instant::now() + length;
    let users = start_users(&kinds[0], rate, end, &client, &recorder);
    let (samples, users) = tokio::join!(sample(&fleet, end, &recorder), users);
    join_all(users?).await?;
    let report = SoakReport::new(samples, rate, recorder.first_unanswered());
    std::fs::write(out.join("soak.svg"), chart::draw(&report))?;
    Ok(report)
}

/// Starts users at the arrival rate that produces the request rate.
async fn start_users(
    kind: &ItemKind,
    rate: f64,
    end: Instant,
    client: &Arc<RecordingClient>,
    recorder: &Recorder,
) -> anyhow::Result<JoinSet<()>> {
    let (items, mut rng): (Vec<_>, _) = (kind.ids().collect(), Rng::with_seed(1));
    let (mut users, mut number, mut due) = (JoinSet::new(), 0, 0.0);
    let mut per_second = rate / CALLS_EACH;
    let (mut measured_at, mut calls) = (Instant::now(), 0);
    let mut pace = interval(ARRIVAL_INTERVAL);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < end {
        pace.tick().await;
        due += per_second * ARRIVAL_INTERVAL.as_secs_f64();
        while due >= 1.0 {
            due -= 1.0;
            number += 1;
            let user_ref = UserRef {
                user: UserId::parse(&format!("person-{number}"))?,
                item: ItemId::parse(&items[number % items.len()])?,
            };
            let (arrival, deadline) = (Arrival::At(Instant::now()), end + DRAIN_TIMEOUT);
            let (client, rng, code, moves) = (client.clone(), rng.fork(), None, false);
            let user = VirtualUser { user_ref, client, rng, arrival, deadline, code, moves };
            users.spawn(user.run());
        }
        while let Some(ended) = users.try_join_next() {
            ended?;
        }
        // After the users of the last interval have finished their calls.
        if measured_at.elapsed() > 2 * SAMPLE_INTERVAL {
            let all = recorder.calls().all;
            let measured = (all - calls) as f64 / measured_at.elapsed().as_secs_f64();
            per_second *= (rate / measured.max(1.0)).clamp(0.8, 1.2);
            (measured_at, calls) = (Instant::now(), all);
        }
    }
    Ok(users)
}

async fn sample(fleet: &ChaosFleet, end: Instant, recorder: &Recorder) -> Vec<Sample> {
    let (began, mut samples) = (Instant::now(), Vec::new());
    let mut interval_timer = interval(SAMPLE_INTERVAL);
    while Instant::now() < end {
        interval_timer.tick().await;
        samples.push(Sample::take(fleet, began.elapsed(), recorder.calls()).await);
        if samples.len() % SAMPLES_PER_REPORT == 0 {
            progress(began.elapsed(), recorder);
        }
    }
    samples
}

#[expect(clippy::print_stderr, reason = "the progress of a long run")]
fn progress(so_far: Duration, recorder: &Recorder) {
    let Calls { all, unanswered } = recorder.calls();
    eprintln!("soak: {:.0} s, {all} calls, {unanswered} unanswered", so_far.as_secs_f64());
}

async fn join_all(mut users: JoinSet<()>) -> anyhow::Result<()> {
    while let Some(ended) = users.join_next().await {
        ended?;
    }
    Ok(())
}
