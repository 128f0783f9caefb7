use std::collections::BTreeMap;

use daegi_domain::draw::Cohort;
use daegi_domain::{Departed, Item, ItemControl, ItemId, LineControl, Millis, Number, Phase};

use super::items;
use super::reclaim::StoreIdentity;
use crate::limits::{LOBBY_NUMBERS_PER_MS, LOSS_GAP};
use crate::memory::item_lines::ItemLines;
use crate::memory::line::Line;
use crate::memory::queues::RankQueue;

/// What a record changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::memory) enum Restored {
    /// Nothing: the store has the same settings, or newer ones.
    Outdated,
    /// The item was absent before.
    Created,
    /// The store had older settings.
    Replaced,
}

/// Restores the settings of an item from a record, if the store has older ones or none. The lines continue
/// above every number that may have been lost, and no new ticket is admitted before the recovery hold ends.
pub(in crate::memory) fn restore_control(
    all: &mut BTreeMap<ItemId, ItemLines>,
    control: &ItemControl,
    store: StoreIdentity,
    now: Millis,
) -> Restored {
    let Some(lines) = all.get_mut(&control.id) else {
        all.insert(control.id.clone(), created(control, store, now));
        return Restored::Created;
    };
    let shared = &lines.shared();
    if shared.item.control_version >= control.control_version {
        return Restored::Outdated;
    }
    // A newer event of the product service decides about stock and removal.
    let (was_live, is_live) = (!shared.removed, control.item.is_some());
    let has_newer_event = shared.item.version > control.version;
    let shared = &mut lines.standard.shared;
    shared.item.control_version = control.control_version;
    if has_newer_event && was_live != is_live {
        return Restored::Outdated;
    }
    shared.control_tail = record(control, 0).tail;
    if !has_newer_event {
        shared.item.version = control.version;
        shared.last_update = control.position.or(shared.last_update);
    }
    match &control.item {
        Some(item) if was_live => replace(lines, control, item, has_newer_event, store, now),
        Some(item) => reopen(lines, control, item, has_newer_event, store, now),
        None if was_live => drop(items::remove(lines)),
        None => {}
    }
    Restored::Replaced
}

/// Returns what the record has of the line of a lane.
fn record(control: &ItemControl, lane: usize) -> LineControl {
    let line = control.lines.iter().find(|line| line.lane.index() == lane);
    line.copied().unwrap_or(LineControl {
        lane: daegi_domain::Lane::STANDARD,
        valid_from: Number(0),
        tail: Number(0),
        first_waiting: None,
    })
}

/// Returns the last number that a lobby may have issued since the record, also after an earlier restore from it.
fn last_issued(control: &ItemControl, tail: Number, now: Millis) -> Number {
    let since_record = now.saturating_sub(control.control_version) * LOBBY_NUMBERS_PER_MS;
    Number(tail.0 + since_record % LOSS_GAP)
}

/// Returns the lines of an item that the store does not have.
fn created(control: &ItemControl, store: StoreIdentity, now: Millis) -> ItemLines {
    let Some(item) = &control.item else {
        let mut lines = items::tombstone(&control.id, control.version, now);
        let LineControl { tail, valid_from, .. } = record(control, 0);
        let line = &mut lines.standard;
        (line.tail, line.valid_from) = (tail, valid_from);
        line.shared.item.control_version = control.control_version;
        (line.shared.control_tail, line.shared.last_update) = (tail, control.position);
        return lines;
    };
    let mut lines = ItemLines::new(restored(item, control, 0, store, now), store.run_id, now);
    lines.standard.shared.last_update = control.position;
    lines.standard.shared.stopped = item.paused;
    begin(&mut lines.standard, control, Number(0), now);
    restore_lanes(&mut lines, control, store, now);
    lines
}

/// Returns the item of a line that begins again.
fn restored(
    item: &Item,
    control: &ItemControl,
    revision: u64,
    store: StoreIdentity,
    now: Millis,
) -> Item {
    Item {
        version: control.version,
        control_version: control.control_version,
        revision: revision + 1,
        recovering_until: 0,
        hold_new_until: now + store.recovery_hold,
        held_until: 0,
        pace: None,
        updated_at: Some(now),
        ..item.clone()
    }
}

