//! Notes in the store on how far a topic was read. They are lost with the data that they vouch for.

use daegi_domain::Topic;
use daegi_kafka::{Missing, Standing};
use daegi_store::{Catalogue, SharedStore};

use crate::error::missing;

/// The notes on one topic.
#[derive(Debug)]
pub(crate) struct ReplayNotes {
    store: SharedStore,
    topic: Topic,
}

impl ReplayNotes {
    pub(crate) fn new(store: SharedStore, topic: Topic) -> Self {
        Self { store, topic }
    }

    pub(crate) async fn standing(&self, partition: i32) -> Result<Standing, Missing> {
        let known = self.store.catalogue(&self.log(partition)).await;
        Ok(match known.map_err(|error| missing(&error))? {
            Catalogue::Unread => Standing::Lost,
            Catalogue::Reading => Standing::Partly,
            Catalogue::Read => Standing::Whole,
        })
    }

    pub(crate) async fn begin(&self, partition: i32) -> Result<(), Missing> {
        let begun = self.store.begin_catalogue(&self.log(partition)).await;
        begun.map_err(|error| missing(&error))
    }

    pub(crate) async fn end(&self, partition: i32) -> Result<(), Missing> {
        let noted = self.store.end_catalogue(&self.log(partition)).await;
        if noted.map_err(|error| missing(&error))? {
            tracing::debug!(topic = %self.topic, partition, "read to its end");
        }
        Ok(())
    }

    fn log(&self, partition: i32) -> String {
        format!("{}/{partition}", self.topic)
    }
}
