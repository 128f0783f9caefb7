//! Joins, leaves and completions.

use std::sync::Arc;

use daegi_domain::{
    ChallengePolicy, EndReason, ItemId, LaneName, PassError, Ticket, TokenError, UserId, lane,
};
use daegi_runtime::spans::{RequestStart, TracedCall};
use daegi_store::{EndOutcome, JoinOutcome, JoinRefusal, LaneJoin, LiveState, TicketState};

use super::challenge::JoinProof;
use super::poll::TicketView;
use super::{Credential, TicketService, UnverifiedToken};
use crate::access::Client;
use crate::error::{Error, Result};
use crate::lines::{CachedLine, LineHandle, LineKey};
use crate::signals::JoinSignals;
use crate::timeouts::{with_request_timeout, with_store_timeout};
use crate::visits::Visit;
use crate::wire;

/// What a client sends to join a line.
pub(crate) struct JoinRequest<'a> {
    pub(crate) user: UserId,
    /// The lane that a signed identity assigns to the user. An item without that lane ignores it.
    pub(crate) lane: Option<LaneName>,
    /// The token of an earlier join.
    pub(crate) token: Option<&'a str>,
    /// An invitation code.
    pub(crate) code: Option<&'a str>,
    /// The solution of a challenge.
    pub(crate) solution: Option<&'a str>,
    /// Who sends the request.
    pub(crate) client: &'a Client,
    /// Signs of a program.
    pub(crate) signals: JoinSignals,
    /// What is counted about the visit.
    pub(crate) visit: Visit,
}

impl TicketService {
    /// Joins a user. Returns the user's ticket, new or existing, and whether it is new. A user who
    /// presents a token keeps its number even if the store lost it. A user with an invitation code joins
    /// its lane, and moves there from another one.
    pub(crate) async fn join(
        &self,
        item: &ItemId,
        request: JoinRequest<'_>,
        begun: Option<&RequestStart>,
    ) -> Result<(bool, wire::Ticket)> {
        let JoinRequest { user, lane, token, code, solution, client, signals, visit } = request;
        // An invalid or expired token does not prevent a join.
        let now = self.clock.now_ms();
        let presented = token.and_then(|token| self.ticket_keys.verify_at(item, token, now).ok());
        let presented = presented.filter(|ticket| ticket.user == user);
        let permitted = self.permit_join(item, &user, presented.as_ref(), client);
        let is_exempt = permitted.inspect_err(|refused| self.metrics.joined(Err(refused)))?;
        let mut proof = if is_exempt { JoinProof::Exempt } else { JoinProof::Solution(solution) };
        if let Some(ticket) = presented {
            Box::pin(self.reclaim_before_join(&ticket)).await?;
            proof = JoinProof::Token;
        }
        // An allow rule also says that the client may be a program.
        let signals = (!is_exempt).then_some(signals);
        let asked = (code, lane.as_ref(), proof);
        let joined = self.issue_ticket(item, user, asked, (client, signals, visit), begun).await;
        if !item.is_reserved() {
            self.metrics.joined(joined.as_ref().map(|(new, _)| *new));
        }
        joined
    }

    /// Refuses a join of a blocked or too frequent user. Returns whether an allow rule exempts it from the challenge.
    fn permit_join(
        &self,
        item: &ItemId,
        user: &UserId,
        presented: Option<&Ticket>,
        client: &Client,
    ) -> Result<bool> {
        let is_exempt = self.access.require_join(item, user, presented, client)?;
        if !is_exempt && !item.is_reserved() {
            self.rate_limits.check_user_join(item, user)?;
        }
        Ok(is_exempt)
    }

