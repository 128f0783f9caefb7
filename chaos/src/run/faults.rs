//! Carries the nemesis' plan out.

use std::time::Duration;

use daegi_testkit::{Condition, Member, Redis};
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};

use super::catalogue::KINDS;
use super::recorder::{Recorder, now};
use super::stage::{ADMISSION, Slot, Stage};
use crate::history::{Entry, Fault, FaultKind, Millis};
use crate::nemesis::{Planned, Target};

/// How slow a slow cable is: noticed by everybody, too short for a call to be given up.
const SLOW: Duration = Duration::from_millis(150);

/// How long a cable is slow before it is dead.
const LIMP: Duration = Duration::from_millis(700);

/// How long somebody lies in wait for a leader, and for one of its admissions.
const AMBUSH: Duration = Duration::from_secs(5);

/// Brings all sequences side by side, and returns when the last fault is over. None begins after the
/// end: servers take their time to come back, and what was planned after them comes later.
pub(super) async fn bring(
    stage: &Stage,
    plan: [Vec<Planned>; 2],
    end: Instant,
    recorder: &Recorder,
) -> anyhow::Result<()> {
    let [members, servers] = plan;
    let members = sequence(stage, members, end, recorder);
    tokio::try_join!(members, sequence(stage, servers, end, recorder))?;
    Ok(())
}

/// What could not be broken as planned, or does not come back, fails the run: a fault that never was
/// would excuse what it has not caused.
async fn sequence(
    stage: &Stage,
    plan: Vec<Planned>,
    end: Instant,
    recorder: &Recorder,
) -> anyhow::Result<()> {
    for planned in plan {
        if Instant::now() + planned.after > end && !planned.what.loses() {
            continue;
        }
        sleep(planned.after).await;
        let from = now();
        let target = strike(stage, &planned).await?;
        // What is not there any more was lost before this moment, and what comes is after it.
        let to = now() + Millis::from(planned.what.loses());
        recorder.write(&Entry::Fault(Fault { what: planned.what, target, from, to }));
        if planned.what == FaultKind::FailOver {
            sleep(planned.lasts).await;
            stage.redis.lock().await.complete().await?;
        }
        if planned.what.forgets_items() {
            // Policies are operators' words, which nobody else knows.
            stage.put_items(&KINDS).await?;
        }
    }
    Ok(())
}

/// Does it, for as long as planned, and says to whom.
async fn strike(stage: &Stage, planned: &Planned) -> anyhow::Result<String> {
    let slot = match planned.target {
        Target::Redis => return redis(stage, planned).await,
        Target::Kafka => return kafka(stage, planned).await,
        Target::Leader => awaited_leader(stage).await,
        Target::Scheduler(at) => &stage.schedulers[at],
        Target::Api(at) => &stage.apis[at],
        Target::Consumer(at) => &stage.consumers[at],
    };
    member(slot, planned).await;
    Ok(slot.name.clone())
}

async fn member(slot: &Slot, planned: &Planned) {
    match planned.what {
        FaultKind::Kill => down(slot, planned.lasts, Member::cut_power).await,
        FaultKind::Stop => {
            down(slot, planned.lasts, |member| {
                member.stop();
            })
            .await;
        }
        FaultKind::Pause => {
            slot.member.lock().await.pause();
            sleep(planned.lasts).await;
            slot.member.lock().await.resume();
        }
        FaultKind::Snare => snare(slot, planned.lasts).await,
        // Nobody can plan it, or not for these.
        FaultKind::Stall
        | FaultKind::Flush
        | FaultKind::Wipe
        | FaultKind::Rollback
        | FaultKind::FailOver => {}
        FaultKind::Slow => cable(slot, Condition::Slow(SLOW), planned.lasts).await,
        FaultKind::Cut => cable(slot, Condition::Cut, planned.lasts).await,
        FaultKind::Deaf => {
            if planned.target == Target::Leader {
                // From an admission on, which is carried out: whatever was to follow it does not.
                catch_admission(slot).await;
            }
            cable(slot, Condition::Deaf, planned.lasts).await;
        }
        FaultKind::Dead => {
            // Slow first, as networks are when they fail: then much is under way when it dies, and
            // arrives in somebody else's term.
            cable(slot, Condition::Slow(SLOW), LIMP).await;
            cable(slot, Condition::Dead, planned.lasts).await;
        }
    }
}

/// Waits a while for somebody to lead.
async fn awaited_leader(stage: &Stage) -> &Slot {
    let deadline = Instant::now() + AMBUSH;
    while Instant::now() < deadline {
        if let Some(leader) = stage.leader().await {
            return leader;
        }
        sleep(Duration::from_millis(50)).await;
    }
    &stage.schedulers[0]
}

/// Holds an admission back until another one has led for a while. The process goes on and does not
/// know: this is what a pause between deciding and doing looks like from outside.
async fn snare(slot: &Slot, lasts: Duration) {
    catch_admission(slot).await;
    sleep(lasts).await;
    slot.set(Condition::Good);
}

async fn catch_admission(slot: &Slot) {
    slot.set(Condition::Snare(ADMISSION));
    if let Some(cable) = &slot.cable {
        // One that has lost its term meanwhile lets nobody in.
        let _ = tokio::time::timeout(AMBUSH, cable.caught()).await;
    }
}

async fn down(slot: &Slot, lasts: Duration, end: impl FnOnce(&mut Member)) {
    {
        let mut member = slot.member.lock().await;
        block_in_place(|| end(&mut member));
    }
    sleep(lasts).await;
    slot.member.lock().await.start_again();
}

async fn cable(slot: &Slot, condition: Condition, lasts: Duration) {
    slot.set(condition);
    sleep(lasts).await;
    slot.set(Condition::Good);
}

async fn redis(stage: &Stage, planned: &Planned) -> anyhow::Result<String> {
    let mut servers = stage.redis.lock().await;
    if planned.what == FaultKind::FailOver {
        servers.fail_over().await?;
    } else if let Some(redis) = servers.alone_mut() {
        alone(redis, planned).await?;
    }
    Ok("redis".to_owned())
}

async fn alone(redis: &mut Redis, planned: &Planned) -> anyhow::Result<()> {
    match planned.what {
        FaultKind::Pause => {
            redis.pause()?;
            sleep(planned.lasts).await;
            redis.resume()?;
        }
        FaultKind::Flush => redis.ask::<()>(&["FLUSHALL"]).await?,
        what => {
            block_in_place(|| redis.stop());
            sleep(planned.lasts).await;
            if what == FaultKind::Wipe {
                redis.start_empty().await?;
            } else {
                redis.start_again().await?;
            }
        }
    }
    Ok(())
}

async fn kafka(stage: &Stage, planned: &Planned) -> anyhow::Result<String> {
    let mut kafka = stage.kafka.lock().await;
    block_in_place(|| kafka.kill());
    sleep(planned.lasts).await;
    kafka.start_again().await?;
    Ok("kafka".to_owned())
}
