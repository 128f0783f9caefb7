use daegi_domain::{ItemId, Number, PassError, Ticket, TokenError, UserId};
use daegi_store::{Place, Reentry, Standing};

use super::Room;
use super::answer::Found;
use crate::error::{Error, Result};
use crate::patience::in_time;
use crate::wire::{Reason, Verdict};

/// What a service presents to learn whether a person may be inside.
pub(crate) enum Proof {
    Token(String),
    Pass(String),
}

type Read = (UserId, Number, Option<Reentry>);

impl Room {
    /// Whether the holder of a token or a pass may be inside now. A genuine pass is not enough:
    /// the entry may have been completed or given back since it was signed.
    pub(crate) async fn verify(&self, item: &ItemId, proof: Proof) -> Result<Verdict> {
        let (user, number, entry) = match self.read(item, &proof) {
            Ok(holder) => holder,
            Err(reason) => return Ok(Verdict::refused(reason)),
        };
        let now = self.clock.now_ms();
        let ticket = Ticket { item: item.clone(), user, number };
        let standing = match (self.ask_store(&ticket).await?, entry) {
            // Nobody who waits has a pass, unless the store lost that they were let in.
            (Standing::At(Place::Waiting { .. }), Some(entry)) => {
                in_time("reenter", self.store.reenter(item, &entry, now)).await?
            }
            (standing, _) => standing,
        };
        Ok(match Found::told(standing, now) {
            Ok(Found::Entered { expires_at, .. }) => Verdict::valid(ticket.user, expires_at),
            Ok(Found::Waiting { .. }) => Verdict::refused(Reason::Waiting),
            Ok(Found::Ended(reason)) => Verdict::refused(reason.into()),
            Err(Error::ItemNotFound) => Verdict::refused(Reason::ItemNotFound),
            Err(Error::Restarted) => Verdict::refused(Reason::LineRestarted),
            Err(error) => return Err(error),
        })
    }

    /// Signs and checks passes that nobody is given.
    pub(crate) fn rehearse_passes(&self, item: &ItemId, times: usize) {
        let now = self.clock.now_ms();
        for number in 0..times as u64 {
            let Ok(user) = UserId::parse("warm-up") else {
                return;
            };
            let ticket = Ticket { item: item.clone(), user, number: Number(number) };
            let jti = self.ticket_keys.uuid(&ticket);
            let pass = self.pass_keys.pass(&ticket, jti, now, now + 60_000);
            std::hint::black_box(self.pass_keys.verify(item, &pass, now).is_ok());
        }
    }

    /// Who holds it, with which number, and the entry that a pass is proof of.
    fn read(&self, item: &ItemId, proof: &Proof) -> std::result::Result<Read, Reason> {
        let now = self.clock.now_ms();
        match proof {
            Proof::Token(token) => {
                let ticket = self.ticket_keys.verify_at(item, token, now).map_err(Reason::from)?;
                let Ticket { user, number, .. } = ticket;
                Ok((user, number, None))
            }
            Proof::Pass(pass) => {
                let claims = self.pass_keys.verify(item, pass, now)?;
                let (user, number) = (claims.sub, claims.num);
                if self.ticket_keys.is_too_old(number, now) {
                    return Err(TokenError::TooOld.into());
                }
                let (at, expires_at) = (claims.iat * 1000, claims.exp * 1000);
                let entry = Reentry { user: user.clone(), number, at, expires_at };
                Ok((user, number, Some(entry)))
            }
        }
    }
}

impl From<TokenError> for Reason {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Invalid => Self::InvalidToken,
            TokenError::OtherItem => Self::TokenMismatch,
            TokenError::TooOld => Self::LineRestarted,
        }
    }
}

impl From<PassError> for Reason {
    fn from(error: PassError) -> Self {
        match error {
            PassError::Invalid => Self::InvalidToken,
            PassError::OtherItem => Self::TokenMismatch,
            PassError::Expired => Self::Expired,
        }
    }
}
