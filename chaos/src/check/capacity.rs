//! Nobody is let in beyond the room or the stock.

use std::collections::HashSet;

use super::lines::Lines;
use super::{Findings, Rule};
use crate::History;
use crate::history::{ItemSetup, Kind, Setup, Told};

pub(super) fn judge(setup: &Setup, history: &History, lines: &Lines<'_>, found: &mut Findings) {
    for (item, events) in lines.eras() {
        let Some(item) = setup.items.iter().find(|known| known.item == item) else { continue };
        inside(events, most(item, history), found);
    }
}

fn inside(events: &[&Told], most: u64, found: &mut Findings) {
    let mut inside = HashSet::new();
    for told in events {
        match told.event {
            Kind::Closed => {
                inside.remove(&told.number);
            }
            Kind::Activated => {
                inside.insert(told.number);
                if inside.len() as u64 > most {
                    let (item, number, inside) = (&told.item, told.number, inside.len());
                    let what = format!("{item} {number}: {inside} are inside of {most}");
                    found.add(Rule::Capacity, told.at, what);
                }
            }
        }
    }
}

/// The room, or the largest stock there ever was: when an announcement takes effect is not known.
fn most(item: &ItemSetup, history: &History) -> u64 {
    let announced = history.announced.iter().filter(|announced| announced.item == item.item);
    let stock = announced.map(|announced| announced.stock).max().unwrap_or(0).max(item.stock);
    item.max_active.map_or(stock, |room| room.min(stock))
}
