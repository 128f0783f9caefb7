//! Rounds of a contestant against its ceiling.

use std::time::Duration;

use serde::Serialize;

/// What both sides of a duel have to carry.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Load {
    /// How many messages.
    pub(crate) messages: usize,
    /// Their keys, bodies and headers.
    pub(crate) bytes: usize,
}

/// How long each side took in one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// The same for both sides.
    pub(crate) load: Load,
    /// The real thing.
    pub(crate) daegi: Duration,
    /// The least that any program would have to do.
    pub(crate) bare: Duration,
}

/// A duel that is over.
#[derive(Debug)]
pub(crate) struct Duel {
    /// What was measured.
    pub(crate) name: &'static str,
    /// The ratio that is asked for.
    pub(crate) goal: f64,
    /// All rounds that count.
    pub(crate) rounds: Vec<Round>,
}

impl Round {
    /// The part of the ceiling that daegi reached.
    pub(crate) fn ratio(&self) -> f64 {
        self.bare.as_secs_f64() / self.daegi.as_secs_f64()
    }

    /// Messages per second of daegi and of the ceiling.
    pub(crate) fn rates(&self) -> (f64, f64) {
        let messages = self.load.messages as f64;
        (messages / self.daegi.as_secs_f64(), messages / self.bare.as_secs_f64())
    }
}

impl Duel {
    /// Median messages per second of daegi and of the ceiling.
    pub(crate) fn rates(&self) -> (f64, f64) {
        let (daegi, bare): (Vec<_>, Vec<_>) = self.rounds.iter().map(Round::rates).unzip();
        (median(daegi), median(bare))
    }

    /// The ratio of the medians.
    pub(crate) fn ratio(&self) -> f64 {
        let (daegi, bare) = self.rates();
        daegi / bare
    }

    /// The lowest and the highest ratio of a single round: how much the figure is worth.
    pub(crate) fn spread(&self) -> (f64, f64) {
        let ratios = || self.rounds.iter().map(Round::ratio);
        (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max))
    }
}

/// The value in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(daegi: u64, bare: u64) -> Round {
        let load = Load { messages: 1_000, bytes: 1 };
        Round { load, daegi: Duration::from_secs(daegi), bare: Duration::from_secs(bare) }
    }

    #[test]
    fn one_odd_round_does_not_move_the_ratio() {
        let rounds = vec![round(4, 2), round(100, 2), round(4, 2)];
        let duel = Duel { name: "relay", goal: 0.5, rounds };
        assert_eq!((duel.rates(), duel.ratio()), ((250.0, 500.0), 0.5));
        assert_eq!(duel.spread(), (0.02, 0.5));
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert!((median(vec![4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < f64::EPSILON);
    }
}
