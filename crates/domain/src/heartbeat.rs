//! Heartbeats of processes, so that the console of any scheduler shows all of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{EndReason, ItemId, Millis, UserId};

/// The heartbeat of one process, written to the store every few seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Heartbeat {
    /// A scheduler.
    Scheduler {
        /// Epoch and start of its term, if it leads.
        term: Option<(u64, Millis)>,
        /// How long its last tick took; `None` if it never led.
        last_tick_millis: Option<u64>,
        /// The latest events it published, if it leads; oldest first.
        events: Vec<RecentEvent>,
    },
    /// A consumer.
    Consumer {
        /// Unread messages per topic; `None` while the number is unknown.
        lag: BTreeMap<String, Option<u64>>,
    },
}

/// A published event of a ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecentEvent {
    /// When it happened.
    pub at: Millis,
    /// The line.
    pub item: ItemId,
    /// The user.
    pub user: UserId,
    /// How the ticket ended; `None` if it was admitted.
    pub reason: Option<EndReason>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_survives_serialisation() {
        let event = RecentEvent {
            at: 7,
            item: ItemId::parse("concert").unwrap(),
            user: UserId::parse("kim").unwrap(),
            reason: Some(EndReason::Left),
        };
        for heartbeat in [
            Heartbeat::Scheduler {
                term: Some((3, 1000)),
                last_tick_millis: None,
                events: vec![event],
            },
            Heartbeat::Consumer { lag: [("item.changed".to_owned(), Some(2))].into() },
        ] {
            let text = serde_json::to_string(&heartbeat).unwrap();
            assert_eq!(serde_json::from_str::<Heartbeat>(&text).unwrap(), heartbeat, "{text}");
        }
    }
}
