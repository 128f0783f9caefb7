use ::redis::Value;
use async_trait::async_trait;
use daegi_domain::liveness::slice_of;
use daegi_domain::{
    EndReason, HANDOVER_LIFETIME_MS, ItemId, Lane, LivenessPage, Millis, Settings, Ticket, UserId,
};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::client::call_error::is_out_of_memory;
use super::reply::JoinReply;
use super::scripts::scripts;
use super::unique_users::UniqueUsers;
use super::{MAX_CONCURRENT_CALLS, RedisStore, reply};
use crate::limits::{LEAVE_WINDOW_MS, MAX_CHANGES_PER_SNAPSHOT, MAX_USERS_PER_CALL};
use crate::types::{
    ChangeCursor, EndOutcome, EntryProof, JoinOutcome, JoinRefusal, LaneJoin, LineCounts,
    LineSnapshot, LiveState, TicketState,
};
use crate::{Result, TicketStore};

#[async_trait]
impl TicketStore for RedisStore {
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
        settings: &Settings,
        now: Millis,
    ) -> Result<Vec<JoinOutcome>> {
        if joins.is_empty() {
            return Ok(Vec::new());
        }
        let unique = UniqueUsers::new(joins);
        let (users, invitations) = (unique.users(), unique.invitations());
        loop {
            let lanes = self.known_lanes(id);
            let join = |refusal| {
                let mut script = self.lanes_script(id, lane, lanes, |scripts| &scripts.join);
                script.key(self.keys(id).slice(slice_of(now)));
                script.arg(now).arg(settings.token_count_to_move).arg(self.recovery_hold);
                script.arg(reply::refusal_tag(refusal)).arg(self.capacity.limits.max_waiting);
                script.arg(self.leave_limit.cost_ms()).arg(LEAVE_WINDOW_MS);
                script.arg(&invitations).arg(&users);
                self.run(script)
            };
            let (mut outcomes, ()) =
                tokio::join!(join(self.new_ticket_refusal()), self.measure_if_due());
            // Redis filled up since the last measurement. A script that fails with OOM has written
            // nothing.
            if outcomes.as_ref().is_err_and(is_out_of_memory) {
                outcomes = join(Some(JoinRefusal::StoreFull)).await;
            }
            match reply::join(outcomes?)? {
                JoinReply::Done(outcomes) => return Ok(unique.expand(outcomes)),
                JoinReply::OtherLanes(lanes) => self.keep_lanes(id, lanes),
            }
        }
    }

    async fn snapshot(
        &self,
        id: &ItemId,
        lane: Lane,
        cursor: ChangeCursor,
    ) -> Result<Option<LineSnapshot>> {
        let mut script = self.line_script(id, lane, |scripts| &scripts.snapshot);
        script.arg(cursor.base).arg(cursor.read).arg(MAX_CHANGES_PER_SNAPSHOT);
        reply::snapshot(id, lane, self.run(script).await?)
    }

    async fn mark_seen(
        &self,
        id: &ItemId,
        lane: Lane,
        pages: &[LivenessPage],
        now: Millis,
    ) -> Result<()> {
        // Merging one page takes a script about 30 µs, so that one call merges at most 64.
        for pages in pages.chunks(64) {
            let mut script = self.line_script(id, lane, |scripts| &scripts.mark_seen);
            script.key(self.keys(id).slice(slice_of(now)));
            pages.iter().for_each(|page| {
                script.arg(page.page).arg(page.to_bytes());
            });
            self.run::<()>(script).await?;
        }
        Ok(())
    }

    async fn use_handover(&self, ticket: &Ticket, issued_at: Millis, _now: Millis) -> Result<bool> {
        let mut script = scripts().use_handover.invocation();
        script.key(self.lane_keys(&ticket.item, ticket.lane).handover(ticket.number));
        script.arg(issued_at).arg(2 * HANDOVER_LIFETIME_MS);
        self.run(script).await
    }

    async fn used_handover(&self, ticket: &Ticket, _now: Millis) -> Result<Option<Millis>> {
        let key = self.lane_keys(&ticket.item, ticket.lane).handover(ticket.number);
        self.command(::redis::cmd("GET").arg(key)).await
    }

    async fn resolve(&self, tickets: &[Ticket], now: Millis) -> Result<Vec<TicketState>> {
        let Some(Ticket { item: id, lane, .. }) = tickets.first() else { return Ok(Vec::new()) };
        loop {
            let lanes = self.known_lanes(id);
            let mut script = self.lanes_script(id, *lane, lanes, |scripts| &scripts.resolve);
            script.key(self.keys(id).slice(slice_of(now))).arg(now).arg(self.recovery_hold);
            self.pass_generation(&mut script, id);
            tickets.iter().for_each(|ticket| {
                script.arg(ticket.user.as_str()).arg(ticket.number.0);
            });
            let reply: Vec<Vec<Value>> = self.run(script).await?;
            match reply.first().and_then(|first| reply::lanes_needed(first)) {
                Some(lanes) => self.keep_lanes(id, lanes),
                None => return reply::ticket_states(reply),
            }
        }
    }

    async fn restore_entry(&self, entry: &EntryProof, now: Millis) -> Result<TicketState> {
        let EntryProof { ticket, at, expires_at } = entry;
        let Ticket { item: id, user, number, lane } = ticket;
        let reply = loop {
            let lanes = self.known_lanes(id);
            let mut script = self.lanes_script(id, *lane, lanes, |scripts| &scripts.restore_entry);
            script.arg(now).arg(self.recovery_hold).arg(user.as_str());
            script.arg(number.0).arg(at).arg(expires_at);
            self.pass_generation(&mut script, id);
            let reply: Value = self.run(script).await?;
            match reply.as_sequence().and_then(reply::lanes_needed) {
                Some(lanes) => self.keep_lanes(id, lanes),
                None => break reply,
            }
        };
        if reply == Value::Int(1) {
            return Ok(TicketState::Live(LiveState::Entered {
                admitted_at: *at,
                expires_at: *expires_at,
            }));
        }
        let states = self.resolve(std::slice::from_ref(ticket), now).await?;
        Ok(states.first().copied().unwrap_or(TicketState::ItemUnknown))
    }

    async fn leave(&self, ticket: &Ticket, now: Millis) -> Result<EndOutcome> {
        self.end_ticket(ticket, EndReason::Left, "any", now).await
    }

    async fn complete(
        &self,
        ticket: &Ticket,
        reason: EndReason,
        now: Millis,
    ) -> Result<EndOutcome> {
        self.end_ticket(ticket, reason, "entered", now).await
    }

    async fn note_ended(&self, ended: &[(Ticket, EndReason)], now: Millis) -> Result<bool> {
        let Some((Ticket { item: id, lane, .. }, _)) = ended.first() else { return Ok(true) };
        let mut is_known = true;
        for ended in ended.chunks(MAX_USERS_PER_CALL as usize) {
            let mut script = self.line_script(id, *lane, |scripts| &scripts.note_ended);
            script.arg(now);
            ended.iter().for_each(|(ticket, reason)| {
                script.arg(ticket.user.as_str()).arg(ticket.number.0).arg(reason.code());
            });
            is_known = self.run(script).await?;
        }
        Ok(is_known)
    }

    async fn counts(&self, ids: &[ItemId]) -> Result<Vec<LineCounts>> {
        let counts =
            stream::iter(ids.iter().cloned().map(|id| async move { self.count(&id).await }));
        counts
            .buffered(MAX_CONCURRENT_CALLS)
            .try_filter_map(|counts| async { Ok(counts) })
            .try_collect()
            .await
    }
}

