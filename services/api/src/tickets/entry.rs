//! Verification of entries for order services.

use daegi_domain::{ItemId, Number, PassError, Ticket, TokenError, UserId};
use daegi_store::{EntryProof, LiveState, TicketState};

use super::TicketService;
use super::poll::TicketView;
use crate::access::{BlockedCall, Client};
use crate::error::{Error, Result};
use crate::timeouts::with_store_timeout;
use crate::wire::{Reason, Verdict};

/// What a service sends to identify an entry.
pub(crate) enum Credential {
    Token(String),
    Pass(String),
}

/// A ticket and, for a pass, the proof of its entry.
type VerifiedCredential = (Ticket, Option<EntryProof>);

impl TicketService {
    /// Returns whether a token or a pass belongs to a live entry. A valid pass is not sufficient: the
    /// entry may have ended since it was signed.
    pub(crate) async fn verify(&self, item: &ItemId, credential: Credential) -> Result<Verdict> {
        let (ticket, entry) = match self.verify_credential(item, &credential) {
            Ok(verified) => verified,
            Err(reason) => return Ok(Verdict::refused(reason)),
        };
        // Only a rule for the user can apply: the request comes from the service. A ticket of a blocked user ends as left.
        if self.access.require_ticket(&ticket, &Client::default(), BlockedCall::Verify).is_err() {
            return Ok(Verdict::refused(Reason::Left));
        }
        let now = self.clock.now_ms();
        let state = match (self.resolve_one(&ticket).await?, entry) {
            // A waiting ticket with a pass: the store lost its admission.
            (TicketState::Live(LiveState::Waiting { .. }), Some(entry)) => {
                with_store_timeout("reenter", self.store.restore_entry(&entry, now)).await?
            }
            (state, _) => state,
        };
        Ok(match TicketView::from_state(state, now) {
            Ok(TicketView::Entered { expires_at, .. }) => Verdict::valid(ticket.user, expires_at),
            Ok(TicketView::Waiting { .. }) => Verdict::refused(Reason::Waiting),
            Ok(TicketView::Ended(reason)) => Verdict::refused(reason.into()),
            Err(Error::ItemNotFound) => Verdict::refused(Reason::ItemNotFound),
            Err(Error::Restarted) => Verdict::refused(Reason::LineRestarted),
            Err(error) => return Err(error),
        })
    }

    /// Signs and verifies passes for the warm-up. No client receives them.
    pub(crate) fn warm_up_passes(&self, item: &ItemId, times: usize) {
        let now = self.clock.now_ms();
        for number in 0..times as u64 {
            let Ok(user) = UserId::parse("warm-up") else {
                return;
            };
            let ticket = Ticket::new(item.clone(), user, Number(number));
            let jti = self.ticket_keys.uuid(&ticket);
            let pass = self.pass_keys.pass((&ticket, None), jti, now, now + 60_000);
            std::hint::black_box(self.pass_keys.verify(item, &pass, now).is_ok());
        }
    }

    /// Verifies a credential offline.
    fn verify_credential(
        &self,
        item: &ItemId,
        credential: &Credential,
    ) -> std::result::Result<VerifiedCredential, Reason> {
        let now = self.clock.now_ms();
        match credential {
            Credential::Token(token) => {
                let ticket = self.ticket_keys.verify_at(item, token, now).map_err(Reason::from)?;
                Ok((ticket, None))
            }
            Credential::Pass(pass) => {
                let claims = self.pass_keys.verify(item, pass, now)?;
                let ticket = claims.ticket();
                if self.ticket_keys.is_too_old(ticket.number, now) {
                    return Err(TokenError::TooOld.into());
                }
                let (at, expires_at) = (claims.iat * 1000, claims.exp * 1000);
                let entry = EntryProof { ticket: ticket.clone(), at, expires_at };
                Ok((ticket, Some(entry)))
            }
        }
    }
}

impl From<TokenError> for Reason {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Invalid => Self::InvalidToken,
            TokenError::WrongItem => Self::TokenMismatch,
            TokenError::TooOld => Self::LineRestarted,
        }
    }
}

impl From<PassError> for Reason {
    fn from(error: PassError) -> Self {
        match error {
            PassError::Invalid => Self::InvalidToken,
            PassError::WrongItem => Self::TokenMismatch,
            PassError::Expired => Self::Expired,
        }
    }
}
