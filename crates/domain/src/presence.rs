//! What processes say about themselves, so that an operator sees all of them from any of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{EndReason, ItemId, Millis, UserId};

/// What one process says about itself; posted in the store every few seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Presence {
    /// A scheduler.
    Scheduler {
        /// Epoch and beginning of its term, if it leads.
        term: Option<(u64, Millis)>,
        /// How long its latest tick took; none if it never led.
        last_tick_millis: Option<u64>,
        /// The latest events it published, if it leads; oldest first.
        events: Vec<Happened>,
    },
    /// A consumer.
    Consumer {
        /// How many messages of each topic it has yet to read; none while nobody knows.
        lag: BTreeMap<String, Option<u64>>,
    },
}

/// Something that happened to a ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Happened {
    /// When.
    pub at: Millis,
    /// In which line.
    pub item: ItemId,
    /// To whom.
    pub user: UserId,
    /// How the ticket ended; none if the person was let in.
    pub reason: Option<EndReason>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let happened = Happened {
            at: 7,
            item: ItemId::parse("concert").unwrap(),
            user: UserId::parse("kim").unwrap(),
            reason: Some(EndReason::Left),
        };
        for said in [
            Presence::Scheduler {
                term: Some((3, 1000)),
                last_tick_millis: None,
                events: vec![happened],
            },
            Presence::Consumer { lag: [("item.changed".to_owned(), Some(2))].into() },
        ] {
            let text = serde_json::to_string(&said).unwrap();
            assert_eq!(serde_json::from_str::<Presence>(&text).unwrap(), said, "{text}");
        }
    }
}