impl RedisStore {
    /// Counts the tickets of an item, with one call per lane.
    async fn count(&self, id: &ItemId) -> Result<Option<LineCounts>> {
        let counts = |lane| self.run(self.line_script(id, lane, |scripts| &scripts.counts));
        let Some((mut all, lanes)) = reply::counts(id, counts(Lane::STANDARD).await?) else {
            return Ok(None);
        };
        let mut by_lane = vec![all.all_lanes()];
        for lane in (1..=lanes).filter_map(Lane::numbered) {
            let counted = reply::counts(id, counts(lane).await?);
            by_lane.push(counted.map(|(counts, _)| counts.all_lanes()).unwrap_or_default());
        }
        all.set_lanes(by_lane);
        Ok(Some(all))
    }

    /// Ends a ticket: `which` is `any` for a user who leaves, `entered` for an order that ended.
    async fn end_ticket(
        &self,
        Ticket { item: id, user, number, lane }: &Ticket,
        reason: EndReason,
        which: &str,
        now: Millis,
    ) -> Result<EndOutcome> {
        // Only leaves count against the limit; the end of an order does not.
        let leave_cost_ms = if which == "any" { self.leave_limit.cost_ms() } else { 0 };
        let mut script = self.line_script(id, *lane, |scripts| &scripts.end_ticket);
        script.arg(now).arg(user.as_str()).arg(number.0).arg(reason.code()).arg(which);
        script.arg(self.recovery_hold);
        self.pass_generation(&mut script, id);
        script.arg(leave_cost_ms).arg(LEAVE_WINDOW_MS);
        reply::end_outcome(&self.run::<String>(script).await?)
    }
}
