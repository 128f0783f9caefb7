use std::collections::BTreeMap;

use daegi_domain::{
    Item, ItemChange, ItemId, ItemUpdate, ItemUpdateKind, LogPosition, Millis, Policy,
};

use crate::memory::item_lines::ItemLines;
use crate::types::{ItemUpdateOutcome, PutOutcome};

pub(in crate::memory) fn put(
    items: &mut BTreeMap<ItemId, ItemLines>,
    change: &ItemChange,
    run_id: u64,
    now: Millis,
) -> PutOutcome {
    let Some(ItemLines { standard: line, .. }) = items.get_mut(&change.id) else {
        let mut lines = ItemLines::new(created(change, now), run_id, now);
        match change.version {
            None => lines.standard.bump_control(now),
            // An item that is created at the start of a process: any other record of its settings is newer.
            Some(0) => lines.standard.bump_control(0),
            Some(_) => {}
        }
        let item = lines.shared().item.clone();
        items.insert(change.id.clone(), lines);
        return PutOutcome::Created(item);
    };
    if change.version.is_some_and(|version| version <= line.shared.item.version) {
        return PutOutcome::Stale;
    }
    if line.shared.removed {
        let old = std::mem::replace(&mut line.shared.item, created(change, now));
        line.shared.item.version = change.version.unwrap_or(old.version);
        line.shared.item.revision = old.revision;
        line.shared.item.control_version = old.control_version;
        line.reopen(run_id, now);
        if change.version.is_none() || old.control_version > 0 {
            line.bump_control(now);
        }
        return PutOutcome::Created(line.bump_revision(now));
    }
    let item = &mut line.shared.item;
    // A product service publishes its changes itself. Those that open or close the line change what is restored.
    let is_switched = item.enabled != change.enabled || (item.stock == 0) != (change.stock == 0);
    item.name = change.name.clone();
    item.stock = change.stock;
    item.enabled = change.enabled;
    item.version = change.version.unwrap_or(item.version);
    if let Some(policy) = &change.policy {
        let (opening, lanes) = (item.policy.opening.take(), std::mem::take(&mut item.policy.lanes));
        item.policy = Policy { opening, lanes, ..policy.clone() };
    }
    if change.version.is_none() || (item.control_version > 0 && is_switched) {
        line.bump_control(now);
    }
    PutOutcome::Updated(line.bump_revision(now))
}

pub(in crate::memory) fn apply(
    items: &mut BTreeMap<ItemId, ItemLines>,
    update: &ItemUpdate,
    run_id: u64,
    now: Millis,
) -> ItemUpdateOutcome {
    let outcome = match &update.kind {
        ItemUpdateKind::Upsert(change) => match put(items, change, run_id, now) {
            PutOutcome::Created(_) => ItemUpdateOutcome::Created,
            PutOutcome::Updated(_) => ItemUpdateOutcome::Updated,
            PutOutcome::Stale => ItemUpdateOutcome::Stale,
        },
        ItemUpdateKind::Remove { id, version } => {
            remove_update(items, id, *version, update.position, now)
        }
    };
    if let (true, Some(lines)) = (outcome != ItemUpdateOutcome::Stale, items.get_mut(update.item()))
    {
        lines.standard.shared.last_update = Some(update.position);
    }
    outcome
}

fn remove_update(
    items: &mut BTreeMap<ItemId, ItemLines>,
    id: &ItemId,
    version: Option<u64>,
    position: LogPosition,
    now: Millis,
) -> ItemUpdateOutcome {
    let Some(lines) = items.get_mut(id) else {
        // Keep the version although there is no item, because an older event that creates it may
        // arrive later.
        if let Some(version) = version {
            items.insert(id.clone(), tombstone(id, version, now));
        }
        return ItemUpdateOutcome::NotFound;
    };
    let line = &mut lines.standard;
    let stale = match version {
        Some(version) => version <= line.shared.item.version,
        None => line.shared.last_update.is_some_and(|last| position.is_not_after(last)),
    };
    if stale {
        return ItemUpdateOutcome::Stale;
    }
    line.shared.item.version = version.unwrap_or(line.shared.item.version);
    if !remove(lines) {
        return ItemUpdateOutcome::NotFound;
    }
    // A product service creates the item again with the default policy, so only other settings must survive.
    if lines.shared().item.control_version > 0 {
        lines.standard.bump_control(now);
    }
    ItemUpdateOutcome::Removed
}

/// Removes the item; returns false if it was removed before.
pub(in crate::memory) fn remove(lines: &mut ItemLines) -> bool {
    let removed = &mut lines.standard.shared.removed;
    if std::mem::replace(removed, true) {
        return false;
    }
    lines.restart();
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

pub(super) fn tombstone(id: &ItemId, version: u64, now: Millis) -> ItemLines {
    #[expect(clippy::expect_used, reason = "the constant is a valid name")]
    let name = daegi_domain::ItemName::parse("removed").expect("a valid name");
    let item = Item { enabled: false, version, revision: 0, ..Item::new(id.clone(), name, 0) };
    // The run id 0 is a placeholder: the line issues no number before it is opened again.
    let mut lines = ItemLines::new(item, 0, now);
    lines.standard.shared.removed = true;
    lines
}
