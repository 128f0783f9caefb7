use async_trait::async_trait;
use daegi_domain::{EndReason, ItemId, LivenessPage, Millis, Settings, Ticket, UserId};

use super::line::Line;
use super::outbox::PendingEvents;
use super::rules::end_ticket::TicketEnd;
use super::state::commit;
use super::{MemoryStore, rules};
use crate::types::{
    ChangeCursor, EndOutcome, EntryProof, JoinOutcome, JoinRefusal, LineCounts, LineSnapshot,
    TicketState,
};
use crate::{Result, TicketStore};

#[async_trait]
impl TicketStore for MemoryStore {
    async fn join(
        &self,
        id: &ItemId,
        users: &[UserId],
        _settings: &Settings,
        now: Millis,
    ) -> Result<Vec<JoinOutcome>> {
        let partition = self.partition_index(id);
        let mut state = self.state();
        let state = &mut *state;
        let store = self.identity(state, partition);
        let max_waiting = state.max_waiting(id, self.max_waiting);
        let Some(line) = state.lines.get_mut(id) else {
            return Ok(vec![JoinOutcome::Refused(JoinRefusal::NotFound); users.len()]);
        };
        let mut events = PendingEvents::default();
        let settings = &state.settings;
        let outcomes =
            rules::join::join(line, users, settings, max_waiting, store, now, &mut events);
        if outcomes
            .iter()
            .any(|outcome| matches!(outcome, JoinOutcome::Ticket { is_new: true, .. }))
        {
            state.active.insert(id.clone());
        }
        commit(line, &mut state.outboxes[partition], events);
        Ok(outcomes)
    }

    async fn snapshot(&self, id: &ItemId, cursor: ChangeCursor) -> Result<Option<LineSnapshot>> {
        Ok(self.state().line(id).map(|line| line.snapshot(cursor)))
    }

    async fn mark_seen(&self, id: &ItemId, pages: &[LivenessPage], now: Millis) -> Result<()> {
        if let Some(line) = self.state().line_mut(id) {
            pages.iter().for_each(|page| line.liveness.mark_page(page, now));
        }
        Ok(())
    }

    async fn resolve(&self, tickets: &[Ticket], now: Millis) -> Result<Vec<TicketState>> {
        let Some(Ticket { item: id, .. }) = tickets.first() else { return Ok(Vec::new()) };
        let (mut state, partition) = (self.state(), self.partition_index(id));
        let store = self.checked_identity(&mut state, partition, now);
        let states = state.update_and_activate(id, partition, |line, events| {
            let resolve = |ticket| rules::resolve::resolve(line, ticket, store, now, events);
            tickets.iter().map(resolve).collect()
        });
        Ok(states.unwrap_or_else(|| vec![TicketState::ItemUnknown; tickets.len()]))
    }

    async fn restore_entry(&self, entry: &EntryProof, now: Millis) -> Result<TicketState> {
        let id = &entry.ticket.item;
        let (mut state, partition) = (self.state(), self.partition_index(id));
        let store = self.checked_identity(&mut state, partition, now);
        let restored = state.update_and_activate(id, partition, |line, events| {
            rules::restore_entry::restore_entry(line, entry, store, now, events)
        });
        Ok(restored.unwrap_or(TicketState::ItemUnknown))
    }

    async fn leave(&self, ticket: &Ticket, now: Millis) -> Result<EndOutcome> {
        let (mut state, partition) = (self.state(), self.partition_index(&ticket.item));
        let store = self.checked_identity(&mut state, partition, now);
        let outcome = state.update_line(&ticket.item, partition, None, |line, events| {
            Some(TicketEnd { line, ticket, store, now, events }.leave())
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
        let outcome = state.update_line(&ticket.item, partition, None, |line, events| {
            Some(TicketEnd { line, ticket, store, now, events }.complete(reason))
        });
        Ok(outcome.unwrap_or(EndOutcome::ItemUnknown))
    }

    async fn note_ended(&self, ended: &[(Ticket, EndReason)], now: Millis) -> Result<bool> {
        let Some((Ticket { item: id, .. }, _)) = ended.first() else { return Ok(true) };
        let mut state = self.state();
        let Some(line) = state.lines.get_mut(id) else { return Ok(false) };
        for (ticket, reason) in ended {
            line.note_ended(&ticket.user, ticket.number, *reason, now);
        }
        Ok(true)
    }

    async fn counts(&self, ids: &[ItemId]) -> Result<Vec<LineCounts>> {
        let state = self.state();
        Ok(ids.iter().filter_map(|id| state.line(id)).map(Line::counts).collect())
    }
}
