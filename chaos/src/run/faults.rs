//! Carries the nemesis' plan out.

use std::time::Duration;

use daegi_testkit::{Condition, Member};
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::recorder::{Recorder, now};
use super::stage::{Slot, Stage};
use crate::history::{Entry, Fault, FaultKind};
use crate::nemesis::{Planned, Target};

/// How slow a slow cable is: noticed by everybody, too short for a call to be given up.
const SLOW: Duration = Duration::from_millis(150);

/// Brings all sequences side by side, and returns when the last fault is over.
pub(super) async fn bring(stage: &Stage, plan: [Vec<Planned>; 2], recorder: &Recorder) {
    let [members, servers] = plan;
    tokio::join!(sequence(stage, members, recorder), sequence(stage, servers, recorder));
}

async fn sequence(stage: &Stage, plan: Vec<Planned>, recorder: &Recorder) {
    for planned in plan {
        sleep(planned.after).await;
        let from = now();
        let target = strike(stage, &planned).await;
        let fault = Fault { what: planned.what, target, from, to: now() };
        recorder.write(&Entry::Fault(fault));
    }
}

/// Does it, for as long as planned, and says to whom.
async fn strike(stage: &Stage, planned: &Planned) -> String {
    let slot = match planned.target {
        Target::Redis => return redis(stage, planned).await,
        Target::Kafka => return kafka(stage, planned).await,
        Target::Leader => stage.leader().await.unwrap_or(&stage.schedulers[0]),
        Target::Scheduler(at) => &stage.schedulers[at],
        Target::Api(at) => &stage.apis[at],
        Target::Consumer(at) => &stage.consumers[at],
    };
    member(slot, planned).await;
    slot.name.clone()
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
        FaultKind::Slow => cable(slot, Condition::Slow(SLOW), planned.lasts).await,
        FaultKind::Cut => cable(slot, Condition::Cut, planned.lasts).await,
        FaultKind::Deaf => cable(slot, Condition::Deaf, planned.lasts).await,
        FaultKind::Dead => cable(slot, Condition::Dead, planned.lasts).await,
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
    slot.cable.set(condition);
    sleep(lasts).await;
    slot.cable.set(Condition::Good);
}

/// A server that does not come back fails the run by what people tell.
async fn redis(stage: &Stage, planned: &Planned) -> String {
    let mut redis = stage.redis.lock().await;
    if planned.what == FaultKind::Pause {
        let _ = redis.pause();
        sleep(planned.lasts).await;
        let _ = redis.resume();
    } else {
        block_in_place(|| redis.stop());
        sleep(planned.lasts).await;
        let _ = redis.start_again().await;
    }
    "redis".to_owned()
}

async fn kafka(stage: &Stage, planned: &Planned) -> String {
    let mut kafka = stage.kafka.lock().await;
    block_in_place(|| kafka.kill());
    sleep(planned.lasts).await;
    let _ = kafka.start_again().await;
    "kafka".to_owned()
}
