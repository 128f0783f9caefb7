//! What Redis itself writes down about calls that took too long.

use anyhow::Context;
use redis::Value;
use redis::aio::MultiplexedConnection;

/// A call over this is one too long, in milliseconds.
pub(super) const TOO_LONG: f64 = 5.0;

/// A call that took too long.
pub(super) struct Slow {
    pub(super) milliseconds: f64,
    words: Vec<String>,
}

impl Slow {
    /// Whether it is a call of this script.
    pub(super) fn runs(&self, script: &str) -> bool {
        self.words.get(1).is_some_and(|hash| hash == script)
    }
}

/// Begins anew.
pub(super) async fn watch(connection: &mut MultiplexedConnection) -> anyhow::Result<()> {
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("slowlog-log-slower-than").arg((TOO_LONG * 1e3) as u32);
    set.arg("slowlog-max-len").arg(10_000);
    set.query_async::<()>(connection).await?;
    Ok(redis::cmd("SLOWLOG").arg("RESET").query_async::<()>(connection).await?)
}

/// The calls that took too long since then.
pub(super) async fn read(connection: &mut MultiplexedConnection) -> anyhow::Result<Vec<Slow>> {
    let entries: Vec<Vec<Value>> =
        redis::cmd("SLOWLOG").arg("GET").arg(-1).query_async(connection).await?;
    entries.into_iter().map(slow).collect()
}

/// Of an entry's number, when it was, how long it took, and what it was.
fn slow(entry: Vec<Value>) -> anyhow::Result<Slow> {
    let mut parts = entry.into_iter().skip(2);
    let took = parts.next().context("no duration")?;
    let words = parts.next().context("no words")?;
    let milliseconds = redis::from_redis_value::<f64>(took)? / 1_000.0;
    Ok(Slow { milliseconds, words: redis::from_redis_value(words)? })
}

/// The longest few of them, in words.
pub(super) fn longest(slow: &[Slow]) -> String {
    let mut took: Vec<f64> = slow.iter().map(|slow| slow.milliseconds).collect();
    took.sort_by(|one, other| other.total_cmp(one));
    let few: Vec<_> = took.iter().take(5).map(|ms| format!("{ms:.1}")).collect();
    if few.is_empty() { String::new() } else { format!(" ({} ms)", few.join(", ")) }
}
