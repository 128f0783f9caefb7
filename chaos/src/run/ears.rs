//! The order service's ears: every event, as it is heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use daegi_domain::{TokenActivated, TokenClosed, Topic, Topics};
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
    pub(super) async fn heard_all(&self, deadline: Instant) -> anyhow::Result<()> {
        let topics = Topics::default();
        for (place, topic) in TOPICS.into_iter().enumerate() {
            let all = written(&self.brokers, topics.name(topic)).await?;
            while self.heard[place].load(Ordering::Relaxed) < all && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }
}

/// None for what is no event of ours, which nobody writes here.
fn told(topic: Topic, found: &Found) -> Option<Told> {
    let told = match topic {
        Topic::TokenActivated => activated(body(found)?)?,
        _ => closed(body(found)?)?,
    };
    let header = |name| found.headers.get(name);
    Some(Told {
        epoch: header(EPOCH).and_then(|epoch| epoch.parse().ok()),
        sequence: header(SEQUENCE)?.clone(),
        partition: found.partition,
        offset: found.offset,
        heard: now(),
        ..told
    })
}

fn body<T: DeserializeOwned>(found: &Found) -> Option<T> {
    serde_json::from_slice(found.body.as_deref()?).ok()
}

fn activated(event: TokenActivated) -> Option<Told> {
    Some(Told {
        event: Kind::Activated,
        id: event.event_id.to_string(),
        item: event.item_id.to_string(),
        user: event.user_id.to_string(),
        number: event.number.0,
        at: moment(&event.activated_at)?,
        expires: Some(moment(&event.expires_at)?),
        reason: None,
        ..unheard()
    })
}

fn closed(event: TokenClosed) -> Option<Told> {
    let reason = serde_json::to_value(event.reason).ok()?;
    Some(Told {
        event: Kind::Closed,
        id: event.event_id.to_string(),
        item: event.item_id.to_string(),
        user: event.user_id.to_string(),
        number: event.number.0,
        at: moment(&event.closed_at)?,
        expires: None,
        reason: reason.as_str().map(ToOwned::to_owned),
        ..unheard()
    })
}

/// What the message around an event will say.
fn unheard() -> Told {
    Told {
        event: Kind::Activated,
        id: String::new(),
        item: String::new(),
        user: String::new(),
        number: 0,
        at: 0,
        expires: None,
        reason: None,
        epoch: None,
        sequence: String::new(),
        partition: 0,
        offset: 0,
        heard: 0,
    }
}

fn moment(text: &str) -> Option<Millis> {
    let since = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Millis::try_from(since.as_millis()).ok()
}
