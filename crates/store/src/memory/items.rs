use std::collections::BTreeMap;

use daegi_domain::{Item, ItemChange, ItemId, ItemNews, LogPosition, Millis, Said};

use super::line::Line;
use crate::model::{NewsOutcome, Put};

pub(super) fn put(
    lines: &mut BTreeMap<ItemId, Line>,
    change: &ItemChange,
    run: u64,
    now: Millis,
) -> Put {
    let Some(line) = lines.get_mut(&change.id) else {
        let line = Line::new(created(change, now), run, now);
        let item = line.item.clone();
        lines.insert(change.id.clone(), line);
        return Put::Created(item);
    };
    if change.version.is_some_and(|version| version <= line.item.version) {
        return Put::Stale;
    }
    if line.removed {
        let old = std::mem::replace(&mut line.item, created(change, now));
        line.item.version = change.version.unwrap_or(old.version);
        line.item.revision = old.revision;
        line.reopen(run, now);
        return Put::Created(line.touched(now));
    }
    let item = &mut line.item;
    item.name = change.name.clone();
    item.stock = change.stock;
    item.enabled = change.enabled;
    item.version = change.version.unwrap_or(item.version);
    if let Some(policy) = &change.policy {
        item.policy = policy.clone();
    }
    Put::Updated(line.touched(now))
}

pub(super) fn apply(
    lines: &mut BTreeMap<ItemId, Line>,
    news: &ItemNews,
    run: u64,
    now: Millis,
) -> NewsOutcome {
    let outcome = match &news.said {
        Said::Changed(change) => match put(lines, change, run, now) {
            Put::Created(_) => NewsOutcome::Created,
            Put::Updated(_) => NewsOutcome::Updated,
            Put::Stale => NewsOutcome::Stale,
        },
        Said::Gone { id, version } => gone(lines, id, *version, news.read, now),
    };
    if let (true, Some(line)) = (outcome != NewsOutcome::Stale, lines.get_mut(news.item())) {
        line.read = Some(news.read);
    }
    outcome
}

fn gone(
    lines: &mut BTreeMap<ItemId, Line>,
    id: &ItemId,
    version: Option<u64>,
    read: LogPosition,
    now: Millis,
) -> NewsOutcome {
    let Some(line) = lines.get_mut(id) else {
        // Remembered even though there is nothing to remove: an older event that creates the
        // item may still be on its way.
        if let Some(version) = version {
            lines.insert(id.clone(), tombstone(id, version, now));
        }
        return NewsOutcome::NotFound;
    };
    let stale = match version {
        Some(version) => version <= line.item.version,
        None => line.read.is_some_and(|last| read.is_repeat_of(last)),
    };
    if stale {
        return NewsOutcome::Stale;
    }
    line.item.version = version.unwrap_or(line.item.version);
    if remove(line) { NewsOutcome::Removed } else { NewsOutcome::NotFound }
}

/// False if it was taken out already.
pub(super) fn remove(line: &mut Line) -> bool {
    if line.removed {
        return false;
    }
    line.removed = true;
    line.restart();
    true
}

fn created(change: &ItemChange, now: Millis) -> Item {
    Item {
        id: change.id.clone(),
        name: change.name.clone(),
        stock: change.stock,
        enabled: change.enabled,
        paused: false,
        recovering_until: 0,
        behind_until: 0,
        held_until: 0,
        version: change.version.unwrap_or(0),
        revision: 1,
        created_at: Some(now),
        updated_at: Some(now),
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
        recovering_until: 0,
        behind_until: 0,
        held_until: 0,
        version,
        revision: 0,
        created_at: None,
        updated_at: None,
        policy: daegi_domain::Policy::default(),
    };
    // No number is given before it is opened again.
    let mut line = Line::new(item, 0, now);
    line.removed = true;
    line
}
