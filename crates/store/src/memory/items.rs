use std::collections::BTreeMap;

use daegi_domain::{Item, ItemChange, ItemId, Millis, Number};

use super::line::Line;
use crate::model::{Put, Removed};

pub(super) fn put(lines: &mut BTreeMap<ItemId, Line>, change: &ItemChange, now: Millis) -> Put {
    let Some(line) = lines.get_mut(&change.id) else {
        let line = Line::new(created(change), Number::base_at(now));
        let item = line.item.clone();
        lines.insert(change.id.clone(), line);
        return Put::Created(item);
    };
    if change.version.is_some_and(|version| version <= line.item.version) {
        return Put::Stale;
    }
    if line.removed {
        let old = std::mem::replace(&mut line.item, created(change));
        line.item.version = change.version.unwrap_or(old.version);
        line.item.revision = old.revision;
        line.reopen(Number::base_at(now));
        return Put::Created(line.touched());
    }
    let item = &mut line.item;
    item.name = change.name.clone();
    item.stock = change.stock;
    item.enabled = change.enabled;
    item.version = change.version.unwrap_or(item.version);
    if let Some(policy) = &change.policy {
        item.policy = policy.clone();
    }
    Put::Updated(line.touched())
}

pub(super) fn remove(
    lines: &mut BTreeMap<ItemId, Line>,
    id: &ItemId,
    version: Option<u64>,
    now: Millis,
) -> Removed {
    match lines.get_mut(id) {
        Some(line) if version.is_some_and(|version| version <= line.item.version) => Removed::Stale,
        Some(line) => {
            line.item.version = version.unwrap_or(line.item.version);
            if line.removed {
                return Removed::NotFound;
            }
            line.removed = true;
            line.restart();
            Removed::Yes
        }
        None => {
            // Remembered even though there is nothing to remove: an older event that creates the
            // item may still be on its way.
            if let Some(version) = version {
                lines.insert(id.clone(), tombstone(id, version, now));
            }
            Removed::NotFound
        }
    }
}

fn created(change: &ItemChange) -> Item {
    Item {
        id: change.id.clone(),
        name: change.name.clone(),
        stock: change.stock,
        enabled: change.enabled,
        paused: false,
        version: change.version.unwrap_or(0),
        revision: 1,
        policy: change.policy.clone().unwrap_or_default(),
    }
}

fn tombstone(id: &ItemId, version: u64, now: Millis) -> Line {
    #[expect(clippy::expect_used, reason = "the constant is a valid name")]
    let name = daegi_domain::ItemName::parse("removed").expect("a valid name");
    let item = Item {
        id: id.clone(),
        name,
        stock: 0,
        enabled: false,
        paused: false,
        version,
        revision: 0,
        policy: daegi_domain::Policy::default(),
    };
    let mut line = Line::new(item, Number::base_at(now));
    line.removed = true;
    line
}
