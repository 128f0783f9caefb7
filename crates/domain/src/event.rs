//! Events that daegi publishes: which ticket was admitted, how each ticket ended, when a line opened and
//! closed, and what the settings of an item are. Events that it consumes are in [`inbound`].

mod control;
pub mod inbound;
mod line;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};
use uuid::Uuid;

pub use self::control::{
    ControlChanged, DrawControl, ItemRecord, LineRecord, ReadControl, RecordPosition,
};
pub use self::line::{LineClosed, LineEvent, LineOpened, PublishedDraw};
use crate::ids::NumberInLane;
use crate::{
    EndReason, ItemId, Lane, LaneName, Millis, Number, Ticket, TicketKeys, Topic, UserId, rfc3339,
};

/// The namespace of event ids. It must never change, otherwise a repeated event would get another id.
const EVENT_ID_NAMESPACE: Uuid = Uuid::from_u128(0x6461_6567_6921_4576_8e74_4964_7321_0001);

/// An event of a ticket, as the outbox stores it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TicketEvent {
    /// The ticket was admitted.
    Admitted {
        /// The user.
        user: UserId,
        /// The ticket's number.
        number: Number,
        /// When it was admitted.
        at: Millis,
        /// When the entry expires.
        expires_at: Millis,
    },
    /// The ticket ended.
    Ended {
        /// The user.
        user: UserId,
        /// The ticket's number.
        number: Number,
        /// When it ended.
        at: Millis,
        /// Why it ended.
        reason: EndReason,
    },
}

/// The body of `token.activated`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenActivated {
    /// Event id. A repeat of this event has the same id.
    pub event_id: Uuid,
    /// The item of the line.
    pub item_id: ItemId,
    /// The admitted user.
    pub user_id: UserId,
    /// The token of the ticket.
    pub token: String,
    /// The number of the ticket in its lane. A lane admits in this order; a ticket that missed its turn comes later.
    pub number: Number,
    /// The name of the ticket's lane; absent for the standard lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LaneName")]
    pub lane: Option<LaneName>,
    /// When the ticket was admitted, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub activated_at: String,
    /// When the entry expires, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: String,
}

/// The body of `token.closed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenClosed {
    /// Event id. A repeat of this event has the same id.
    pub event_id: Uuid,
    /// The item of the line.
    pub item_id: ItemId,
    /// The user of the ticket.
    pub user_id: UserId,
    /// The token of the ticket.
    pub token: String,
    /// The number of the ticket in its lane.
    pub number: Number,
    /// The name of the ticket's lane; absent for the standard lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LaneName")]
    pub lane: Option<LaneName>,
    /// Why the ticket ended.
    pub reason: EndReason,
    /// When the ticket ended, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub closed_at: String,
}

impl TicketEvent {
    /// Returns an id derived from the ticket and the kind of event, so that a repeated event has the same id.
    pub fn id(&self, item: &ItemId, lane: Lane) -> Uuid {
        let topic = match self {
            Self::Admitted { .. } => Topic::TokenActivated,
            Self::Ended { .. } => Topic::TokenClosed,
        };
        event_id(topic, item, NumberInLane(lane, self.number()))
    }

    /// Returns the user.
    pub fn user(&self) -> &UserId {
        match self {
            Self::Admitted { user, .. } | Self::Ended { user, .. } => user,
        }
    }

    /// Returns the ticket's number.
    pub fn number(&self) -> Number {
        match self {
            Self::Admitted { number, .. } | Self::Ended { number, .. } => *number,
        }
    }
}

/// Returns the id of an event: a UUID v5 of its type, the item and what is unique among such events of it.
fn event_id(topic: Topic, item: &ItemId, key: impl fmt::Display) -> Uuid {
    // A UUID v5 is a SHA-1. The implementation in `uuid` does not use the processor's SHA instructions.
    let hash =
        Sha1::new_with_prefix(EVENT_ID_NAMESPACE).chain_update(format!("{topic}\n{item}\n{key}"));
    let [id @ .., _, _, _, _]: [u8; 20] = hash.finalize().into();
    uuid::Builder::from_sha1_bytes(id).into_uuid()
}

