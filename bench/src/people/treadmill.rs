//! What the machine itself does to work that is always the same.
//!
//! A machine that others use, too, stops now and then for longer than a script takes: it takes a core
//! away, or a core stays and hardly gets on. Whatever runs at that moment is slow, also a loop that
//! writes to memory of its own and asks nobody for anything. How often that is slow is the measure for
//! whoever takes turns with it.

use std::time::Instant;

use crate::duel::median;

/// As much memory as a line of 200,000 people needs, about.
const MEMORY: usize = 64 << 20;
/// So many writes, each anywhere, take about as long as a script that lets a hundred people in.
const WRITES: u32 = 55_000;

/// Goes on and on and stays where it is.
pub(super) struct Treadmill {
    memory: Vec<u8>,
    random: u64,
    /// What its steps took, in milliseconds.
    took: Vec<f64>,
}

impl Treadmill {
    pub(super) fn new() -> Self {
        // Every page is written to, so that none is missing later.
        Self { memory: vec![1; MEMORY], random: 0x9e37_79b9_7f4a_7c15, took: Vec::new() }
    }

    pub(super) fn step(&mut self) {
        let begin = Instant::now();
        for _ in 0..WRITES {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let place = &mut self.memory[self.random as usize % MEMORY];
            *place = place.wrapping_add(1);
        }
        self.took.push(begin.elapsed().as_secs_f64() * 1e3);
    }

    /// What its steps took, in milliseconds.
    pub(super) fn took(&self) -> &[f64] {
        &self.took
    }

    /// What a step takes, in milliseconds.
    pub(super) fn typical(&self) -> f64 {
        median(self.took.clone())
    }
}

/// The most that may be slow of somebody who takes turns with a treadmill, of which so many steps were:
/// more come by chance in less than one of a hundred runs.
pub(super) fn by_chance(slow_steps: usize) -> usize {
    (0..).take_while(|slow| chance(*slow, slow_steps) >= 0.01).last().unwrap_or(0)
}

/// How likely it is that of as many as were slow on both sides so many or more are on the one side.
fn chance(one: usize, other: usize) -> f64 {
    let all = one + other;
    let ways = |of: usize| (0..of).map(|drawn| (all - drawn) as f64 / (drawn + 1) as f64);
    (one..=all)
        .map(|of| ways(of).fold(0.5_f64.powi(all as i32), |chance, more| chance * more))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_may_be_slow_beside_a_treadmill_that_never_is() {
        assert_eq!(chance(6, 0), 1.0 / 64.0);
        assert_eq!(chance(0, 3), 1.0);
        assert!((chance(2, 1) - 0.5).abs() < 1e-9);
        assert_eq!(by_chance(0), 6);
    }

    #[test]
    fn as_many_may_be_slow_as_steps_are_and_some_more() {
        for slow_steps in [1, 3, 10, 100, 400] {
            let most = by_chance(slow_steps);
            assert!(most > slow_steps && most < 2 * slow_steps + 10, "{most} beside {slow_steps}");
        }
    }

    #[test]
    fn every_step_is_told() {
        let mut treadmill = Treadmill::new();
        (0..3).for_each(|_| treadmill.step());
        assert_eq!(treadmill.took().len(), 3);
        assert!(treadmill.typical() > 0.0);
    }
}
