//! Handing a ticket over to another device of its user.
//!
//! Both devices then hold the same token: the ticket does not move, and the first device can continue as well.

use daegi_domain::{HANDOVER_LIFETIME_MS, ItemId};

use super::{TicketService, UnverifiedToken};
use crate::access::Client;
use crate::error::{Error, Result};
use crate::timeouts::with_store_timeout;
use crate::wire::{Handover, HandoverUse, Ticket};

impl TicketService {
    /// Returns a code that hands the ticket over. Needs only the keys.
    pub(crate) fn issue_handover(&self, presented: &UnverifiedToken) -> Result<Handover> {
        let ticket = self.verify_token(presented)?;
        let issued_at = self.clock.now_ms();
        let code = self.ticket_keys.handover_code(&ticket, issued_at);
        Ok(Handover { code, issued_at, expires_in_ms: HANDOVER_LIFETIME_MS })
    }

    /// Returns which codes of the ticket were used.
    pub(crate) async fn handover_use(&self, presented: &UnverifiedToken) -> Result<HandoverUse> {
        let ticket = self.verify_token(presented)?;
        let used = self.store.used_handover(&ticket, self.clock.now_ms());
        Ok(HandoverUse { used_up_to: with_store_timeout("used_handover", used).await? })
    }

    /// Uses a code: returns the ticket, with its token.
    ///
    /// # Errors
    /// If the code is refused. A ticket that ended meanwhile is returned with its status.
    pub(crate) async fn take_over(
        &self,
        item: &ItemId,
        code: &str,
        client: Client,
    ) -> Result<Ticket> {
        let now = self.clock.now_ms();
        let (ticket, issued_at) = self.ticket_keys.verify_handover(item, code, now)?;
        let used = self.store.use_handover(&ticket, issued_at, now);
        if !with_store_timeout("use_handover", used).await? {
            return Err(Error::HandoverUsed);
        }
        let token = self.ticket_keys.token(&ticket);
        self.poll(
            UnverifiedToken { item: ticket.item, token, user: None, client },
            std::time::Duration::ZERO,
        )
        .await
    }
}
