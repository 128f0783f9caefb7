//! What Redis itself writes down about calls that took too long.

use anyhow::Context;
use redis::Value;
use redis::aio::MultiplexedConnection;

/// A call over this is one too long, in milliseconds.
pub(super) const TOO_LONG: f64 = 5.0;

/// A call that took too long.
#[derive(Debug)]
pub(super) struct Slow {
    /// In which it ended, by the time of day.
    pub(super) second: f64,
    pub(super) milliseconds: f64,
}

/// Begins anew.
pub(super) async fn watch(connection: &mut MultiplexedConnection) -> anyhow::Result<()> {
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("slowlog-log-slower-than").arg((TOO_LONG * 1e3) as u32);
    set.arg("slowlog-max-len").arg(10_000);
    set.query_async::<()>(connection).await?;
    Ok(redis::cmd("SLOWLOG").arg("RESET").query_async::<()>(connection).await?)
}

/// The scripts that took too long since then.
pub(super) async fn read(connection: &mut MultiplexedConnection) -> anyhow::Result<Vec<Slow>> {
    let entries: Vec<Vec<Value>> =
        redis::cmd("SLOWLOG").arg("GET").arg(-1).query_async(connection).await?;
    entries.into_iter().filter_map(|entry| script(entry).transpose()).collect()
}

/// Of an entry's number, when it was, how long it took, and what it was. Commands that a script calls are
/// written down by themselves, too, and are no scripts.
fn script(entry: Vec<Value>) -> anyhow::Result<Option<Slow>> {
    let mut parts = entry.into_iter().skip(1);
    let mut next = || parts.next().context("an entry has four parts at least");
    let (second, took, words) = (next()?, next()?, next()?);
    let milliseconds = redis::from_redis_value::<f64>(took)? / 1e3;
    let slow = Slow { second: redis::from_redis_value(second)?, milliseconds };
    let words: Vec<String> = redis::from_redis_value(words)?;
    Ok(words.first().is_some_and(|word| word == "EVALSHA").then_some(slow))
}

/// The longest few of them, in words.
pub(super) fn longest(slow: &[Slow]) -> String {
    let mut took: Vec<f64> = slow.iter().map(|slow| slow.milliseconds).collect();
    took.sort_by(|one, other| other.total_cmp(one));
    let few: Vec<_> = took.iter().take(5).map(|ms| format!("{ms:.1}")).collect();
    if few.is_empty() { String::new() } else { format!(" ({} ms)", few.join(", ")) }
}
