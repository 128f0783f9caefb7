//! Nothing happens in a term that is over: once a later leader has touched a line, no earlier one
//! does.

use super::lines::Lines;
use super::{Findings, Rule};

pub(super) fn judge(lines: &Lines<'_>, found: &mut Findings) {
    for (item, events) in lines.eras() {
        let mut latest = 0;
        for told in events {
            let Some(epoch) = told.epoch else { continue };
            if epoch < latest {
                let (event, number) = (told.event, told.number);
                let what = format!("{item} {number}: {event:?} in term {epoch}, after {latest}");
                found.add(Rule::StaleAdmissions, told.at, what);
            }
            latest = latest.max(epoch);
        }
    }
}
