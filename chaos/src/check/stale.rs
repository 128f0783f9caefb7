//! Nothing happens in a term that is over: once a later leader has touched a line, no earlier one
//! does.

use super::lines::Lines;
use super::{Findings, Rule};

pub(super) fn judge(lines: &Lines<'_>, found: &mut Findings) {
    for (item, events) in &lines.events {
        let (mut latest, mut era) = (0, 0);
        for told in events {
            let Some(epoch) = told.epoch else { continue };
            let now = lines.losses.era_of(told);
            // What a replica did not hear of may be that a term was over. Where nothing is left, no
            // earlier term is either, and epochs go on with the clock.
            if !lines.losses.are_total(era, now) {
                latest = 0;
            }
            era = now;
            if epoch < latest {
                let (event, number) = (told.event, told.number);
                let what = format!("{item} {number}: {event:?} in term {epoch}, after {latest}");
                found.add(Rule::StaleAdmissions, told.at, what);
            }
            latest = latest.max(epoch);
        }
    }
}