impl TokenActivated {
    /// Returns the body for an admitted ticket of the lane with this name.
    pub fn new(
        keys: &TicketKeys,
        (ticket, lane): (Ticket, Option<LaneName>),
        id: Uuid,
        at: Millis,
        expires: Millis,
    ) -> Self {
        Self {
            event_id: id,
            token: keys.token(&ticket),
            item_id: ticket.item,
            user_id: ticket.user,
            number: ticket.number,
            lane,
            activated_at: rfc3339(at),
            expires_at: rfc3339(expires),
        }
    }
}

impl TokenClosed {
    /// Returns the body for a ticket, of the lane with this name, that ended.
    pub fn new(
        keys: &TicketKeys,
        (ticket, lane): (Ticket, Option<LaneName>),
        id: Uuid,
        at: Millis,
        reason: EndReason,
    ) -> Self {
        Self {
            event_id: id,
            token: keys.token(&ticket),
            item_id: ticket.item,
            user_id: ticket.user,
            number: ticket.number,
            lane,
            reason,
            closed_at: rfc3339(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_event_has_the_same_id_and_no_other_has() {
        let (item, other) = (ItemId::parse("a").unwrap(), ItemId::parse("b").unwrap());
        let user = UserId::parse("kim").unwrap();
        let admitted = |number, at| TicketEvent::Admitted {
            user: user.clone(),
            number: Number(number),
            at,
            expires_at: at + 1,
        };
        let ended = TicketEvent::Ended {
            user: user.clone(),
            number: Number(1),
            at: 5,
            reason: EndReason::Left,
        };
        let id = |event: &TicketEvent| event.id(&item, Lane::STANDARD);
        assert_eq!(id(&admitted(1, 5)), id(&admitted(1, 6)));
        assert_ne!(id(&admitted(1, 5)), id(&admitted(2, 5)));
        assert_ne!(id(&admitted(1, 5)), admitted(1, 5).id(&other, Lane::STANDARD));
        assert_ne!(id(&admitted(1, 5)), id(&ended));
        let in_lane = |index| admitted(1, 5).id(&item, Lane::numbered(index).unwrap());
        assert_eq!(in_lane(0), id(&admitted(1, 5)));
        assert_ne!(in_lane(1), id(&admitted(1, 5)), "numbers count per lane");
        assert_ne!(in_lane(1), in_lane(2));
        assert_ne!(in_lane(1), id(&admitted(11, 5)));
        // Consumers remember ids to skip repeats, so that the id must never change.
        let known = "61ffa54e-c301-5f48-9591-ce26990447e4";
        assert_eq!(id(&admitted(1, 5)).to_string(), known);
        assert_eq!(in_lane(2).to_string(), "ba63bf7b-e360-56bf-a6f4-57055d92a336");
    }

    #[test]
    fn only_events_of_other_lanes_name_the_lane() {
        let (keys, user) = (TicketKeys::generate(), UserId::parse("kim").unwrap());
        let ticket = Ticket::new(ItemId::parse("a").unwrap(), user, Number(1));
        let members = LaneName::parse("members").unwrap();
        for (lane, expected) in [(None, None), (Some(members), Some("members"))] {
            let ticket = (ticket.clone(), lane);
            let activated = TokenActivated::new(&keys, ticket.clone(), Uuid::nil(), 1, 2);
            let closed = TokenClosed::new(&keys, ticket, Uuid::nil(), 1, EndReason::Left);
            let bodies =
                [serde_json::to_value(&activated).unwrap(), serde_json::to_value(&closed).unwrap()];
            for body in &bodies {
                assert_eq!(body.get("lane").map(|lane| lane.as_str().unwrap()), expected);
            }
            let [first, second] = bodies;
            assert_eq!(serde_json::from_value::<TokenActivated>(first).unwrap(), activated);
            assert_eq!(serde_json::from_value::<TokenClosed>(second).unwrap(), closed);
        }
    }
}