/// Opens the line of an item again that was removed.
fn reopen(
    lines: &mut ItemLines,
    control: &ItemControl,
    item: &Item,
    has_newer_event: bool,
    store: StoreIdentity,
    now: Millis,
) {
    debug_assert!(!has_newer_event, "a newer removal stays");
    let line = &mut lines.standard;
    let old_tail = line.tail;
    let revision = line.shared.item.revision;
    line.shared.item = restored(item, control, revision, store, now);
    line.reopen(store.run_id, now);
    line.shared.stopped = item.paused;
    begin(line, control, old_tail, now);
    restore_lanes(lines, control, store, now);
}

/// Begins the line of the standard lane above the recorded numbers. In a lobby the gap is small, because the
/// numbers of a cohort have few gaps.
fn begin(line: &mut Line, control: &ItemControl, old_tail: Number, now: Millis) {
    let LineControl { tail, valid_from, .. } = record(control, 0);
    let lobby_first = lobby_first(line, control, now);
    let above = Number(old_tail.max(last_issued(control, tail, now)).0 + LOSS_GAP);
    let base = if lobby_first.is_some() { above } else { above.max(Number::base_at(now)) };
    (line.base, line.tail, line.lost_to, line.valid_from) = (base, base, base, valid_from);
    line.departed = Departed::new(base.rank());
    (line.shared.control_tail, line.shared.lobby_first) = (tail, lobby_first);
    draw(line);
}

/// Returns the lowest number that waited in the lobby.
fn lobby_first(line: &Line, control: &ItemControl, now: Millis) -> Option<Number> {
    let is_lobby = line.shared.item.phase(now) == Phase::Lobby;
    record(control, 0).first_waiting.filter(|_| is_lobby)
}

fn draw(line: &mut Line) {
    if let Some((cohort, drawn)) = line.shared.item.drawn_cohort() {
        line.draw(Cohort::new(cohort.first, cohort.size, drawn.seed));
    }
}

/// Replaces older settings of an item that exists.
fn replace(
    lines: &mut ItemLines,
    control: &ItemControl,
    item: &Item,
    has_newer_event: bool,
    store: StoreIdentity,
    now: Millis,
) {
    let line = &mut lines.standard;
    let old = line.shared.item.clone();
    let seed = |item: &Item| item.drawn_cohort().map(|(_, drawn)| drawn.seed);
    let reveal = |item: &Item| item.draw.as_ref().map(|draw| draw.reveal);
    // Another draw was planned, which needed an empty line.
    let is_other_draw = old.draw.is_some()
        && (reveal(&old) != reveal(item) || (seed(&old).is_some() && seed(&old) != seed(item)));
    if is_other_draw {
        line.restart();
        line.waiting = RankQueue::default();
    }
    let product = if has_newer_event { &old } else { item };
    line.shared.item = Item {
        name: product.name.clone(),
        stock: product.stock,
        enabled: product.enabled,
        version: line.shared.item.version,
        control_version: control.control_version,
        revision: old.revision + 1,
        recovering_until: line.shared.item.recovering_until,
        hold_new_until: line.shared.item.hold_new_until,
        held_until: old.held_until,
        pace: None,
        updated_at: Some(now),
        ..item.clone()
    };
    line.shared.stopped |= item.paused;
    let is_drawn_anew = seed(item).is_none() || seed(&old) != seed(item);
    if is_drawn_anew {
        line.served_ranks = 0;
    }
    continue_line(line, control, record(control, 0), store, now);
    if is_drawn_anew {
        draw(line);
    }
    line.shared.lobby_first = lobby_first(line, control, now);
    restore_lanes(lines, control, store, now);
}

/// Continues a line that has older data above the recorded numbers.
fn continue_line(
    line: &mut Line,
    control: &ItemControl,
    record: LineControl,
    store: StoreIdentity,
    now: Millis,
) {
    if record.valid_from > line.valid_from {
        line.restart();
        line.valid_from = record.valid_from.max(line.tail.next());
    }
    line.advance_past_lost(last_issued(control, record.tail, now).max(line.tail), store, now);
}

fn restore_lanes(lines: &mut ItemLines, control: &ItemControl, store: StoreIdentity, now: Millis) {
    for record in control.lines.iter().filter(|record| !record.lane.is_standard()) {
        let restored =
            lines.with(record.lane, |line| continue_line(line, control, *record, store, now));
        if restored.is_none() {
            let mut line = Line::new(lines.shared().clone(), record.lane, store.run_id, now);
            let base = Number::base_at(now)
                .max(Number(last_issued(control, record.tail, now).0 + LOSS_GAP));
            (line.base, line.tail, line.lost_to) = (base, base, base);
            line.departed = Departed::new(base.rank());
            line.valid_from = record.valid_from;
            lines.insert(line);
        }
    }
}
