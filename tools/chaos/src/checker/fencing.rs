//! Fencing: after a leader of a newer term has changed a line, no older one does.

use super::lines::Lines;
use super::{Rule, Violations};

pub(super) fn judge(lines: &Lines<'_>, violations: &mut Violations) {
    for (item, events) in &lines.events {
        let (mut latest, mut era) = (0, 0);
        for observed in events {
            let Some(epoch) = observed.epoch else { continue };
            let now = lines.losses.era_of(observed);
            // A replica that took over may not know the newest term. After a total loss no older term is known either,
            // but new epochs follow the clock.
            if !lines.losses.are_total(era, now) {
                latest = 0;
            }
            era = now;
            if epoch < latest {
                let (event, number) = (observed.event, observed.number);
                let what = format!("{item} {number}: {event:?} in term {epoch}, after {latest}");
                violations.add(Rule::StaleAdmissions, observed.at, what);
            }
            latest = latest.max(epoch);
        }
    }
}
