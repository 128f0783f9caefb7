//! The order service's ears: every event, as it is heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use daegi_domain::{EndReason, Ticket, TokenActivated, TokenClosed, Topic, Topics};
use daegi_kafka::record::{EPOCH, SEQUENCE};
use daegi_testkit::Reader;
use daegi_testkit::kafka_reader::{Found, written};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::recorder::{Recorder, now};
use crate::history::{Entry, Kind, Millis, Told};

/// Listens until it is dropped.
pub(super) struct Ears {
    brokers: String,
    heard: Arc<[AtomicI64; 2]>,
    _listening: JoinSet<()>,
}

/// How long it may take to hear what was written.
const PATIENCE: Duration = Duration::from_secs(60);

const TOPICS: [Topic; 2] = [Topic::TokenActivated, Topic::TokenClosed];

/// Listens to both topics.
pub(super) async fn listen(brokers: &str, recorder: Arc<Recorder>) -> anyhow::Result<Ears> {
    let (heard, topics) = (Arc::<[AtomicI64; 2]>::default(), Topics::default());
    let mut listening = JoinSet::new();
    for (place, topic) in TOPICS.into_iter().enumerate() {
        let reader = Reader::open(brokers, topics.name(topic)).await?;
        let (recorder, heard) = (recorder.clone(), heard.clone());
        listening.spawn(async move {
            loop {
                let found = reader.next().await;
                if let Some(told) = told(topic, &found) {
                    recorder.write(&Entry::Told(told));
                }
                heard[place].fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    Ok(Ears { brokers: brokers.to_owned(), heard, _listening: listening })
}

impl Ears {
    /// Waits until all that was ever written was heard.
    pub(super) async fn heard_all(&self) -> anyhow::Result<()> {
        let (topics, deadline) = (Topics::default(), Instant::now() + PATIENCE);
        for (place, topic) in TOPICS.into_iter().enumerate() {
            let all = written(&self.brokers, topics.name(topic)).await?;
            while self.heard[place].load(Ordering::Relaxed) < all {
                anyhow::ensure!(Instant::now() < deadline, "not all of {topic:?} was heard");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }
}

/// What an event says, whichever it is.
struct Said {
    ticket: Ticket,
    id: String,
    at: String,
    expires: Option<String>,
    reason: Option<EndReason>,
}

/// None for what is no event of ours, which nobody writes here.
fn told(topic: Topic, found: &Found) -> Option<Told> {
    let (event, said) = match topic {
        Topic::TokenActivated => (Kind::Activated, activated(body(found)?)),
        _ => (Kind::Closed, closed(body(found)?)),
    };
    let header = |name| found.headers.get(name);
    let expires = said.expires.as_deref().map(moment);
    let reason = said.reason.map(serde_json::to_value).transpose().ok()?;
    Some(Told {
        event,
        id: said.id,
        item: said.ticket.item.to_string(),
        user: said.ticket.user.to_string(),
        number: said.ticket.number.0,
        at: moment(&said.at)?,
        expires: expires.flatten(),
        reason: reason.and_then(|reason| reason.as_str().map(ToOwned::to_owned)),
        epoch: header(EPOCH).and_then(|epoch| epoch.parse().ok()),
        sequence: header(SEQUENCE)?.clone(),
        partition: found.partition,
        offset: found.offset,
        heard: now(),
    })
}

fn body<T: DeserializeOwned>(found: &Found) -> Option<T> {
    serde_json::from_slice(found.body.as_deref()?).ok()
}

fn activated(event: TokenActivated) -> Said {
    let TokenActivated { item_id: item, user_id: user, number, .. } = event;
    let ticket = Ticket { item, user, number };
    let (id, expires) = (event.event_id.to_string(), Some(event.expires_at));
    Said { ticket, id, at: event.activated_at, expires, reason: None }
}

fn closed(event: TokenClosed) -> Said {
    let TokenClosed { item_id: item, user_id: user, number, .. } = event;
    let ticket = Ticket { item, user, number };
    let (id, reason) = (event.event_id.to_string(), Some(event.reason));
    Said { ticket, id, at: event.closed_at, expires: None, reason }
}

fn moment(text: &str) -> Option<Millis> {
    let since = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Millis::try_from(since.as_millis()).ok()
}
