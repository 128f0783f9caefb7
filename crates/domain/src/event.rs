//! What the rest of the company is told: who was let in, and how each ticket ended. What it tells
//! us is in [`inbound`].

pub mod inbound;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};
use uuid::Uuid;

use crate::{EndReason, ItemId, Millis, Number, Ticket, TicketKeys, Topic, UserId, rfc3339};

/// The namespace of event ids; fixed for ever, or repeats would look like news.
const EVENT_IDS: Uuid = Uuid::from_u128(0x6461_6567_6921_4576_8e74_4964_7321_0001);

/// One thing that happened to a ticket, as the outbox keeps it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineEvent {
    /// A person was let in.
    Activated {
        /// Who.
        user: UserId,
        /// Their number.
        number: Number,
        /// When.
        at: Millis,
        /// When the entry ends by itself.
        expires_at: Millis,
    },
    /// A ticket ended.
    Closed {
        /// Whose.
        user: UserId,
        /// Its number.
        number: Number,
        /// When.
        at: Millis,
        /// How.
        reason: EndReason,
    },
}

/// The body of `token.activated`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenActivated {
    /// The same for every repeat of this event.
    pub event_id: Uuid,
    /// The line.
    pub item_id: ItemId,
    /// Who was let in.
    pub user_id: UserId,
    /// Their token.
    pub token: String,
    /// Their number; grows in the order of admission from the line.
    pub number: Number,
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub activated_at: String,
    /// When the entry ends by itself, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: String,
}

/// The body of `token.closed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenClosed {
    /// The same for every repeat of this event.
    pub event_id: Uuid,
    /// The line.
    pub item_id: ItemId,
    /// Whose ticket ended.
    pub user_id: UserId,
    /// Their token.
    pub token: String,
    /// Its number.
    pub number: Number,
    /// How it ended.
    pub reason: EndReason,
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub closed_at: String,
}

impl LineEvent {
    /// An id derived from what happened to which ticket, so that a repeat has the same one.
    pub fn id(&self, item: &ItemId) -> Uuid {
        let (kind, number) = match self {
            Self::Activated { number, .. } => (Topic::TokenActivated, number),
            Self::Closed { number, .. } => (Topic::TokenClosed, number),
        };
        // A UUID v5 is a SHA-1; the one within `uuid` does without the processor's instructions.
        let what =
            Sha1::new_with_prefix(EVENT_IDS).chain_update(format!("{kind}\n{item}\n{number}"));
        let [id @ .., _, _, _, _]: [u8; 20] = what.finalize().into();
        uuid::Builder::from_sha1_bytes(id).into_uuid()
    }

    /// The person.
    pub fn user(&self) -> &UserId {
        match self {
            Self::Activated { user, .. } | Self::Closed { user, .. } => user,
        }
    }

    /// The ticket's number.
    pub fn number(&self) -> Number {
        match self {
            Self::Activated { number, .. } | Self::Closed { number, .. } => *number,
        }
    }
}

impl TokenActivated {
    /// The body for a person who was let in.
    pub fn new(keys: &TicketKeys, ticket: Ticket, id: Uuid, at: Millis, expires: Millis) -> Self {
        Self {
            event_id: id,
            token: keys.token(&ticket),
            item_id: ticket.item,
            user_id: ticket.user,
            number: ticket.number,
            activated_at: rfc3339(at),
            expires_at: rfc3339(expires),
        }
    }
}

impl TokenClosed {
    /// The body for a ticket that ended.
    pub fn new(keys: &TicketKeys, ticket: Ticket, id: Uuid, at: Millis, reason: EndReason) -> Self {
        Self {
            event_id: id,
            token: keys.token(&ticket),
            item_id: ticket.item,
            user_id: ticket.user,
            number: ticket.number,
            reason,
            closed_at: rfc3339(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_has_the_same_id_and_nothing_else_does() {
        let (item, other) = (ItemId::parse("a").unwrap(), ItemId::parse("b").unwrap());
        let user = UserId::parse("kim").unwrap();
        let activated = |number, at| LineEvent::Activated {
            user: user.clone(),
            number: Number(number),
            at,
            expires_at: at + 1,
        };
        let closed = LineEvent::Closed {
            user: user.clone(),
            number: Number(1),
            at: 5,
            reason: EndReason::Left,
        };
        assert_eq!(activated(1, 5).id(&item), activated(1, 6).id(&item));
        assert_ne!(activated(1, 5).id(&item), activated(2, 5).id(&item));
        assert_ne!(activated(1, 5).id(&item), activated(1, 5).id(&other));
        assert_ne!(activated(1, 5).id(&item), closed.id(&item));
        // Known to whoever has heard it: it must not change with the way it is computed.
        let known = "61ffa54e-c301-5f48-9591-ce26990447e4";
        assert_eq!(activated(1, 5).id(&item).to_string(), known);
    }
}
