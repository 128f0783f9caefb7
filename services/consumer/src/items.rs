//! What product services say: items come, change and go.

use std::collections::HashMap;

use daegi_domain::{ItemChanged, ItemId, ItemNews, LogPosition, Said, Topic};
use daegi_kafka::{Effect, Halt, Incoming, Missing, Poison, Standing};
use daegi_runtime::Clock;
use daegi_store::SharedStore;

use crate::ConsumerDeps;
use crate::error::{Refusal, missing, read};
use crate::replay::ReplayNotes;

/// The header of a tombstone that says which version took the item out.
const VERSION: &str = "version";

/// Keeps the store's items as product services say they are.
#[derive(Debug)]
pub struct Items {
    store: SharedStore,
    clock: Clock,
    notes: ReplayNotes,
}

impl Items {
    /// Items of this store.
    #[must_use]
    pub fn new(deps: &ConsumerDeps) -> Self {
        let notes = ReplayNotes::new(deps.store.clone(), Topic::ItemChanged);
        Self { store: deps.store.clone(), clock: deps.clock.clone(), notes }
    }
}

impl Effect for Items {
    const TOPIC: Topic = Topic::ItemChanged;

    type Meaning = ItemNews;

    fn read(&self, message: &Incoming<'_>) -> Result<ItemNews, Poison> {
        Ok(news(message)?)
    }

    /// An older version than the stored one changes nothing; that is an effect, too.
    async fn apply(&self, news: &[ItemNews]) -> Result<(), Halt> {
        let applied = self.store.apply_news(&newest(news), self.clock.now_ms()).await;
        applied.map(drop).map_err(|error| Halt { done: 0, missing: missing(&error) })
    }

    async fn standing(&self, partition: i32) -> Result<Standing, Missing> {
        self.notes.standing(partition).await
    }

    async fn begin(&self, partition: i32) -> Result<(), Missing> {
        self.notes.begin(partition).await
    }

    async fn end(&self, partition: i32) -> Result<(), Missing> {
        self.notes.end(partition).await
    }
}

/// Of the changes of an item that follow each other without a removal only the newest counts, so
/// the others need not trouble the store: during a sale that is nearly all of them.
fn newest(news: &[ItemNews]) -> Vec<ItemNews> {
    let mut counts = vec![true; news.len()];
    let mut last: HashMap<&ItemId, (usize, Option<u64>)> = HashMap::new();
    for (index, one) in news.iter().enumerate() {
        match &one.said {
            Said::Gone { id, .. } => {
                last.remove(id);
            }
            Said::Changed(change) => match last.get_mut(&change.id) {
                Some((before, version)) if change.version > *version => {
                    counts[*before] = false;
                    (*before, *version) = (index, change.version);
                }
                Some(_) => counts[index] = false,
                None => {
                    last.insert(&change.id, (index, change.version));
                }
            },
        }
    }
    news.iter().zip(counts).filter(|(_, counts)| *counts).map(|(news, _)| news.clone()).collect()
}

fn news(message: &Incoming<'_>) -> Result<ItemNews, Refusal> {
    let said = match message.body {
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
fn gone(message: &Incoming<'_>) -> Result<Said, Refusal> {
    let key = message.key.and_then(|key| std::str::from_utf8(key).ok());
    let id = ItemId::parse(key.ok_or(Refusal::NoKey)?)?;
    let version = match message.header(VERSION) {
        Some(text) => Some(text.parse().map_err(|_| Refusal::Version)?),
        None => None,
    };
    Ok(Said::Gone { id, version })
}

#[cfg(test)]
mod tests {
    use daegi_domain::ItemName;

    use super::*;

    fn changed(id: &str, version: u64) -> Said {
        Said::Changed(daegi_domain::ItemChange {
            id: ItemId::parse(id).unwrap(),
            name: ItemName::parse("Friday 8 pm").unwrap(),
            stock: 1,
            enabled: true,
            version: Some(version),
            policy: None,
        })
    }

    #[test]
    fn only_the_newest_change_before_a_removal_counts() {
        let gone = || Said::Gone { id: ItemId::parse("a").unwrap(), version: None };
        let said = [
            changed("a", 1), // older than the next
            changed("a", 3),
            changed("b", 7),
            changed("a", 2), // older than the last
            gone(),
            changed("a", 3), // whether it counts is for the store to say
            changed("b", 7), // a repeat
        ];
        let at = |offset| LogPosition { offset, at: 0 };
        let news = said.into_iter().zip(0..).map(|(said, n)| ItemNews { said, read: at(n) });
        let news: Vec<_> = news.collect();
        let offsets: Vec<_> = newest(&news).iter().map(|news| news.read.offset).collect();
        assert_eq!(offsets, [1, 2, 4, 5]);
    }
}
