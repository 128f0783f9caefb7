use std::sync::Arc;

use daegi_domain::{EndReason, ItemId, PassError, Ticket, TokenError, UserId};
use daegi_runtime::traces::{Begun, Call};
use daegi_store::{Closing, Joined};

use super::answer::Found;
use super::{Presented, Proof, Room};
use crate::error::{Error, Result};
use crate::lines::{LineView, View};
use crate::patience::{in_a_second, in_time};
use crate::wire;

impl Room {
    /// Takes a place in the line, or finds the one the person has. Says whether it is new. Whoever
    /// presents their token has that place even if the store lost it.
    pub(crate) async fn join(
        &self,
        item: &ItemId,
        user: UserId,
        token: Option<&str>,
        begun: Option<&Begun>,
    ) -> Result<(bool, wire::Ticket)> {
        // A token that is not good any more, or too old, is no hindrance to joining.
        let now = self.clock.now_ms();
        let held = token.and_then(|token| self.ticket_keys.verify_at(item, token, now).ok());
        if let Some(ticket) = held.filter(|ticket| ticket.user == user) {
            Box::pin(self.remember(&ticket)).await?;
        }
        let joined = self.join_line(item, user, begun).await;
        if !item.is_reserved() {
            self.meters.joined(joined.as_ref().map(|(new, _)| *new));
        }
        joined
    }

    async fn join_line(
        &self,
        item: &ItemId,
        user: UserId,
        begun: Option<&Begun>,
    ) -> Result<(bool, wire::Ticket)> {
        let (line, view) = match self.at_hand(item) {
            Some(known) => known,
            // In a box, like everything that few joins need: all would carry it otherwise.
            None => Box::pin(in_a_second(self.learn(item))).await?,
        };
        match self.join_afresh(&line, item, &user).await? {
            Joined::Refused(refusal) => Err(refusal.into()),
            Joined::At { number, new, place } => {
                let ticket = Ticket { item: item.clone(), user, number };
                let token = self.ticket_keys.token(&ticket);
                let found = Found::of(place, self.clock.now_ms());
                let answer = self.ticket_json(&ticket, token, Some(&view), found);
                // Whoever joins again has a ticket with a trace that began before.
                if let Some(begun) = begun.filter(|_| new) {
                    self.traces.answered(Call::Join, item, number, begun);
                }
                Ok((new, answer))
            }
        }
    }

    /// Joins one user. A ticket that the user has already and that is too old is given up first:
    /// otherwise the user would get a token that is refused everywhere.
    async fn join_afresh(&self, line: &LineView, item: &ItemId, user: &UserId) -> Result<Joined> {
        let joined = line.join(user.clone()).await?;
        match joined {
            Joined::At { number, new: false, .. } => {
                let now = self.clock.now_ms();
                if !self.ticket_keys.is_too_old(number, now) {
                    return Ok(joined);
                }
                in_time("leave", self.store.leave(item, user, number, now)).await?;
                line.join(user.clone()).await
            }
            joined => Ok(joined),
        }
    }

    /// A line and what is known of it, without waiting.
    fn at_hand(&self, item: &ItemId) -> Option<(Arc<LineView>, Arc<View>)> {
        let line = self.lines.known(item)?;
        let view = line.at_hand()?;
        Some((line, view))
    }

    async fn learn(&self, item: &ItemId) -> Result<(Arc<LineView>, Arc<View>)> {
        let line = self.lines.view(item).await?;
        let view = line.fresh().await?;
        Ok((line, view))
    }

    /// Puts a person back whom the store lost, so that joining finds them. Anything else that may
    /// have become of the ticket is no hindrance to joining.
    async fn remember(&self, ticket: &Ticket) -> Result<()> {
        match self.line_of(ticket).await {
            // Joining says that there is no such item.
            Err(Error::ItemRemoved) => Ok(()),
            line => in_a_second(line?.find(ticket)).await.map(drop),
        }
    }

    /// Leaves the line or gives the entry back. Leaving twice is leaving.
    pub(crate) async fn leave(&self, presented: &Presented, begun: Option<&Begun>) -> Result<()> {
        let Ticket { item, user, number } = self.believe(presented)?;
        let now = self.clock.now_ms();
        let left = in_time("leave", self.store.leave(&item, &user, number, now)).await?;
        self.lines.forget_answer(&item, number);
        unless_forgotten(left)?;
        if let Some(line) = self.lines.known(&item) {
            // So that the person's next poll at this pod knows. If it fails, they have left anyway.
            let _ = in_a_second(line.refreshed()).await;
        }
        if let Some(begun) = begun {
            self.traces.answered(Call::Leave, &item, number, begun);
        }
        Ok(())
    }

    /// The order was placed: ends the entry. Says whether this call did. An expired pass is of an
    /// entry that has ended.
    pub(crate) async fn complete(
        &self,
        item: ItemId,
        proof: Proof,
        begun: Option<&Begun>,
    ) -> Result<bool> {
        let now = self.clock.now_ms();
        let (user, number) = match proof {
            Proof::Token(token) => {
                let ticket = self.ticket_keys.verify_at(&item, &token, now)?;
                (ticket.user, ticket.number)
            }
            Proof::Pass(pass) => match self.pass_keys.verify(&item, &pass, now) {
                Ok(claims) if self.ticket_keys.is_too_old(claims.num, now) => {
                    return Err(TokenError::TooOld.into());
                }
                Ok(claims) => (claims.sub, claims.num),
                Err(PassError::Expired) => return Ok(false),
                Err(PassError::Invalid) => return Err(TokenError::Invalid.into()),
                Err(PassError::OtherItem) => return Err(TokenError::OtherItem.into()),
            },
        };
        let done = self.store.complete(&item, &user, number, EndReason::Completed, now);
        let released = unless_forgotten(in_time("complete", done).await?)?;
        self.lines.forget_answer(&item, number);
        if let Some(begun) = begun {
            self.traces.answered(Call::Complete, &item, number, begun);
        }
        Ok(released)
    }
}

/// Whether a call ended the ticket. A ticket of an item that was lost cannot be ended now, and would
/// live again when the item is back: whoever wants it ended is to ask again.
fn unless_forgotten(closing: Closing) -> Result<bool> {
    match closing {
        Closing::Done => Ok(true),
        Closing::Over => Ok(false),
        Closing::Forgotten => Err(Error::Forgotten),
    }
}
