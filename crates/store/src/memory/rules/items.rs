use std::collections::BTreeMap;

use daegi_domain::{
    Item, ItemChange, ItemId, ItemUpdate, ItemUpdateKind, LogPosition, Millis, Policy,
};

use crate::memory::line::Line;
use crate::types::{ItemUpdateOutcome, PutOutcome};

pub(in crate::memory) fn put(
    lines: &mut BTreeMap<ItemId, Line>,
    change: &ItemChange,
    run_id: u64,
    now: Millis,
) -> PutOutcome {
    let Some(line) = lines.get_mut(&change.id) else {
        let line = Line::new(created(change, now), run_id, now);
        let item = line.item.clone();
        lines.insert(change.id.clone(), line);
        return PutOutcome::Created(item);
    };
    if change.version.is_some_and(|version| version <= line.item.version) {
        return PutOutcome::Stale;
    }
    if line.removed {
        let old = std::mem::replace(&mut line.item, created(change, now));
        line.item.version = change.version.unwrap_or(old.version);
        line.item.revision = old.revision;
        line.reopen(run_id, now);
        return PutOutcome::Created(line.bump_revision(now));
    }
    let item = &mut line.item;
    item.name = change.name.clone();
    item.stock = change.stock;
    item.enabled = change.enabled;
    item.version = change.version.unwrap_or(item.version);
    if let Some(policy) = &change.policy {
        let (opening, lanes) = (item.policy.opening.take(), std::mem::take(&mut item.policy.lanes));
        item.policy = Policy { opening, lanes, ..policy.clone() };
    }
    PutOutcome::Updated(line.bump_revision(now))
}

pub(in crate::memory) fn apply(
    lines: &mut BTreeMap<ItemId, Line>,
    update: &ItemUpdate,
    run_id: u64,
    now: Millis,
) -> ItemUpdateOutcome {
    let outcome = match &update.kind {
        ItemUpdateKind::Upsert(change) => match put(lines, change, run_id, now) {
            PutOutcome::Created(_) => ItemUpdateOutcome::Created,
            PutOutcome::Updated(_) => ItemUpdateOutcome::Updated,
            PutOutcome::Stale => ItemUpdateOutcome::Stale,
        },
        ItemUpdateKind::Remove { id, version } => {
            remove_update(lines, id, *version, update.position, now)
        }
    };
    if let (true, Some(line)) = (outcome != ItemUpdateOutcome::Stale, lines.get_mut(update.item()))
    {
        line.last_update = Some(update.position);
    }
    outcome
}

fn remove_update(
    lines: &mut BTreeMap<ItemId, Line>,
    id: &ItemId,
    version: Option<u64>,
    position: LogPosition,
    now: Millis,
) -> ItemUpdateOutcome {
    let Some(line) = lines.get_mut(id) else {
        // Keep the version although there is no item, because an older event that creates it may
        // arrive later.
        if let Some(version) = version {
            lines.insert(id.clone(), tombstone(id, version, now));
        }
        return ItemUpdateOutcome::NotFound;
    };
    let stale = match version {
        Some(version) => version <= line.item.version,
        None => line.last_update.is_some_and(|last| position.is_not_after(last)),
    };
    if stale {
        return ItemUpdateOutcome::Stale;
    }
    line.item.version = version.unwrap_or(line.item.version);
    if remove(line) { ItemUpdateOutcome::Removed } else { ItemUpdateOutcome::NotFound }
}

/// Removes the item; returns false if it was removed before.
pub(in crate::memory) fn remove(line: &mut Line) -> bool {
    if line.removed {
        return false;
    }
    line.removed = true;
    line.restart();
    true
}

fn created(change: &ItemChange, now: Millis) -> Item {
    Item {
        enabled: change.enabled,
        version: change.version.unwrap_or(0),
        created_at: Some(now),
        updated_at: Some(now),
        policy: change.policy.clone().unwrap_or_default(),
        ..Item::new(change.id.clone(), change.name.clone(), change.stock)
    }
}

fn tombstone(id: &ItemId, version: u64, now: Millis) -> Line {
    #[expect(clippy::expect_used, reason = "the constant is a valid name")]
    let name = daegi_domain::ItemName::parse("removed").expect("a valid name");
    let item = Item { enabled: false, version, revision: 0, ..Item::new(id.clone(), name, 0) };
    // The run id 0 is a placeholder: the line issues no number before it is opened again.
    let mut line = Line::new(item, 0, now);
    line.removed = true;
    line
}
