use std::slice;

use async_trait::async_trait;
use daegi_domain::{
    EndReason, HANDOVER_LIFETIME_MS, ItemId, Lane, LivenessPage, Millis, Settings, Ticket, UserId,
};

use super::item_lines::ItemLines;
use super::outbox::StepEvents;
use super::rules::end_ticket::TicketEnd;
use super::rules::join::JoinCall;
use super::state::UsedHandover;
use super::{MemoryStore, rules};
use crate::types::{
    ChangeCursor, EndOutcome, EntryProof, JoinOutcome, JoinRefusal, LaneJoin, LineCounts,
    LineSnapshot, TicketState,
};
use crate::{Result, TicketStore};

#[async_trait]
impl TicketStore for MemoryStore {
    async fn join(
        &self,
        id: &ItemId,
        users: &[UserId],
        settings: &Settings,
        now: Millis,
    ) -> Result<Vec<JoinOutcome>> {
        let join = |user: &UserId| LaneJoin { user: user.clone(), invitation: None };
        let joins: Vec<_> = users.iter().map(join).collect();
        self.join_lane(id, Lane::STANDARD, &joins, settings, now).await
    }

    async fn join_lane(
        &self,
        id: &ItemId,
        lane: Lane,
        joins: &[LaneJoin],
        _settings: &Settings,
        now: Millis,
    ) -> Result<Vec<JoinOutcome>> {
        let partition = self.partition_index(id);
        let mut state = self.state();
        let state = &mut *state;
        let store = self.identity(state, partition);
        let max_waiting = state.max_waiting(id, self.max_waiting);
        let lines = state.lines.get_mut(id);
        let Some(lines) = lines.filter(|lines| lines.has_lane(lane)) else {
            return Ok(vec![JoinOutcome::Refused(JoinRefusal::NotFound); joins.len()]);
        };
        let (mut events, settings) = (StepEvents::default(), &state.settings);
        let call = JoinCall { lines, lane, settings, max_waiting, store, now, events: &mut events };
        let outcomes = call.run(joins);
        let is_new =
            |outcome: &JoinOutcome| matches!(outcome, JoinOutcome::Ticket { is_new: true, .. });
        if outcomes.iter().any(is_new) {
            state.active.insert(id.clone());
        }
        if let Some(lines) = state.lines.get(id) {
            state.outboxes[partition].append(&lines.shared().item, events);
        }
        Ok(outcomes)
    }

    async fn snapshot(
        &self,
        id: &ItemId,
        lane: Lane,
        cursor: ChangeCursor,
    ) -> Result<Option<LineSnapshot>> {
        let mut state = self.state();
        let Some(lines) = state.lines_mut(id) else { return Ok(None) };
        let snapshot = lines.with(lane, |line| line.snapshot(cursor));
        Ok(Some(snapshot.unwrap_or_else(|| LineSnapshot::empty(lines.shared().item.clone(), lane))))
    }

    async fn mark_seen(
        &self,
        id: &ItemId,
        lane: Lane,
        pages: &[LivenessPage],
        now: Millis,
    ) -> Result<()> {
        if let Some(lines) = self.state().lines_mut(id) {
            lines.with(lane, |line| {
                pages.iter().for_each(|page| line.liveness.mark_page(page, now));
            });
        }
        Ok(())
    }

    async fn use_handover(&self, ticket: &Ticket, issued_at: Millis, now: Millis) -> Result<bool> {
        let handovers = &mut self.state().handovers;
        handovers.retain(|_, used| used.until > now);
        let is_used = |used: &UsedHandover| used.issued_at >= issued_at;
        if handovers.get(ticket).is_some_and(is_used) {
            return Ok(false);
        }
        let until = now + 2 * HANDOVER_LIFETIME_MS;
        handovers.insert(ticket.clone(), UsedHandover { issued_at, until });
        Ok(true)
    }

    async fn used_handover(&self, ticket: &Ticket, now: Millis) -> Result<Option<Millis>> {
        let used = self.state().handovers.get(ticket).copied();
        Ok(used.filter(|used| used.until > now).map(|used| used.issued_at))
    }

    async fn resolve(&self, tickets: &[Ticket], now: Millis) -> Result<Vec<TicketState>> {
        let Some(first) = tickets.first() else { return Ok(Vec::new()) };
        let (mut state, partition) = (self.state(), self.partition_index(&first.item));
        let store = self.checked_identity(&mut state, partition, now);
        let states = state.update_and_activate(tickets, partition, store, now, |line, events| {
            let resolve = |ticket| rules::resolve::resolve(line, ticket, store, now, events);
            tickets.iter().map(resolve).collect()
        });
        Ok(states.unwrap_or_else(|| vec![TicketState::ItemUnknown; tickets.len()]))
    }

    async fn restore_entry(&self, entry: &EntryProof, now: Millis) -> Result<TicketState> {
        let ticket = &entry.ticket;
        let (mut state, partition) = (self.state(), self.partition_index(&ticket.item));
        let store = self.checked_identity(&mut state, partition, now);
        let restored = state.update_and_activate(
            slice::from_ref(ticket),
            partition,
            store,
            now,
            |line, events| rules::restore_entry::restore_entry(line, entry, store, now, events),
        );
        Ok(restored.unwrap_or(TicketState::ItemUnknown))
    }

    async fn leave(&self, ticket: &Ticket, now: Millis) -> Result<EndOutcome> {
        let (mut state, partition) = (self.state(), self.partition_index(&ticket.item));
        let store = self.checked_identity(&mut state, partition, now);
        let outcome =
            state.update_tickets(slice::from_ref(ticket), partition, store, now, |line, events| {
                TicketEnd { line, ticket, store, now, events }.leave()
            });
        Ok(outcome.unwrap_or(EndOutcome::ItemUnknown))
    }

    async fn complete(
        &self,
        ticket: &Ticket,
        reason: EndReason,
        now: Millis,
    ) -> Result<EndOutcome> {
        let (mut state, partition) = (self.state(), self.partition_index(&ticket.item));
        let store = self.checked_identity(&mut state, partition, now);
        let outcome =
            state.update_tickets(slice::from_ref(ticket), partition, store, now, |line, events| {
                TicketEnd { line, ticket, store, now, events }.complete(reason)
            });
        Ok(outcome.unwrap_or(EndOutcome::ItemUnknown))
    }

    async fn note_ended(&self, ended: &[(Ticket, EndReason)], now: Millis) -> Result<bool> {
        let Some((Ticket { item: id, lane, .. }, _)) = ended.first() else { return Ok(true) };
        let mut state = self.state();
        let Some(lines) = state.lines.get_mut(id) else { return Ok(false) };
        lines.begin(*lane, self.run_id(), now);
        let noted = lines.with(*lane, |line| {
            for (ticket, reason) in ended {
                line.note_ended(&ticket.user, ticket.number, *reason, now);
            }
        });
        Ok(noted.is_some())
    }

    async fn counts(&self, ids: &[ItemId]) -> Result<Vec<LineCounts>> {
        let state = self.state();
        Ok(ids.iter().filter_map(|id| state.lines(id)).map(ItemLines::counts).collect())
    }
}