    async fn issue_ticket(
        &self,
        item: &ItemId,
        user: UserId,
        (code, lane, mut proof): (Option<&str>, Option<&LaneName>, JoinProof<'_>),
        (client, signals, visit): (&Client, Option<JoinSignals>, Visit),
        begun: Option<&RequestStart>,
    ) -> Result<(bool, wire::Ticket)> {
        let (mut line, mut cached) = self.line_for_join(LineKey::standard(item)).await?;
        let policy = cached.line.item.policy.challenge;
        let (mut invitation, lanes) = (None, &cached.line.item.policy.lanes);
        if let Some(code) = code {
            let now = self.clock.now_ms();
            let (lane, verified) = self.ticket_keys.verify_invitation(item, lanes, code, now)?;
            invitation = Some(verified);
            proof = JoinProof::Invitation;
            (line, cached) = self.line_for_join(LineKey { item: item.clone(), lane }).await?;
        } else if let Some(lane) = lane.and_then(|name| lane::find(lanes, name)) {
            (line, cached) = self.line_for_join(LineKey { item: item.clone(), lane }).await?;
        }
        if policy != ChallengePolicy::Off {
            self.require_proof(policy, (item, &user), proof, client).await?;
        }
        let join = LaneJoin { user, invitation };
        match self.join_replacing_expired(&line, item, &join).await? {
            JoinOutcome::Refused(JoinRefusal::NotOpenYet) => Err(self.not_open_yet(&cached)),
            JoinOutcome::Refused(refusal) => Err(refusal.into()),
            JoinOutcome::Ticket { lane, number, is_new: new, state: place } => {
                let ticket = Ticket { lane, ..Ticket::new(item.clone(), join.user, number) };
                if lane != cached.line.lane {
                    // The user has a ticket of another lane.
                    (line, cached) = self.line_for_join(LineKey::from(&ticket)).await?;
                }
                if let Some(signals) = signals.filter(|_| new) {
                    self.signals.joined(&ticket, signals);
                }
                self.visits.joined(&ticket, visit, new, self.clock.now_ms());
                let token = self.ticket_keys.token(&ticket);
                let (cached, place) = self.with_position(&line, &ticket, cached, place).await?;
                let view = TicketView::from_live(place, self.clock.now_ms());
                let response = self.ticket_response(&ticket, token, Some(&cached), view);
                // The trace of an existing ticket began with its first join.
                if let Some(begun) = begun.filter(|_| new) {
                    self.tracer.record_call(TracedCall::Join, item, ticket.lane, number, begun);
                }
                Ok((new, response))
            }
        }
    }

    /// Returns the refusal with the times of the opening, as far as this pod knows them.
    fn not_open_yet(&self, cached: &CachedLine) -> Error {
        let opening = cached.line.item.policy.opening.as_ref();
        let lobby_at = opening.and_then(|opening| opening.lobby_at);
        Error::NotOpenYet {
            opens_at: opening.and_then(|opening| opening.opens_at),
            lobby_at,
            wait_ms: lobby_at.map_or(0, |at| at.saturating_sub(self.clock.now_ms())),
        }
    }

    /// Computes the position of a ticket that joined before the draw, which the store does not know.
    async fn with_position(
        &self,
        line: &LineHandle,
        ticket: &Ticket,
        cached: Arc<CachedLine>,
        place: LiveState,
    ) -> Result<(Arc<CachedLine>, LiveState)> {
        let is_drawn =
            cached.cohort.as_ref().is_some_and(|table| table.cohort().contains(ticket.number));
        if !is_drawn || place != (LiveState::Waiting { position: None }) {
            return Ok((cached, place));
        }
        match with_request_timeout(line.resolve(ticket)).await? {
            (cached, TicketState::Live(place)) => Ok((cached, place)),
            _ => Ok((cached, place)),
        }
    }

    /// Joins one user. Ends an existing ticket that is past its maximum age first, because its token
    /// would be refused everywhere.
    async fn join_replacing_expired(
        &self,
        line: &LineHandle,
        item: &ItemId,
        join: &LaneJoin,
    ) -> Result<JoinOutcome> {
        let joined = line.join(join.clone()).await?;
        match joined {
            JoinOutcome::Ticket { lane, number, is_new: false, .. } => {
                let now = self.clock.now_ms();
                if !self.ticket_keys.is_too_old(number, now) {
                    return Ok(joined);
                }
                let ticket =
                    Ticket { lane, ..Ticket::new(item.clone(), join.user.clone(), number) };
                with_store_timeout("leave", self.store.leave(&ticket, now)).await?;
                line.join(join.clone()).await
            }
            joined => Ok(joined),
        }
    }

    /// Returns a line and its cached copy, which is loaded if necessary.
    async fn line_for_join(&self, key: LineKey) -> Result<(Arc<LineHandle>, Arc<CachedLine>)> {
        if let Some(line) = self.lines.get(&key)
            && let Some(cached) = line.cached()
        {
            return Ok((line, cached));
        }
        // Boxed, because few joins need it and its size would be part of every join's future.
        let load = Box::pin(async {
            let line = self.lines.get_or_load(&key).await?;
            let cached = line.fresh().await?;
            Ok((line, cached))
        });
        with_request_timeout(load).await
    }

    /// Reclaims the number of a ticket that the store lost, so that the join finds it. Any other state
    /// of the ticket does not prevent a join.
    async fn reclaim_before_join(&self, ticket: &Ticket) -> Result<()> {
        match self.line_handle(ticket).await {
            // The join itself reports the missing item.
            Err(Error::ItemRemoved) => Ok(()),
            line => with_request_timeout(line?.resolve(ticket)).await.map(drop),
        }
    }

    /// Ends a ticket on behalf of its user, whether it waits or has an entry. Idempotent.
    pub(crate) async fn leave(
        &self,
        presented: &UnverifiedToken,
        begun: Option<&RequestStart>,
    ) -> Result<()> {
        let ticket = self.verify_token(presented)?;
        let now = self.clock.now_ms();
        let left = with_store_timeout("leave", self.store.leave(&ticket, now)).await?;
        self.lines.discard_cached_state(&ticket);
        if require_known_item(left)? {
            self.visits.left(&ticket, now);
        }
        if let Some(line) = self.lines.get(&LineKey::from(&ticket)) {
            // The refresh makes the end visible to the next poll at this pod. The user has left
            // even if it fails.
            let _ = with_request_timeout(line.refresh()).await;
        }
        if let Some(begun) = begun {
            let Ticket { item, number, lane, .. } = &ticket;
            self.tracer.record_call(TracedCall::Leave, item, *lane, *number, begun);
        }
        Ok(())
    }

    /// Ends an entry after the order was placed. Returns whether this call ended it. The entry of an
    /// expired pass has already ended.
    pub(crate) async fn complete(
        &self,
        item: ItemId,
        credential: Credential,
        begun: Option<&RequestStart>,
    ) -> Result<bool> {
        let now = self.clock.now_ms();
        let ticket = match credential {
            Credential::Token(token) => self.ticket_keys.verify_at(&item, &token, now)?,
            Credential::Pass(pass) => match self.pass_keys.verify(&item, &pass, now) {
                Ok(claims) if self.ticket_keys.is_too_old(claims.num, now) => {
                    return Err(TokenError::TooOld.into());
                }
                Ok(claims) => claims.ticket(),
                Err(PassError::Expired) => return Ok(false),
                Err(PassError::Invalid) => return Err(TokenError::Invalid.into()),
                Err(PassError::WrongItem) => return Err(TokenError::WrongItem.into()),
            },
        };
        let completed = self.store.complete(&ticket, EndReason::Completed, now);
        let released = require_known_item(with_store_timeout("complete", completed).await?)?;
        self.lines.discard_cached_state(&ticket);
        if let Some(begun) = begun {
            let Ticket { item, number, lane, .. } = &ticket;
            self.tracer.record_call(TracedCall::Complete, item, *lane, *number, begun);
        }
        Ok(released)
    }
}

/// Returns whether a call ended the ticket.
///
/// # Errors
/// [`Error::ItemUnknown`] if the item was lost: the ticket cannot be ended before the item is back, so
/// the client must retry.
fn require_known_item(outcome: EndOutcome) -> Result<bool> {
    match outcome {
        EndOutcome::Ended => Ok(true),
        EndOutcome::AlreadyEnded => Ok(false),
        EndOutcome::ItemUnknown => Err(Error::ItemUnknown),
    }
}
