//! What the machine does to work that is always the same, in the very Redis that scripts run in.
//!
//! A machine that others use, too, stops now and then for longer than a script takes: it takes a core
//! away, or a core stays and hardly gets on. Whatever runs at that moment is slow. A script that does the
//! same in every call, has nothing to do with people and takes turns with a leader's is slow as often as
//! the machine makes it. That is the measure for the leader's.

use redis::aio::MultiplexedConnection;

use super::arena::Arena;
use super::script_time::Clock;
use crate::duel::median;

/// Sets bits all over a bitmap.
const SCRIPT: &str = "local place = tonumber(ARGV[1]) \
    for _ = 1, tonumber(ARGV[2]) do \
      place = place * 16807 % 2147483647 \
      redis.call('SETBIT', KEYS[1], place % tonumber(ARGV[3]), 1) \
    end \
    return place";
const KEY: &str = "{p00}treadmill";
/// As much memory as a line of 200,000 people needs, about.
const BITS: u64 = 64 << 23;
/// So many bits take about as long as letting a hundred people in.
const STEPS: u32 = 300;
/// So many calls tell what one takes.
const TRIALS: usize = 500;

pub(super) struct Treadmill {
    connection: MultiplexedConnection,
    /// By which Redis knows the script.
    pub(super) script: String,
    place: u64,
    /// How often it was called.
    pub(super) calls: u64,
}

impl Treadmill {
    pub(super) async fn set_up(arena: &Arena) -> anyhow::Result<Self> {
        let mut connection = arena.redis.connection().await?;
        // Every page is written to, so that none is missing later.
        let bitmap = vec![0_u8; BITS as usize / 8];
        redis::cmd("SET").arg(KEY).arg(bitmap).query_async::<()>(&mut connection).await?;
        let mut load = redis::cmd("SCRIPT");
        let script = load.arg("LOAD").arg(SCRIPT).query_async(&mut connection).await?;
        Ok(Self { connection, script, place: 1, calls: 0 })
    }

    pub(super) async fn step(&mut self) -> anyhow::Result<()> {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.script).arg(1).arg(KEY).arg(self.place).arg(STEPS).arg(BITS);
        self.place = call.query_async(&mut self.connection).await?;
        self.calls += 1;
        Ok(())
    }

    /// What a step takes by Redis's clock when there is nothing else, in milliseconds.
    pub(super) async fn typical(&mut self, arena: &Arena) -> anyhow::Result<f64> {
        let (mut clock, mut took) = (Clock::start(arena).await?, Vec::with_capacity(TRIALS));
        for _ in 0..TRIALS {
            self.step().await?;
            took.push(clock.lap().await?);
        }
        Ok(median(took))
    }

    pub(super) async fn remove(mut self) -> anyhow::Result<()> {
        Ok(redis::cmd("UNLINK").arg(KEY).query_async(&mut self.connection).await?)
    }
}

/// The most that may be slow of somebody who takes turns with a treadmill, of which so many steps were,
/// and whose calls are this part of all: more come by chance in less than one of a hundred runs.
pub(super) fn by_chance(slow_steps: usize, part: f64) -> usize {
    (0..).take_while(|slow| chance(*slow, slow_steps, part) >= 0.01).last().unwrap_or(0)
}

/// How likely it is that of as many as were slow on both sides so many or more are on the one side, which
/// has this part of all calls.
fn chance(one: usize, other: usize, part: f64) -> f64 {
    let all = one + other;
    let ways = |of: usize| (0..of).map(|drawn| (all - drawn) as f64 / (drawn + 1) as f64);
    let likely = |of: usize| {
        let exactly = part.powi(of as i32) * (1.0 - part).powi((all - of) as i32);
        ways(of).fold(exactly, |chance, more| chance * more)
    };
    (one..=all).map(likely).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_may_be_slow_beside_a_treadmill_that_never_is() {
        assert_eq!(chance(6, 0, 0.5), 1.0 / 64.0);
        assert_eq!(chance(3, 0, 0.25), 1.0 / 64.0);
        assert!((chance(0, 3, 0.3) - 1.0).abs() < 1e-9);
        assert!((chance(2, 1, 0.5) - 0.5).abs() < 1e-9);
        assert_eq!((by_chance(0, 0.5), by_chance(0, 0.25)), (6, 3));
    }

    #[test]
    fn as_many_may_be_slow_as_steps_are_and_some_more() {
        for slow_steps in [1, 3, 10, 100, 400] {
            let most = by_chance(slow_steps, 0.5);
            assert!(most > slow_steps && most < 2 * slow_steps + 10, "{most} beside {slow_steps}");
        }
    }
}
