//! The longest script of a leader in instructions, counted by callgrind.
//!
//! All other clients of a Redis wait while a script runs, so no single script may be long. A clock also measures
//! interruptions by the machine; the number of instructions is the same on a busy machine. See ADR 016.

use anyhow::ensure;
use daegi_store::{MAX_USERS_PER_CALL, SharedStore};

use super::admissions::{USERS, admit_all, ready_line};
use super::callgrind::{CountedFunction, CountedRedis};
use crate::measurement::{Measurement, Target, median};
use crate::report::progress;

/// About 3 ms at the 6.5 million instructions per millisecond of the recorded run.
const MAX_MILLIONS: f64 = 20.0;

/// Admits one line and empties the outbox on a Redis under callgrind. Returns `None` where valgrind is missing or Redis has no
/// symbols.
pub(super) async fn measure() -> anyhow::Result<Option<Measurement>> {
    progress("counting the instructions of each script, 1 to 2 minutes");
    let Some(redis) = CountedRedis::start(CountedFunction::Script).await? else { return Ok(None) };
    ready_line(&redis.store, "instructions").await?;
    redis.start_counting()?;
    let store: SharedStore = redis.store.clone();
    admit_all(&store).await?;
    let Some(counts) = redis.take_counts()? else { return Ok(None) };
    let scripts = (USERS / MAX_USERS_PER_CALL) as usize;
    ensure!(counts.len() > scripts, "{} of at least {scripts} scripts counted", counts.len());
    let longest = counts.iter().copied().fold(0.0, f64::max);
    let name = "… longest script, by instructions";
    let measurement =
        Measurement::new(name, longest / 1e6, "million", Target::AtMost(MAX_MILLIONS));
    let detail = format!("of {} scripts; median {:.1} million", counts.len(), median(counts) / 1e6);
    Ok(Some(measurement.with_detail(detail)))
}
