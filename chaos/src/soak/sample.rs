//! What there is at one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use daegi_testkit::Redis;

pub(super) use crate::run::recorder::Calls;
use crate::run::stage::Stage;

/// What Redis keeps for an hour and then forgets: how tickets ended, and who was seen. It grows as
/// long as a soak lasts, and is shown, not judged.
const KEPT: [&str; 3] = ["closed", "seen", "births"];

/// One look at everything.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    /// Since the beginning.
    pub(super) at: Duration,
    pub(super) calls: Calls,
    /// By name.
    pub(super) sizes: BTreeMap<String, f64>,
    /// Who is not there, or does not answer.
    pub(super) missing: Vec<String>,
}

/// What must not grow, and how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Count,
}

/// In Redis, of people who are in a line or inside, and everything else that is not kept for an hour.
pub(super) const LIVING: &str = "redis: living";
/// In Redis, kept for an hour.
pub(super) const REMEMBERED: &str = "redis: kept for an hour";
/// All that Redis has in use, and what the system has given it; both with what is kept for an hour.
pub(super) const USED: &str = "redis: used";
pub(super) const RESIDENT: &str = "redis: resident";
/// Keys in Redis that are not kept for an hour.
pub(super) const KEYS: &str = "redis: keys";
/// What a process has open to people, Redis and others. A step of its memory may be a step of these:
/// the most there ever were decides what an allocator keeps.
pub(super) const SOCKETS: &str = ": sockets";

impl Sample {
    pub(super) async fn take(stage: &Stage, at: Duration, calls: Calls) -> Self {
        let (mut sizes, mut missing) = (BTreeMap::new(), Vec::new());
        for slot in stage.slots() {
            match slot.member.lock().await.pid().and_then(resident) {
                Some(bytes) => {
                    sizes.insert(slot.name.clone(), bytes);
                }
                None => missing.push(slot.name.clone()),
            }
        }
        for api in &stage.apis {
            if let Some(open) = api.member.lock().await.pid().and_then(sockets) {
                sizes.insert(format!("{}{SOCKETS}", api.name), open);
            }
        }
        if let Some(redis) = stage.redis.lock().await.alone()
            && look_into(redis, &mut sizes).await.is_err()
        {
            missing.push("redis".to_owned());
        }
        Self { at, calls, sizes, missing }
    }
}

/// Physical memory of a process.
fn resident(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// How many sockets a process has open.
fn sockets(pid: u32) -> Option<f64> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let targets = open.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    Some(targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count() as f64)
}

async fn look_into(redis: &Redis, sizes: &mut BTreeMap<String, f64>) -> anyhow::Result<()> {
    let pid = redis.pid().and_then(resident);
    sizes.insert(RESIDENT.to_owned(), pid.context("no process")?);
    let memory: String = redis.ask(&["INFO", "memory"]).await?;
    let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:"));
    sizes.insert(USED.to_owned(), used.context("no used_memory")?.trim().parse()?);
    let mut keys: Vec<String> = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let (next, some): (String, Vec<String>) =
            redis.ask(&["SCAN", &cursor, "COUNT", "1000"]).await?;
        keys.extend(some);
        cursor = next;
        if cursor == "0" {
            break;
        }
    }
    let (mut living, mut remembered, mut count) = (0.0, 0.0, 0.0);
    for key in &keys {
        let bytes: Option<u64> = redis.ask(&["MEMORY", "USAGE", key]).await?;
        let bytes = bytes.unwrap_or(0) as f64;
        if KEPT.iter().any(|kept| key.split(':').any(|word| word == *kept)) {
            remembered += bytes;
        } else {
            living += bytes;
            count += 1.0;
        }
    }
    sizes.insert(LIVING.to_owned(), living);
    sizes.insert(REMEMBERED.to_owned(), remembered);
    sizes.insert(KEYS.to_owned(), count);
    Ok(())
}

/// What a size is of.
pub(super) fn unit(name: &str) -> Unit {
    if name == KEYS || name.ends_with(SOCKETS) { Unit::Count } else { Unit::Bytes }
}

/// Whether it must be flat.
pub(super) fn must_be_flat(name: &str) -> bool {
    ![REMEMBERED, USED, RESIDENT].contains(&name) && !name.ends_with(SOCKETS)
}
