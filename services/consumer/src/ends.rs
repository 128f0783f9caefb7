//! Tickets that ended before the store lost data.
//!
//! A store that lost data reclaims the number of every genuine token, also of one whose ticket had
//! completed or left. daegi's own `token.closed` has the ends: the consumer reads those of all tickets that
//! may still be shown (`DAEGI_TICKET_MAX_AGE`) whenever the store has no note that it was read, and the store
//! keeps these numbers out. Otherwise it reads the topic without an effect, so that the group's offset
//! stays at the end.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use daegi_domain::{
    EndReason, ItemId, Millis, Number, Ticket, TicketKeys, TokenClosed, Topic, UserId,
};
use daegi_kafka::{Effect, Halt, Incoming, Missing, Poison, Standing, schema};
use daegi_runtime::Clock;
use daegi_store::SharedStore;

use crate::ConsumerDeps;
use crate::error::missing;
use crate::orders::ITEM_COMES_BACK;
use crate::replay::ReplayNotes;

/// How many ends of one topic partition are noted in one replay. Each takes about 100 bytes of the store for an
/// hour, so clients that join and leave all day must not fill a store that has restarted.
const MAX_ENDS: usize = 250_000;

/// Tells a store that lost data which tickets had ended.
pub struct Ends {
    store: SharedStore,
    ticket_keys: TicketKeys,
    clock: Clock,
    notes: ReplayNotes,
    /// Topic partitions that are read again.
    replays: Mutex<BTreeMap<i32, Replay>>,
}

/// A topic partition that is read again.
#[derive(Debug, Clone, Copy)]
struct Replay {
    since: Millis,
    /// How many ends were noted.
    noted: usize,
}

/// How a ticket ended.
#[derive(Debug)]
pub struct Ended {
    partition: i32,
    ticket: Ticket,
    reason: EndReason,
    /// When its event was written.
    at: Millis,
}

impl Ends {
    /// Ends of tickets of this store.
    #[must_use]
    pub fn new(deps: &ConsumerDeps) -> Self {
        Self {
            store: deps.store.clone(),
            ticket_keys: deps.ticket_keys.clone(),
            clock: deps.clock.clone(),
            notes: ReplayNotes::new(deps.store.clone(), Topic::TokenClosed),
            replays: Mutex::default(),
        }
    }

    /// Returns `None` for a record that proves nothing: every other producer could end tickets
    /// otherwise. Such records are not dead-lettered, because the topic is daegi's own.
    fn ended(&self, message: &Incoming<'_>) -> Option<Ended> {
        let event: TokenClosed = schema::read(message.body?).ok()?;
        let ticket = self.ticket_keys.verify(&event.item_id, &event.token).ok()?;
        let is_its = ticket.user == event.user_id && ticket.number == event.number;
        let (partition, reason, at) = (message.partition, event.reason, message.at);
        is_its.then_some(Ended { partition, ticket, reason, at })
    }

    fn oldest(&self) -> Millis {
        self.ticket_keys.oldest_issue(self.clock.now_ms())
    }

    fn replays(&self) -> MutexGuard<'_, BTreeMap<i32, Replay>> {
        self.replays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the ends of one line. An item that the store lost is waited for, as long as it may be
    /// expected back from the product services' log.
    async fn note(
        &self,
        item: &ItemId,
        ended: &[(UserId, Number, EndReason)],
        since: Millis,
    ) -> Result<(), Missing> {
        let now = self.clock.now_ms();
        let noted = self.store.note_ended(item, ended, now).await;
        let is_known = noted.map_err(|error| missing(&error))?;
        if !is_known && now < since + ITEM_COMES_BACK {
            return Err(Missing(format!("the store has lost item {item}")));
        }
        Ok(())
    }
}

impl Effect for Ends {
    const TOPIC: Topic = Topic::TokenClosed;

    type Meaning = Option<Ended>;

    fn read(&self, message: &Incoming<'_>) -> Result<Option<Ended>, Poison> {
        Ok(self.ended(message))
    }

    async fn apply(&self, ends: &[Option<Ended>]) -> Result<(), Halt> {
        let Some(partition) = ends.iter().flatten().map(|ended| ended.partition).next() else {
            return Ok(());
        };
        let Some(Replay { since, noted }) = self.replays().get(&partition).copied() else {
            return Ok(());
        };
        let oldest = self.oldest();
        let recent = ends.iter().flatten().filter(|ended| ended.at >= oldest);
        let mut lines: BTreeMap<&ItemId, Vec<_>> = BTreeMap::new();
        let mut count = noted;
        for Ended { ticket, reason, .. } in recent.take(MAX_ENDS.saturating_sub(noted)) {
            let line = lines.entry(&ticket.item).or_default();
            line.push((ticket.user.clone(), ticket.number, *reason));
            count += 1;
        }
        for (item, ended) in lines {
            let noted = self.note(item, &ended, since).await;
            noted.map_err(|missing| Halt { done: 0, missing })?;
        }
        if let Some(replay) = self.replays().get_mut(&partition) {
            replay.noted = count;
        }
        if noted < MAX_ENDS && count == MAX_ENDS {
            tracing::warn!(
                topic = %Self::TOPIC,
                partition,
                count,
                "too many tickets ended before the data loss, later ones may be reclaimed"
            );
        }
        Ok(())
    }

    fn replay_from(&self) -> Option<u64> {
        Some(self.oldest())
    }

    async fn standing(&self, partition: i32) -> Result<Standing, Missing> {
        let standing = self.notes.standing(partition).await?;
        let begun = Replay { since: self.clock.now_ms(), noted: 0 };
        let mut replays = self.replays();
        match standing {
            Standing::Lost => {
                replays.insert(partition, begun);
            }
            Standing::Partly => {
                replays.entry(partition).or_insert(begun);
            }
            Standing::Whole => {
                replays.remove(&partition);
            }
        }
        Ok(standing)
    }

    async fn begin(&self, partition: i32) -> Result<(), Missing> {
        self.notes.begin(partition).await
    }

    async fn end(&self, partition: i32) -> Result<(), Missing> {
        self.notes.end(partition).await
    }
}

impl std::fmt::Debug for Ends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ends").field("store", &self.store).finish_non_exhaustive()
    }
}
