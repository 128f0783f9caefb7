//! What visitors saw as their wait while they waited, scored against what happened.

use daegi_domain::{Eta, Millis};
use schemars::JsonSchema;
use serde::Serialize;

/// How much later than before an estimate may be without counting as moved: 5 s, the precision at which pages
/// show short waits.
const LATER_MS: Millis = 5_000;

/// The same for longer waits, as a part of what is left: 5 %, less than the rounding of a clock time on a page.
const LATER_PART: u64 = 20;

/// One look at the waiting page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) at: Millis,
    pub(crate) eta: Option<Eta>,
}

/// How well estimates held. A pause that begins after a look is not part of the wait that the look could know,
/// so that paused time is subtracted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EstimateScore {
    /// Looks with an estimate by visitors who were admitted later.
    pub looks: u64,
    /// Looks whose visitor was admitted within `p10` and `p90`.
    pub within: u64,
    /// Looks whose visitor was admitted before `p10`.
    pub earlier: u64,
    /// Looks whose visitor was admitted after `p90`.
    pub later: u64,
    /// Pairs of successive estimates of one visitor.
    pub pairs: u64,
    /// Pairs whose second median is later on the clock, by more than 5 s and more than 5 % of the wait.
    pub moved_later: u64,
}

impl EstimateScore {
    /// Returns the share of looks whose visitor was admitted by `p90`, in percent.
    #[must_use]
    pub fn by_p90_percent(&self) -> f64 {
        percent(self.looks - self.later, self.looks)
    }

    /// Returns the share of looks whose visitor was admitted between `p10` and `p90`, in percent.
    #[must_use]
    pub fn within_percent(&self) -> f64 {
        percent(self.within, self.looks)
    }

    /// Returns the share of pairs that did not move later, in percent.
    #[must_use]
    pub fn calm_percent(&self) -> f64 {
        percent(self.pairs - self.moved_later, self.pairs)
    }

    /// Returns the sum of two scores.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            looks: self.looks + other.looks,
            within: self.within + other.within,
            earlier: self.earlier + other.earlier,
            later: self.later + other.later,
            pairs: self.pairs + other.pairs,
            moved_later: self.moved_later + other.moved_later,
        }
    }

    /// Adds the looks of one visitor who was admitted at `admitted_at`. `pauses` are times of begin and end.
    pub(crate) fn add(&mut self, looks: &[Look], admitted_at: Millis, pauses: &[(Millis, Millis)]) {
        let estimates: Vec<(Millis, Eta)> =
            looks.iter().filter_map(|look| Some((look.at, look.eta?))).collect();
        for (at, eta) in &estimates {
            let waited = admitted_at.saturating_sub(*at);
            let waited = waited.saturating_sub(paused(pauses, *at, admitted_at));
            self.looks += 1;
            match waited {
                _ if waited > eta.p90 * 1_000 => self.later += 1,
                _ if waited < eta.p10 * 1_000 => self.earlier += 1,
                _ => self.within += 1,
            }
        }
        for pair in estimates.windows(2) {
            let [(before, first), (now, second)] = pair else { continue };
            let tolerance = LATER_MS.max(first.p50 * 1_000 / LATER_PART);
            let allowed = before + first.p50 * 1_000 + paused(pauses, *before, *now) + tolerance;
            self.pairs += 1;
            self.moved_later += u64::from(now + second.p50 * 1_000 > allowed);
        }
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Returns how much of the time from `from` to `to` was paused.
fn paused(pauses: &[(Millis, Millis)], from: Millis, to: Millis) -> Millis {
    pauses.iter().map(|(begin, end)| (*end).min(to).saturating_sub((*begin).max(from))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at: Millis, p10: u64, p50: u64, p90: u64) -> Look {
        Look { at, eta: Some(Eta { p10, p50, p90 }) }
    }

    #[test]
    fn looks_are_scored_by_what_happened_and_pauses_are_subtracted() {
        let mut score = EstimateScore::default();
        let looks =
            [look(0, 90, 100, 110), look(10_000, 100, 120, 130), Look { at: 20_000, eta: None }];
        score.add(&looks, 100_000, &[]);
        assert_eq!((score.looks, score.within, score.earlier, score.later), (2, 1, 1, 0));
        assert_eq!((score.pairs, score.moved_later), (1, 1), "from 100 s to 130 s");
        let mut paused = EstimateScore::default();
        paused.add(&[look(0, 90, 100, 110), look(400_000, 0, 1, 2)], 401_000, &[(50_000, 350_000)]);
        assert_eq!((paused.within, paused.moved_later), (2, 0));
        let mut late = EstimateScore::default();
        late.add(&[look(0, 90, 100, 110)], 111_000, &[]);
        assert_eq!(late.later, 1);
    }
}
