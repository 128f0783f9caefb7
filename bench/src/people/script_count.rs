//! How much work the longest script of a leader is, counted by callgrind while Redis runs it.
//!
//! A clock says of a single call what the machine did to it as well as what the call did itself. A count
//! of instructions is the call's alone, so that every single one can be judged, with no exception.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::ensure;
use daegi_store::{CHUNK, RedisStore};
use daegi_testkit::free_port;
use tempfile::TempDir;

use super::arena::{SETTINGS, STORE_PARTITIONS, Server};
use super::callgrind;
use super::gate::{CALLS, Gate};
use super::script_watch::TOO_LONG;
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// Counting begins with a script and ends with it, and what was counted is written down.
const BY_SCRIPT: [&str; 2] = ["--toggle-collect=evalShaCommand", "--dump-after=evalShaCommand"];
/// How often a server is asked whether it answers yet.
const GLANCE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest of all scripts that let a line in and empty the outbox, beside one that lets a chunk of
/// people in and takes so many milliseconds. Nothing where callgrind is missing, or the server does not
/// tell its functions' names.
pub(super) async fn longest(typical: f64) -> anyhow::Result<Option<Figure>> {
    if !callgrind::is_there("instructions of scripts are not counted") {
        return Ok(None);
    }
    progress("scripts: counting what each of them does, which takes a minute or two");
    let counts = count().await?;
    if counts.is_empty() {
        progress("THIS REDIS HAS NO NAMES OF FUNCTIONS: instructions of scripts are not counted");
        return Ok(None);
    }
    ensure!(counts.len() > CALLS, "{} of more than {CALLS} scripts were counted", counts.len());
    let longest = counts.iter().copied().fold(0.0, f64::max);
    let usual = median(counts.clone());
    progress(&format!("scripts: {longest:.0} instructions at most, {usual:.0} as a rule"));
    let took = typical * longest / usual;
    Ok(Some(
        Figure::new("… the longest, by its instructions", took, "ms", Goal::Most(TOO_LONG)).with(format!(
            "every single one of {} scripts: {:.1} million at most, of which one for {CHUNK} people has \
             {:.1} million and takes {typical:.2} ms",
            counts.len(),
            longest / 1e6,
            usual / 1e6,
        )),
    ))
}

/// The instructions of each script of a leader.
async fn count() -> anyhow::Result<Vec<f64>> {
    let directory = TempDir::new()?;
    let port = free_port().to_string();
    let server = Server::start(|_| {
        let mut redis = Command::new("redis-server");
        redis.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        Ok(callgrind::watched(&redis, &BY_SCRIPT, directory.path()))
    })?;
    let store = open(&format!("redis://127.0.0.1:{port}")).await?;
    let gate = Gate::fill(&store).await?;
    callgrind::control(server.id(), &["-i", "on"])?;
    gate.open().await?;
    callgrind::control(server.id(), &["-i", "off"])?;
    callgrind::take_counts(directory.path())
}

async fn open(url: &str) -> anyhow::Result<RedisStore> {
    let started = Instant::now();
    loop {
        match RedisStore::open(url, STORE_PARTITIONS, SETTINGS).await {
            Err(_) if started.elapsed() < PATIENCE => tokio::time::sleep(GLANCE).await,
            opened => return Ok(opened?),
        }
    }
}
