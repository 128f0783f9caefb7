//! One sample of all sizes.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use daegi_testkit::Redis;

use crate::runner::fleet::ChaosFleet;
pub(super) use crate::runner::recorder::Calls;

/// Keys that Redis keeps for an hour after use: ends of tickets and liveness. They grow during a soak and are shown, not judged.
const RETAINED_KEYS: [&str; 3] = ["closed", "seen", "births"];

/// All sizes at one time.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    /// Time since the start.
    pub(super) at: Duration,
    pub(super) calls: Calls,
    /// By name.
    pub(super) sizes: BTreeMap<String, f64>,
    /// Processes that are missing or do not answer.
    pub(super) missing: Vec<String>,
}

/// The unit of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Count,
}

/// Redis memory without retained data.
pub(super) const LIVE_DATA: &str = "redis: live";
/// Redis memory of data that is kept for an hour.
pub(super) const RETAINED_DATA: &str = "redis: kept for an hour";
/// Used and resident memory of Redis, retained data included.
pub(super) const USED: &str = "redis: used";
pub(super) const RESIDENT: &str = "redis: resident";
/// Number of keys without retained data.
pub(super) const KEYS: &str = "redis: keys";
/// Open sockets of a process. A step in its memory may follow a step in its sockets, because the allocator keeps the maximum.
pub(super) const SOCKETS: &str = ": sockets";

impl Sample {
    pub(super) async fn take(fleet: &ChaosFleet, at: Duration, calls: Calls) -> Self {
        let (mut sizes, mut missing) = (BTreeMap::new(), Vec::new());
        for node in fleet.nodes() {
            match node.member.lock().await.pid().and_then(resident) {
                Some(bytes) => {
                    sizes.insert(node.name.clone(), bytes);
                }
                None => missing.push(node.name.clone()),
            }
        }
        for api in &fleet.apis {
            if let Some(open) = api.member.lock().await.pid().and_then(sockets) {
                sizes.insert(format!("{}{SOCKETS}", api.name), open);
            }
        }
        if let Some(redis) = fleet.redis.lock().await.single()
            && measure_redis(redis, &mut sizes).await.is_err()
        {
            missing.push("redis".to_owned());
        }
        Self { at, calls, sizes, missing }
    }
}

/// Resident memory of a process.
fn resident(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// Number of open sockets of a process.
fn sockets(pid: u32) -> Option<f64> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let targets = open.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    Some(targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count() as f64)
}

async fn measure_redis(redis: &Redis, sizes: &mut BTreeMap<String, f64>) -> anyhow::Result<()> {
    let pid = redis.pid().and_then(resident);
    sizes.insert(RESIDENT.to_owned(), pid.context("no process")?);
    let memory: String = redis.command(&["INFO", "memory"]).await?;
    let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:"));
    sizes.insert(USED.to_owned(), used.context("no used_memory")?.trim().parse()?);
    let mut keys: Vec<String> = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let (next, some): (String, Vec<String>) =
            redis.command(&["SCAN", &cursor, "COUNT", "1000"]).await?;
        keys.extend(some);
        cursor = next;
        if cursor == "0" {
            break;
        }
    }
    let (mut live, mut retained, mut count) = (0.0, 0.0, 0.0);
    for key in &keys {
        let bytes: Option<u64> = redis.command(&["MEMORY", "USAGE", key]).await?;
        let bytes = bytes.unwrap_or(0) as f64;
        if RETAINED_KEYS.iter().any(|kept| key.split(':').any(|word| word == *kept)) {
            retained += bytes;
        } else {
            live += bytes;
            count += 1.0;
        }
    }
    sizes.insert(LIVE_DATA.to_owned(), live);
    sizes.insert(RETAINED_DATA.to_owned(), retained);
    sizes.insert(KEYS.to_owned(), count);
    Ok(())
}

/// The unit of a size.
pub(super) fn unit(name: &str) -> Unit {
    if name == KEYS || name.ends_with(SOCKETS) { Unit::Count } else { Unit::Bytes }
}

/// Whether the size is judged.
pub(super) fn must_be_flat(name: &str) -> bool {
    ![RETAINED_DATA, USED, RESIDENT].contains(&name) && !name.ends_with(SOCKETS)
}
