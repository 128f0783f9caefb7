//! A long evening without faults: people come, wait, order and go, as many as make a steady rate of
//! requests. Does anything grow?

mod findings;
mod growth;
mod picture;
mod sample;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemId, UserId};
use daegi_testkit::Kafka;
use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::run::catalogue::{Kind, PLENTY};
use crate::run::person::Person;
use crate::run::pods::{Pods, Who};
use crate::run::recorder::Recorder;
use crate::run::servers::Servers;
use crate::run::stage::Stage;
pub use findings::Findings;
use sample::{Calls, Sample};

/// How many lines there are.
const LINES: usize = 4;

/// About how often a person asks, from the place to the end. The rate is measured, and more or fewer
/// come if this is wrong.
const CALLS_EACH: f64 = 6.0;

/// How often people come, and how often it is looked at what there is.
const PACE: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Once a minute it is told how far it is.
const LOOKS_PER_WORD: usize = 12;

/// How long those who are there when it ends have to go.
const LAST_ORDERS: Duration = Duration::from_secs(30);

/// Runs it on a Redis that is alone, and leaves the samples and a picture in this directory.
///
/// # Errors
/// If the fleet cannot be started, or a file not be written.
pub async fn run(
    length: Duration,
    rate: f64,
    out: &Path,
    redis: Servers,
    kafka: Kafka,
) -> anyhow::Result<Findings> {
    let logs = out.join("logs");
    std::fs::create_dir_all(&logs)?;
    let stage = Stage::open(redis, kafka, &logs).await?;
    // Twice as many may enter as come: lines neither vanish nor grow.
    let per_tick = (rate / CALLS_EACH / LINES as f64).ceil() as u32;
    let kinds = [Kind::new("evening", LINES, "always", None, PLENTY, per_tick.max(1))];
    stage.put_items(&kinds).await?;
    let recorder = Arc::new(Recorder::counting());
    let pods = Arc::new(Pods::of(&stage, recorder.clone()).await?);
    let end = Instant::now() + length;
    let people = come(&kinds[0], rate, end, &pods, &recorder);
    let (samples, people) = tokio::join!(watch(&stage, end, &recorder), people);
    served(people?).await?;
    let findings = Findings::of(samples, rate, recorder.first_unanswered());
    std::fs::write(out.join("soak.svg"), picture::draw(&findings))?;
    Ok(findings)
}

/// Lets people come at a pace that makes the rate of requests.
async fn come(
    kind: &Kind,
    rate: f64,
    end: Instant,
    pods: &Arc<Pods>,
    recorder: &Recorder,
) -> anyhow::Result<JoinSet<()>> {
    let (items, mut chance): (Vec<_>, _) = (kind.ids().collect(), Rng::with_seed(1));
    let (mut people, mut number, mut due) = (JoinSet::new(), 0, 0.0);
    let mut per_second = rate / CALLS_EACH;
    let (mut looked, mut calls) = (Instant::now(), 0);
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < end {
        pace.tick().await;
        due += per_second * PACE.as_secs_f64();
        while due >= 1.0 {
            due -= 1.0;
            number += 1;
            let who = Who {
                user: UserId::parse(&format!("person-{number}"))?,
                item: ItemId::parse(&items[number % items.len()])?,
            };
            let (comes, deadline) = (Instant::now(), end + LAST_ORDERS);
            let (pods, chance) = (pods.clone(), chance.fork());
            people.spawn(Person { who, pods, chance, comes, deadline }.live());
        }
        while let Some(ended) = people.try_join_next() {
            ended?;
        }
        // Not before those who came have asked as often as they do.
        if looked.elapsed() > 2 * LOOK_EVERY {
            let all = recorder.calls().all;
            let measured = (all - calls) as f64 / looked.elapsed().as_secs_f64();
            per_second *= (rate / measured.max(1.0)).clamp(0.8, 1.2);
            (looked, calls) = (Instant::now(), all);
        }
    }
    Ok(people)
}

async fn watch(stage: &Stage, end: Instant, recorder: &Recorder) -> Vec<Sample> {
    let (began, mut samples) = (Instant::now(), Vec::new());
    let mut looks = interval(LOOK_EVERY);
    while Instant::now() < end {
        looks.tick().await;
        samples.push(Sample::take(stage, began.elapsed(), recorder.calls()).await);
        if samples.len() % LOOKS_PER_WORD == 0 {
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

async fn served(mut people: JoinSet<()>) -> anyhow::Result<()> {
    while let Some(ended) = people.join_next().await {
        ended?;
    }
    Ok(())
}
