//! The processes of a deployment, from their heartbeats.

use std::collections::BTreeMap;

use daegi_domain::{EndReason, Heartbeat, ItemId, RecentEvent, UserId, rfc3339};
use daegi_store::HeartbeatRecord;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// All processes with a recent heartbeat.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Processes {
    schedulers: Vec<SchedulerView>,
    consumers: Vec<ConsumerView>,
    /// The latest events the leader published, newest first.
    pub(super) events: Vec<EventView>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Scheduler")]
struct SchedulerView {
    replica: String,
    leading: bool,
    epoch: Option<u64>,
    /// RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    since: Option<String>,
    last_tick_millis: Option<u64>,
    /// When the heartbeat was sent, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    said_at: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Consumer")]
struct ConsumerView {
    replica: String,
    /// Messages of each topic that were not read yet; null while unknown.
    lag: BTreeMap<String, Option<u64>>,
    /// When the heartbeat was sent, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    said_at: String,
}

/// An event of a ticket.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Event")]
pub(super) struct EventView {
    /// RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    at: String,
    pub(super) item_id: ItemId,
    user_id: UserId,
    /// How the ticket ended; null for an admission.
    reason: Option<EndReason>,
}

/// Events of one line for the published schemas: an admission and an expiry.
pub(super) fn events_example() -> Value {
    json!([
        {
            "at": "2026-11-20T19:30:00.000Z",
            "itemId": "concert",
            "userId": "lee",
            "reason": null,
        },
        {
            "at": "2026-11-20T19:29:58.000Z",
            "itemId": "concert",
            "userId": "kim",
            "reason": "EXPIRED",
        },
    ])
}

impl Processes {
    /// Parses heartbeats. Those of an unknown format, from another version, are ignored.
    pub(super) fn from_heartbeats(records: Vec<HeartbeatRecord>) -> Self {
        let mut processes = Self::default();
        for HeartbeatRecord { process, payload, at } in records {
            let said_at = rfc3339(at);
            match serde_json::from_str(&payload) {
                Ok(Heartbeat::Scheduler { term, last_tick_millis, events }) => {
                    processes.events.extend(events.into_iter().rev().map(EventView::from));
                    processes.schedulers.push(SchedulerView {
                        replica: process,
                        leading: term.is_some(),
                        epoch: term.map(|(epoch, _)| epoch),
                        since: term.map(|(_, since)| rfc3339(since)),
                        last_tick_millis,
                        said_at,
                    });
                }
                Ok(Heartbeat::Consumer { lag }) => {
                    processes.consumers.push(ConsumerView { replica: process, lag, said_at });
                }
                Err(error) => {
                    tracing::debug!(%error, process, "heartbeat of unknown format ignored")
                }
            }
        }
        processes
    }
}

impl From<RecentEvent> for EventView {
    fn from(event: RecentEvent) -> Self {
        Self {
            at: rfc3339(event.at),
            item_id: event.item,
            user_id: event.user,
            reason: event.reason,
        }
    }
}
