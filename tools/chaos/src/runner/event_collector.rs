//! Collects every event from Kafka, as an order service receives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use daegi_domain::{
    EndReason, ItemId, LineOpened, Number, Ticket, TicketKeys, TokenActivated, TokenClosed, Topic,
    Topics,
};
use daegi_kafka::record::{EPOCH, SEQUENCE};
use daegi_testkit::TopicReader;
use daegi_testkit::fleet::TICKET_SECRETS;
use daegi_testkit::topic_reader::{TopicRecord, message_count};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::recorder::{Recorder, now};
use crate::history::{Entry, EventKind, Millis, ObservedEvent, ObservedOpening, TicketNumber};

/// Collects events until it is dropped.
pub(super) struct EventCollector {
    brokers: String,
    received: Arc<[AtomicI64; TOPICS.len()]>,
    _tasks: JoinSet<()>,
}

/// Limit for receiving all events at the end of a run.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(60);

const TOPICS: [Topic; 3] = [Topic::TokenActivated, Topic::TokenClosed, Topic::LineOpened];

/// Reads all topics from the beginning.
pub(super) async fn start(
    brokers: &str,
    recorder: Arc<Recorder>,
) -> anyhow::Result<EventCollector> {
    let (received, topics) = (Arc::<[AtomicI64; TOPICS.len()]>::default(), Topics::default());
    let keys: TicketKeys = TICKET_SECRETS.parse()?;
    let mut tasks = JoinSet::new();
    for (index, topic) in TOPICS.into_iter().enumerate() {
        let reader = TopicReader::open(brokers, topics.name(topic)).await?;
        let (recorder, received, keys) = (recorder.clone(), received.clone(), keys.clone());
        tasks.spawn(async move {
            loop {
                let found = reader.next().await;
                if let Some(entry) = observe(topic, &found, &keys) {
                    recorder.write(&entry);
                }
                received[index].fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    Ok(EventCollector { brokers: brokers.to_owned(), received, _tasks: tasks })
}

impl EventCollector {
    /// Waits until every event in all topics was received.
    pub(super) async fn wait_for_all(&self) -> anyhow::Result<()> {
        let (topics, deadline) = (Topics::default(), Instant::now() + RECEIVE_TIMEOUT);
        for (index, topic) in TOPICS.into_iter().enumerate() {
            let all = message_count(&self.brokers, topics.name(topic)).await?;
            while self.received[index].load(Ordering::Relaxed) < all {
                anyhow::ensure!(
                    Instant::now() < deadline,
                    "not all events of {topic:?} were received"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }
}

/// The common fields of both events.
struct EventBody {
    ticket: Ticket,
    id: String,
    at: String,
    expires: Option<String>,
    reason: Option<EndReason>,
}

/// Returns `None` for a message that is not an event of daegi.
fn observe(topic: Topic, found: &TopicRecord, keys: &TicketKeys) -> Option<Entry> {
    let (event, body) = match topic {
        Topic::LineOpened => return observe_opening(found).map(Entry::Opened),
        Topic::TokenActivated => (EventKind::Activated, activated(parse(found)?, keys)?),
        _ => (EventKind::Closed, closed(parse(found)?, keys)?),
    };
    let header = |name| found.headers.get(name);
    let expires = body.expires.as_deref().map(millis);
    let reason = body.reason.map(serde_json::to_value).transpose().ok()?;
    Some(Entry::Event(ObservedEvent {
        event,
        id: body.id,
        item: body.ticket.item.to_string(),
        user: body.ticket.user.to_string(),
        number: TicketNumber::from(&body.ticket),
        at: millis(&body.at)?,
        expires: expires.flatten(),
        reason: reason.and_then(|reason| reason.as_str().map(ToOwned::to_owned)),
        epoch: header(EPOCH).and_then(|epoch| epoch.parse().ok()),
        sequence: header(SEQUENCE)?.clone(),
        partition: found.partition,
        offset: found.offset,
        received_at: now(),
    }))
}

fn observe_opening(found: &TopicRecord) -> Option<ObservedOpening> {
    let event: LineOpened = parse(found)?;
    let draw = event.draw.map(serde_json::to_value).transpose().ok()?;
    Some(ObservedOpening {
        id: event.event_id.to_string(),
        item: event.item_id.to_string(),
        at: millis(&event.opened_at)?,
        draw: draw.map(serde_json::from_value).transpose().ok()?,
        epoch: found.headers.get(EPOCH).and_then(|epoch| epoch.parse().ok()),
        sequence: found.headers.get(SEQUENCE)?.clone(),
        received_at: now(),
    })
}

fn parse<T: DeserializeOwned>(found: &TopicRecord) -> Option<T> {
    serde_json::from_slice(found.body.as_deref()?).ok()
}

/// The token names the lane; `None` if it is not one of the fleet, or contradicts the number.
fn activated(event: TokenActivated, keys: &TicketKeys) -> Option<EventBody> {
    let ticket = ticket(keys, &event.item_id, &event.token, event.number)?;
    let (id, expires) = (event.event_id.to_string(), Some(event.expires_at));
    Some(EventBody { ticket, id, at: event.activated_at, expires, reason: None })
}

fn closed(event: TokenClosed, keys: &TicketKeys) -> Option<EventBody> {
    let ticket = ticket(keys, &event.item_id, &event.token, event.number)?;
    let (id, reason) = (event.event_id.to_string(), Some(event.reason));
    Some(EventBody { ticket, id, at: event.closed_at, expires: None, reason })
}

fn ticket(keys: &TicketKeys, item: &ItemId, token: &str, number: Number) -> Option<Ticket> {
    keys.verify(item, token).ok().filter(|ticket| ticket.number == number)
}

fn millis(text: &str) -> Option<Millis> {
    let since = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Millis::try_from(since.as_millis()).ok()
}
