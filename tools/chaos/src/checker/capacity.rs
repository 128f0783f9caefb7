//! Entries never exceed `maxActive` or the stock.

use std::collections::HashSet;

use super::lines::Lines;
use super::{Rule, Violations};
use crate::History;
use crate::history::{EventKind, ItemSetup, ObservedEvent, Setup};

pub(super) fn judge(
    setup: &Setup,
    history: &History,
    lines: &Lines<'_>,
    violations: &mut Violations,
) {
    for (item, events) in lines.eras() {
        let Some(item) = setup.items.iter().find(|known| known.item == item) else { continue };
        check_entries(events, limit(item, history), violations);
    }
}

fn check_entries(events: &[&ObservedEvent], limit: u64, violations: &mut Violations) {
    let mut entered = HashSet::new();
    for event in events {
        match event.event {
            EventKind::Closed => {
                entered.remove(&event.number);
            }
            EventKind::Activated => {
                entered.insert(event.number);
                if entered.len() as u64 > limit {
                    let (item, number, entries) = (&event.item, event.number, entered.len());
                    let what = format!("{item} {number}: {entries} entries, limit {limit}");
                    violations.add(Rule::Capacity, event.at, what);
                }
            }
        }
    }
}

/// `maxActive`, or the largest stock ever published, because it is unknown when a published stock took effect.
fn limit(item: &ItemSetup, history: &History) -> u64 {
    let published = history.published.iter().filter(|version| version.item == item.item);
    let stock = published.map(|version| version.stock).max().unwrap_or(0).max(item.stock);
    item.max_active.map_or(stock, |room| room.min(stock))
}
