//! The processes of a waiting room, by what they say about themselves.

use std::collections::BTreeMap;

use daegi_domain::{EndReason, Happened, ItemId, Presence, UserId, rfc3339};
use daegi_store::Notice;
use serde::Serialize;

/// Everybody who said something lately.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Processes {
    schedulers: Vec<SchedulerView>,
    consumers: Vec<ConsumerView>,
    /// The latest events the leader published, newest first.
    pub(super) events: Vec<EventView>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct SchedulerView {
    replica: String,
    leading: bool,
    epoch: Option<u64>,
    /// RFC 3339.
    since: Option<String>,
    last_tick_millis: Option<u64>,
    /// When it said so, RFC 3339.
    said_at: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ConsumerView {
    replica: String,
    /// Messages of each topic that are yet to be read; null while nobody knows.
    lag: BTreeMap<String, Option<u64>>,
    /// When it said so, RFC 3339.
    said_at: String,
}

/// Something that happened to a ticket.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventView {
    /// RFC 3339.
    at: String,
    pub(super) item_id: ItemId,
    user_id: UserId,
    /// How the ticket ended; null if the person was let in.
    reason: Option<EndReason>,
}

impl Processes {
    /// What a process of another version says and nobody here understands is left out.
    pub(super) fn of(notices: Vec<Notice>) -> Self {
        let mut processes = Self::default();
        for Notice { who, text, at } in notices {
            let said_at = rfc3339(at);
            match serde_json::from_str(&text) {
                Ok(Presence::Scheduler { term, last_tick_millis, events }) => {
                    processes.events.extend(events.into_iter().rev().map(EventView::from));
                    processes.schedulers.push(SchedulerView {
                        replica: who,
                        leading: term.is_some(),
                        epoch: term.map(|(epoch, _)| epoch),
                        since: term.map(|(_, since)| rfc3339(since)),
                        last_tick_millis,
                        said_at,
                    });
                }
                Ok(Presence::Consumer { lag }) => {
                    processes.consumers.push(ConsumerView { replica: who, lag, said_at });
                }
                Err(error) => tracing::debug!(%error, who, "a notice nobody understands"),
            }
        }
        processes
    }
}

impl From<Happened> for EventView {
    fn from(event: Happened) -> Self {
        Self {
            at: rfc3339(event.at),
            item_id: event.item,
            user_id: event.user,
            reason: event.reason,
        }
    }
}
