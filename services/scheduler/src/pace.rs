//! What the leader knows of the origin of a line with an adaptive pace, and the step that follows from it.

use std::collections::BTreeMap;

use daegi_domain::pace::AdaptivePace;
use daegi_domain::pace::controller::Observation;
use daegi_domain::pace::origin::{OriginReport, OriginSignal, OriginTotals, OriginWindow};
use daegi_domain::{Item, Millis, PaceState, Settings};
use daegi_store::{Epoch, LineCounts, Result, SharedStore};

/// Share of a tick's length that must have passed since the last step, in percent: a round that is repeated
/// earlier admits no ticket, either.
const MIN_TICK_PERCENT: Millis = 90;

/// What the leader remembers of one line between two ticks. It is lost with the term: the first tick of a term
/// then has no signal, and the rate stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinePace {
    /// The totals of each pod at the last step; `None` before the first one.
    pods: Option<BTreeMap<String, OriginTotals>>,
    window: OriginWindow,
    /// How many tickets were admitted since the line began, at the last step.
    admitted: Option<u64>,
}

impl LinePace {
    /// Runs the step of a tick: reads reports and counts, computes the state, and stores it. Returns `None` if the last step
    /// was less than a tick ago.
    pub(crate) async fn step(
        &mut self,
        (store, epoch): (&SharedStore, Epoch),
        (item, pace): (&Item, &AdaptivePace),
        probed: Option<OriginSignal>,
        settings: &Settings,
        now: Millis,
    ) -> Result<Option<PaceState>> {
        let spacing = Millis::from(settings.tick_ms) * MIN_TICK_PERCENT / 100;
        if item.pace.as_ref().is_some_and(|state| now.saturating_sub(state.at) < spacing) {
            return Ok(None);
        }
        let reports = store.origin_reports(&item.id, now).await?;
        let counts = store.counts(std::slice::from_ref(&item.id)).await?;
        let seen = self.observe(&reports, counts.first(), probed, now);
        let mode = item.policy.mode;
        let state = PaceState::step(item.pace.as_ref(), pace, mode, settings.tick_ms, &seen, now);
        store.set_pace(epoch, &item.id, &state).await?;
        Ok(Some(state))
    }

    fn observe(
        &mut self,
        reports: &[OriginReport],
        counts: Option<&LineCounts>,
        probed: Option<OriginSignal>,
        now: Millis,
    ) -> Observation {
        let added = self.added(reports);
        let (reported, window_ms) = self.window.add(added, now).unzip();
        let total = counts.map_or(0, |counts| counts.totals.admitted);
        let admitted = self.admitted.replace(total).map(|before| total.saturating_sub(before));
        Observation {
            signal: match (reported, probed) {
                (Some(reported), Some(probed)) => Some(reported.worst(probed)),
                (reported, probed) => reported.or(probed),
            },
            window_ms: window_ms.unwrap_or_default(),
            admitted,
            waiting: counts.map_or(0, |counts| counts.waiting + counts.returning),
        }
    }

    /// Returns what all pods add to what the last step read; `None` in the first step, and without reports.
    fn added(&mut self, reports: &[OriginReport]) -> Option<OriginTotals> {
        let totals = reports.iter().map(|report| (report.pod.clone(), report.totals.clone()));
        let before = self.pods.replace(totals.collect())?;
        let nothing = OriginTotals::default();
        let added = reports.iter().map(|report| {
            let earlier = before.get(&report.pod).unwrap_or(&nothing);
            // Totals that do not continue the earlier ones are those of a pod that started again.
            report.totals.since(earlier).unwrap_or_else(|| report.totals.clone())
        });
        added.reduce(|sum, added| sum.plus(&added))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(pod: &str, requests: u64) -> OriginReport {
        let mut totals = OriginTotals { requests, ..OriginTotals::default() };
        totals.latency.add(100.0, requests);
        OriginReport { pod: pod.into(), instances: 1, at: 0, totals }
    }

    fn requests(line: &mut LinePace, reports: &[OriginReport], now: Millis) -> Option<u64> {
        line.observe(reports, None, None, now).signal.map(|signal| signal.requests)
    }

    #[test]
    fn each_request_is_seen_once_and_the_first_step_of_a_term_sees_none() {
        let mut line = LinePace::default();
        assert_eq!(requests(&mut line, &[report("a", 1_000)], 1_000), None);
        let both = [report("a", 1_040), report("b", 30)];
        assert_eq!(requests(&mut line, &both, 2_000), Some(70), "a new pod counts from 0");
        assert_eq!(requests(&mut line, &both, 3_000), Some(70), "2 s are merged");
        assert_eq!(requests(&mut line, &[report("a", 60), report("b", 30)], 4_000), Some(60));
    }

    #[test]
    fn a_probe_counts_beside_reports() {
        let mut line = LinePace::default();
        let slow = OriginSignal { requests: 0, p95_ms: Some(900), error_permille: 0 };
        line.observe(&[report("a", 10)], None, Some(slow), 1_000);
        let seen = line.observe(&[report("a", 20)], None, Some(slow), 2_000);
        assert_eq!(seen.signal, Some(OriginSignal { requests: 10, ..slow }));
    }
}
