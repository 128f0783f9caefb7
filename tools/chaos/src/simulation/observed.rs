//! Events and draws as a consumer and a user see them.

use daegi_domain::{
    Draw, ItemId, LineEvent, LineOpened, PublishedDraw, TicketEvent, draw::commitment,
};
use daegi_store::OutboxBatch;

use super::virtual_user::reason_text;
use crate::history::{DrawRecord, EventKind, Millis, ObservedEvent, ObservedOpening, TicketNumber};

/// The event of a ticket.
pub(super) fn ticket_event(
    batch: &OutboxBatch,
    event: &TicketEvent,
    sequence: String,
    (offset, received_at): (i64, Millis),
) -> ObservedEvent {
    let (kind, at, expires, reason) = match event {
        TicketEvent::Admitted { at, expires_at, .. } => {
            (EventKind::Activated, *at, Some(*expires_at), None)
        }
        TicketEvent::Ended { at, reason, .. } => {
            (EventKind::Closed, *at, None, Some(reason_text(*reason).to_owned()))
        }
    };
    ObservedEvent {
        event: kind,
        id: event.id(&batch.item, batch.lane).to_string(),
        item: batch.item.to_string(),
        user: event.user().to_string(),
        number: TicketNumber::from((batch.lane, event.number())),
        at,
        expires,
        reason,
        epoch: batch.epoch.map(|epoch| epoch.0),
        sequence,
        partition: 0,
        offset,
        received_at,
    }
}

/// The event of an opening; `None` for a close.
pub(super) fn opening(
    batch: &OutboxBatch,
    event: &LineEvent,
    sequence: String,
    received_at: Millis,
) -> Option<ObservedOpening> {
    let LineEvent::Opened { at, draw } = event else { return None };
    let body = LineOpened::new(batch.item.clone(), event.id(&batch.item), *at, draw.as_ref());
    Some(ObservedOpening {
        id: body.event_id.to_string(),
        item: batch.item.to_string(),
        at: *at,
        draw: body.draw.as_ref().and_then(published),
        epoch: batch.epoch.map(|epoch| epoch.0),
        sequence,
        received_at,
    })
}

/// The public record of a draw, as pods return it.
pub(super) fn draw_record(draw: &Draw) -> Option<DrawRecord> {
    match PublishedDraw::new(draw) {
        Some(drawn) => published(&drawn),
        None => Some(DrawRecord {
            version: 1,
            commitment: hex::encode(commitment(&draw.reveal.0)),
            ..DrawRecord::default()
        }),
    }
}

fn published(draw: &PublishedDraw) -> Option<DrawRecord> {
    serde_json::from_value(serde_json::to_value(draw).ok()?).ok()
}

/// The rank of a ticket in its cohort, as a pod computes it.
pub(super) fn cohort_rank(item: &daegi_domain::Item, number: TicketNumber) -> Option<u64> {
    let (cohort, drawn) = item.drawn_cohort().filter(|_| number.lane == 0)?;
    let order = daegi_domain::draw::Cohort::new(cohort.first, cohort.size, drawn.seed);
    order.cohort_rank(daegi_domain::Number(number.number))
}

/// Parses the id of an item of a scenario.
pub(super) fn item_id(item: &str) -> Option<ItemId> {
    ItemId::parse(item).ok()
}
