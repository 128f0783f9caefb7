//! Injects the planned faults.

use std::time::Duration;

use daegi_testkit::{FleetProcess, LinkFault, Redis};
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};

use super::fleet::{ADMISSION, ChaosFleet, FleetNode};
use super::recorder::{Recorder, now};
use crate::history::{Entry, Fault, FaultKind, Millis};
use crate::nemesis::{Planned, Target};

/// Delay of a slow link: noticeable, but below the call timeouts.
const LINK_DELAY: Duration = Duration::from_millis(150);

/// Duration of the delay before a link holds all traffic.
const DELAY_BEFORE_HOLD: Duration = Duration::from_millis(700);

/// Limit for finding a leader, and for trapping one of its admissions.
const TRAP_TIMEOUT: Duration = Duration::from_secs(5);

/// Injects both sequences in parallel and returns after the last fault. No fault begins after `end`, because the restart of a
/// server delays the faults after it.
pub(super) async fn inject_all(
    fleet: &ChaosFleet,
    plan: [Vec<Planned>; 2],
    end: Instant,
    recorder: &Recorder,
) -> anyhow::Result<()> {
    let [members, servers] = plan;
    let members = sequence(fleet, members, end, recorder);
    tokio::try_join!(members, sequence(fleet, servers, end, recorder))?;
    Ok(())
}

/// A fault that cannot be injected, or a target that does not come back, fails the run, because the checker would excuse
/// violations by a fault that did not happen.
async fn sequence(
    fleet: &ChaosFleet,
    plan: Vec<Planned>,
    end: Instant,
    recorder: &Recorder,
) -> anyhow::Result<()> {
    for planned in plan {
        if Instant::now() + planned.after > end && !planned.what.loses_data() {
            continue;
        }
        sleep(planned.after).await;
        let _no_opening_ahead = match planned.what.loses_items() {
            true => Some(fleet.opening_ahead.lock().await),
            false => None,
        };
        let from = now();
        let target = inject(fleet, &planned).await?;
        // The era boundary: lost writes are before this time, new ones after it.
        let to = now() + Millis::from(planned.what.loses_data());
        recorder.write(&Entry::Fault(Fault { what: planned.what, target, from, to }));
        if planned.what == FaultKind::FailOver {
            sleep(planned.lasts).await;
            fleet.redis.lock().await.restart_stopped().await?;
        }
    }
    Ok(())
}

/// Injects one fault for its duration and returns the target.
async fn inject(fleet: &ChaosFleet, planned: &Planned) -> anyhow::Result<String> {
    let node = match planned.target {
        Target::Redis => return redis(fleet, planned).await,
        Target::Kafka => return kafka(fleet, planned).await,
        Target::Leader => wait_for_leader(fleet).await,
        Target::Scheduler(at) => &fleet.schedulers[at],
        Target::Api(at) => &fleet.apis[at],
        Target::Consumer(at) => &fleet.consumers[at],
    };
    inject_process_fault(node, planned).await;
    Ok(node.name.clone())
}

async fn inject_process_fault(node: &FleetNode, planned: &Planned) {
    match planned.what {
        FaultKind::Kill => down(node, planned.lasts, FleetProcess::sigkill).await,
        FaultKind::Stop => {
            down(node, planned.lasts, |member| {
                member.stop();
            })
            .await;
        }
        FaultKind::Pause => {
            node.member.lock().await.pause();
            sleep(planned.lasts).await;
            node.member.lock().await.resume();
        }
        FaultKind::TrapAdmission => trap_admission(node, planned.lasts).await,
        // Not injected into processes.
        FaultKind::Stall
        | FaultKind::Flush
        | FaultKind::RestartEmpty
        | FaultKind::Rollback
        | FaultKind::FailOver => {}
        FaultKind::Delay => hold_link(node, LinkFault::Delay(LINK_DELAY), planned.lasts).await,
        FaultKind::Reset => hold_link(node, LinkFault::Reset, planned.lasts).await,
        FaultKind::HoldReplies => {
            if planned.target == Target::Leader {
                // Begins with an admission, which is executed while its reply is held.
                await_trapped(node).await;
            }
            hold_link(node, LinkFault::HoldReplies, planned.lasts).await;
        }
        FaultKind::HoldAll => {
            // Delay first, so that many requests are in flight when the link holds them, and they arrive in the next
            // leader's term.
            hold_link(node, LinkFault::Delay(LINK_DELAY), DELAY_BEFORE_HOLD).await;
            hold_link(node, LinkFault::HoldAll, planned.lasts).await;
        }
    }
}

/// Waits up to `TRAP_TIMEOUT` for a leader; the first scheduler if there is none.
async fn wait_for_leader(fleet: &ChaosFleet) -> &FleetNode {
    let deadline = Instant::now() + TRAP_TIMEOUT;
    while Instant::now() < deadline {
        if let Some(leader) = fleet.leader().await {
            return leader;
        }
        sleep(Duration::from_millis(50)).await;
    }
    &fleet.schedulers[0]
}

/// Holds an admission while another leader takes over. The process continues without noticing, as after a pause between
/// decision and write.
async fn trap_admission(node: &FleetNode, lasts: Duration) {
    await_trapped(node).await;
    sleep(lasts).await;
    node.set(LinkFault::None);
}

async fn await_trapped(node: &FleetNode) {
    node.set(LinkFault::TrapRequest(ADMISSION));
    if let Some(proxy) = &node.proxy {
        // A scheduler that has lost its term sends no admission.
        let _ = tokio::time::timeout(TRAP_TIMEOUT, proxy.trapped()).await;
    }
}

async fn down(node: &FleetNode, lasts: Duration, end: impl FnOnce(&mut FleetProcess)) {
    {
        let mut member = node.member.lock().await;
        block_in_place(|| end(&mut member));
    }
    sleep(lasts).await;
    node.member.lock().await.start_again();
}

async fn hold_link(node: &FleetNode, fault: LinkFault, lasts: Duration) {
    node.set(fault);
    sleep(lasts).await;
    node.set(LinkFault::None);
}

async fn redis(fleet: &ChaosFleet, planned: &Planned) -> anyhow::Result<String> {
    let mut servers = fleet.redis.lock().await;
    if planned.what == FaultKind::FailOver {
        servers.fail_over().await?;
    } else if let Some(redis) = servers.single_mut() {
        inject_redis_fault(redis, planned).await?;
    }
    Ok("redis".to_owned())
}

async fn inject_redis_fault(redis: &mut Redis, planned: &Planned) -> anyhow::Result<()> {
    match planned.what {
        FaultKind::Pause => {
            redis.pause()?;
            sleep(planned.lasts).await;
            redis.resume()?;
        }
        FaultKind::Flush => redis.command::<()>(&["FLUSHALL"]).await?,
        what => {
            block_in_place(|| redis.stop());
            sleep(planned.lasts).await;
            if what == FaultKind::RestartEmpty {
                redis.start_empty().await?;
            } else {
                redis.start_again().await?;
            }
        }
    }
    Ok(())
}

async fn kafka(fleet: &ChaosFleet, planned: &Planned) -> anyhow::Result<String> {
    let mut kafka = fleet.kafka.lock().await;
    block_in_place(|| kafka.kill());
    sleep(planned.lasts).await;
    kafka.start_again().await?;
    Ok("kafka".to_owned())
}
