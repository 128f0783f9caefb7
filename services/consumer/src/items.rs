//! What product services say: items come, change and go.

use daegi_domain::{ItemChanged, ItemId, ItemNews, LogPosition, Said, Topic};
use daegi_kafka::{Effect, Failure, Halt, Incoming};
use daegi_runtime::Clock;
use daegi_store::{Catalogue, SharedStore};

use crate::ConsumerDeps;
use crate::error::{Refusal, read, understood};

/// The header of a tombstone that says which version took the item out.
const VERSION: &str = "version";

/// Keeps the store's items as product services say they are.
#[derive(Debug)]
pub struct Items {
    store: SharedStore,
    clock: Clock,
}

impl Items {
    /// Items of this store.
    #[must_use]
    pub fn new(deps: &ConsumerDeps) -> Self {
        Self { store: deps.store.clone(), clock: deps.clock.clone() }
    }
}

impl Effect for Items {
    const TOPIC: Topic = Topic::ItemChanged;

    /// An older version than the stored one changes nothing; that is an effect, too.
    async fn apply(&self, messages: &[Incoming]) -> Result<(), Halt> {
        let (news, poison) = understood(messages, news);
        let applied = self.store.apply_news(&news, self.clock.now_ms()).await;
        applied.map_err(|error| Halt { done: 0, why: Refusal::Store(error).into() })?;
        poison.map_or(Ok(()), Err)
    }

    /// A store that has not read the log to its end has lost it, or is new.
    async fn read_again(&self, partition: i32, reading: bool) -> Result<bool, Failure> {
        let log = log(partition);
        let known = self.store.catalogue(&log).await.map_err(Refusal::Store)?;
        let complete = match known {
            Catalogue::Read => true,
            Catalogue::Reading => reading,
            Catalogue::Unread => false,
        };
        if !complete {
            self.store.begin_catalogue(&log).await.map_err(Refusal::Store)?;
        }
        Ok(!complete)
    }

    /// A store that lost items on the way is found out by the next look.
    async fn read_to_end(&self, partition: i32) -> Result<(), Failure> {
        let noted = self.store.end_catalogue(&log(partition)).await.map_err(Refusal::Store)?;
        if noted {
            tracing::debug!(topic = %Self::TOPIC, partition, "read to its end");
        }
        Ok(())
    }
}

fn log(partition: i32) -> String {
    format!("{}/{partition}", Topic::ItemChanged)
}

fn news(message: &Incoming) -> Result<ItemNews, Refusal> {
    let said = match &message.body {
        Some(body) => changed(read(body)?),
        None => gone(message)?,
    };
    let offset = u64::try_from(message.offset).unwrap_or(0);
    Ok(ItemNews { said, read: LogPosition { offset, at: message.at } })
}

fn changed(event: ItemChanged) -> Said {
    if event.is_waiting_queue_target_item {
        Said::Changed(event.change())
    } else {
        Said::Gone { id: event.item_id, version: Some(event.version) }
    }
}

/// A tombstone takes the item of its key out. With a `version` header it counts only if it is
/// newer than what is stored, like any other change; without one, unless it was read before.
fn gone(message: &Incoming) -> Result<Said, Refusal> {
    let key = message.key.as_deref().and_then(|key| std::str::from_utf8(key).ok());
    let id = ItemId::parse(key.ok_or(Refusal::NoKey)?)?;
    let version = match message.header(VERSION) {
        Some(text) => Some(text.parse().map_err(|_| Refusal::Version)?),
        None => None,
    };
    Ok(Said::Gone { id, version })
}
