//! What each event does to the store.

use daegi_domain::{ItemChanged, ItemId, OrderClosed, Topic};
use daegi_kafka::{Effect, Failure, Incoming};
use serde::de::DeserializeOwned;

use crate::ConsumerDeps;
use crate::error::Refusal;

/// The header of a tombstone that says which version took the item out.
const VERSION: &str = "version";

/// Applies events to the store.
pub struct Effects(ConsumerDeps);

impl Effect for Effects {
    async fn apply(&self, message: &Incoming) -> Result<(), Failure> {
        let applied = match (message.topic, &message.body) {
            (Topic::ItemChanged, None) => self.item_gone(message).await,
            (Topic::ItemChanged, Some(body)) => self.item_changed(body).await,
            (Topic::OrderClosed, Some(body)) => self.order_closed(body).await,
            (Topic::OrderClosed, None) => Err(Refusal::NoBody),
            (Topic::TokenActivated | Topic::TokenClosed, _) => Err(Refusal::Outbound),
        };
        Ok(applied?)
    }
}

impl Effects {
    /// Effects on this store.
    #[must_use]
    pub fn new(deps: ConsumerDeps) -> Self {
        Self(deps)
    }

    /// An older version than the stored one changes nothing; that is an effect, too.
    async fn item_changed(&self, body: &[u8]) -> Result<(), Refusal> {
        let event: ItemChanged = read(body)?;
        let (store, now) = (&self.0.store, self.0.clock.now_ms());
        if event.is_waiting_queue_target_item {
            store.put_item(&event.change(), now).await?;
        } else {
            store.remove_item(&event.item_id, Some(event.version), now).await?;
        }
        Ok(())
    }

    /// A tombstone takes the item of its key out. With a `version` header it counts only if it
    /// is newer than what is stored, like any other change. Without one it always counts, also
    /// when an old one is read again; who brings items back should send versions.
    async fn item_gone(&self, message: &Incoming) -> Result<(), Refusal> {
        let key = message.key.as_deref().and_then(|key| std::str::from_utf8(key).ok());
        let item = ItemId::parse(key.ok_or(Refusal::NoKey)?)?;
        let version = match message.header(VERSION) {
            Some(text) => Some(text.parse().map_err(|_| Refusal::Version)?),
            None => None,
        };
        self.0.store.remove_item(&item, version, self.0.clock.now_ms()).await?;
        Ok(())
    }

    /// Frees the slot. A ticket that has ended already stays as it ended.
    async fn order_closed(&self, body: &[u8]) -> Result<(), Refusal> {
        let event: OrderClosed = read(body)?;
        let ticket = self.0.ticket_keys.verify(&event.item_id, &event.token)?;
        if ticket.user != event.user_id {
            return Err(Refusal::OtherUser);
        }
        let (reason, now) = (event.outcome.into(), self.0.clock.now_ms());
        self.0.store.complete(&ticket.item, &ticket.user, ticket.number, reason, now).await?;
        Ok(())
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    Ok(serde_json::from_slice(body)?)
}

impl std::fmt::Debug for Effects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Effects").field("store", &self.0.store).finish_non_exhaustive()
    }
}
