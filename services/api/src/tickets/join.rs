//! Joins, leaves and completions.

use std::sync::Arc;

use daegi_domain::{EndReason, ItemId, PassError, Ticket, TokenError, UserId};
use daegi_runtime::spans::{RequestStart, TracedCall};
use daegi_store::{EndOutcome, JoinOutcome, JoinRefusal, LiveState, TicketState};

use super::poll::TicketView;
use super::{Credential, TicketService, UnverifiedToken};
use crate::error::{Error, Result};
use crate::lines::{CachedLine, LineHandle};
use crate::timeouts::{with_request_timeout, with_store_timeout};
use crate::wire;

impl TicketService {
    /// Joins a user. Returns the user's ticket, new or existing, and whether it is new. A user who
    /// presents a token keeps its number even if the store lost it.
    pub(crate) async fn join(
        &self,
        item: &ItemId,
        user: UserId,
        token: Option<&str>,
        begun: Option<&RequestStart>,
    ) -> Result<(bool, wire::Ticket)> {
        // An invalid or expired token does not prevent a join.
        let now = self.clock.now_ms();
        let presented = token.and_then(|token| self.ticket_keys.verify_at(item, token, now).ok());
        if let Some(ticket) = presented.filter(|ticket| ticket.user == user) {
            Box::pin(self.reclaim_before_join(&ticket)).await?;
        }
        let joined = self.issue_ticket(item, user, begun).await;
        if !item.is_reserved() {
            self.metrics.joined(joined.as_ref().map(|(new, _)| *new));
        }
        joined
    }

    async fn issue_ticket(
        &self,
        item: &ItemId,
        user: UserId,
        begun: Option<&RequestStart>,
    ) -> Result<(bool, wire::Ticket)> {
        let (line, cached) = match self.cached_line(item) {
            Some(known) => known,
            // Boxed, because few joins need it and its size would be part of every join's future.
            None => Box::pin(with_request_timeout(self.load_line(item))).await?,
        };
        match self.join_replacing_expired(&line, item, &user).await? {
            JoinOutcome::Refused(JoinRefusal::NotOpenYet) => Err(self.not_open_yet(&cached)),
            JoinOutcome::Refused(refusal) => Err(refusal.into()),
            JoinOutcome::Ticket { number, is_new: new, state: place } => {
                let ticket = Ticket::new(item.clone(), user, number);
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
        let is_drawn = cached.cohort.is_some_and(|cohort| cohort.contains(ticket.number));
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
        user: &UserId,
    ) -> Result<JoinOutcome> {
        let joined = line.join(user.clone()).await?;
        match joined {
            JoinOutcome::Ticket { number, is_new: false, .. } => {
                let now = self.clock.now_ms();
                if !self.ticket_keys.is_too_old(number, now) {
                    return Ok(joined);
                }
                let ticket = Ticket::new(item.clone(), user.clone(), number);
                with_store_timeout("leave", self.store.leave(&ticket, now)).await?;
                line.join(user.clone()).await
            }
            joined => Ok(joined),
        }
    }

    /// Returns a line and its cached copy, if both are available without waiting.
    fn cached_line(&self, item: &ItemId) -> Option<(Arc<LineHandle>, Arc<CachedLine>)> {
        let line = self.lines.get(item)?;
        let cached = line.cached()?;
        Some((line, cached))
    }

    async fn load_line(&self, item: &ItemId) -> Result<(Arc<LineHandle>, Arc<CachedLine>)> {
        let line = self.lines.get_or_load(item).await?;
        let cached = line.fresh().await?;
        Ok((line, cached))
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
        let Ticket { item, number, lane, .. } = ticket;
        self.lines.discard_cached_state(&item, number);
        require_known_item(left)?;
        if let Some(line) = self.lines.get(&item) {
            // The refresh makes the end visible to the next poll at this pod. The user has left
            // even if it fails.
            let _ = with_request_timeout(line.refresh()).await;
        }
        if let Some(begun) = begun {
            self.tracer.record_call(TracedCall::Leave, &item, lane, number, begun);
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
        let Ticket { item, number, lane, .. } = ticket;
        self.lines.discard_cached_state(&item, number);
        if let Some(begun) = begun {
            self.tracer.record_call(TracedCall::Complete, &item, lane, number, begun);
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
