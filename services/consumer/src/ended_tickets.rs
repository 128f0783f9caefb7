//! Tickets that ended before the store lost data.
//!
//! A store that lost data reclaims the number of every genuine token, also of one whose ticket had
//! completed or left. daegi's own `token.closed` holds these ends. The consumer replays those of
//! all tickets that may still be presented (`DAEGI_TICKET_MAX_AGE`) whenever the store has no
//! record of a replay, and the store rejects their numbers. Otherwise it reads the topic without an
//! effect, so that the group's offset stays at the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use daegi_domain::{EndReason, ItemId, Lane, Millis, Ticket, TicketKeys, TokenClosed, Topic};
use daegi_kafka::{
    InboundMessage, MessageHandler, PartialFailure, Poison, ReplayProgress, RetryLater, schema,
};
use daegi_runtime::Clock;
use daegi_store::TicketStore;

use crate::error::retry_later;
use crate::orders::ITEM_RECOVERY_WINDOW_MS;
use crate::replay::ReplayRecord;
use crate::{COMPONENT, ConsumerDeps};

/// Maximum number of ended tickets of one topic partition that one replay records. Each takes about
/// 100 bytes of the store for 1 h; without a limit, clients that join and leave all day could fill a
/// store that has lost its data.
const MAX_ENDS: usize = 250_000;

/// Records ended tickets in a store that lost data.
pub struct EndedTicketHandler {
    store: Arc<dyn TicketStore>,
    ticket_keys: TicketKeys,
    clock: Clock,
    replay_record: ReplayRecord,
    /// Topic partitions that are replayed.
    replays: Mutex<BTreeMap<i32, Replay>>,
}

/// The replay of a topic partition.
#[derive(Debug, Clone, Copy)]
struct Replay {
    since: Millis,
    /// How many ended tickets were recorded.
    recorded: usize,
}

/// An ended ticket.
#[derive(Debug)]
pub struct EndedTicket {
    partition: i32,
    ticket: Ticket,
    reason: EndReason,
    /// When its event was written.
    at: Millis,
}

impl EndedTicketHandler {
    /// A handler of this store.
    #[must_use]
    pub fn new(deps: &ConsumerDeps) -> Self {
        Self {
            store: deps.store.clone(),
            ticket_keys: deps.ticket_keys.clone(),
            clock: deps.clock.clone(),
            replay_record: ReplayRecord::new(deps.store.clone(), Topic::TokenClosed),
            replays: Mutex::default(),
        }
    }

    /// Returns `None` for a record without a valid token: otherwise any producer could end tickets.
    /// Such records are not dead-lettered, because the topic is daegi's own.
    fn ended_ticket(&self, message: &InboundMessage<'_>) -> Option<EndedTicket> {
        let event: TokenClosed = schema::decode(message.body?).ok()?;
        let ticket = self.ticket_keys.verify(&event.item_id, &event.token).ok()?;
        let is_genuine = ticket.user == event.user_id && ticket.number == event.number;
        let (partition, reason, at) = (message.partition, event.reason, message.at);
        is_genuine.then_some(EndedTicket { partition, ticket, reason, at })
    }

    fn oldest(&self) -> Millis {
        self.ticket_keys.oldest_issue(self.clock.now_ms())
    }

    fn replays(&self) -> MutexGuard<'_, BTreeMap<i32, Replay>> {
        self.replays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the ended tickets of one lane of an item. Returns [`RetryLater`] for an unknown item during the
    /// first [`ITEM_RECOVERY_WINDOW_MS`] of the replay, because a replay of the product topic may
    /// restore the item.
    async fn record(
        &self,
        item: &ItemId,
        ended: &[(Ticket, EndReason)],
        replay: &Replay,
    ) -> Result<(), RetryLater> {
        let now = self.clock.now_ms();
        let noted = self.store.note_ended(ended, now).await;
        let is_known = noted.map_err(|error| retry_later(&error))?;
        if !is_known && replay.is_recent(now) {
            return Err(RetryLater(format!("the store has lost item {item}")));
        }
        Ok(())
    }
}

impl Replay {
    fn is_recent(&self, now: Millis) -> bool {
        now < self.since + ITEM_RECOVERY_WINDOW_MS
    }
}

impl MessageHandler for EndedTicketHandler {
    const TOPIC: Topic = Topic::TokenClosed;

    type Command = Option<EndedTicket>;

    fn decode(&self, message: &InboundMessage<'_>) -> Result<Option<EndedTicket>, Poison> {
        Ok(self.ended_ticket(message))
    }

    async fn apply(&self, ends: &[Option<EndedTicket>]) -> Result<(), PartialFailure> {
        let Some(partition) = ends.iter().flatten().map(|ended| ended.partition).next() else {
            return Ok(());
        };
        let Some(replay) = self.replays().get(&partition).copied() else { return Ok(()) };
        let recorded = replay.recorded;
        let oldest = self.oldest();
        let recent = ends.iter().flatten().filter(|ended| ended.at >= oldest);
        let mut lines: BTreeMap<(&ItemId, Lane), Vec<_>> = BTreeMap::new();
        let mut count = recorded;
        for EndedTicket { ticket, reason, .. } in recent.take(MAX_ENDS.saturating_sub(recorded)) {
            let line = lines.entry((&ticket.item, ticket.lane)).or_default();
            line.push((ticket.clone(), *reason));
            count += 1;
        }
        for ((item, _), ended) in lines {
            let outcome = self.record(item, &ended, &replay).await;
            outcome.map_err(|cause| PartialFailure { applied: 0, cause })?;
        }
        if let Some(replay) = self.replays().get_mut(&partition) {
            replay.recorded = count;
        }
        if recorded < MAX_ENDS && count == MAX_ENDS {
            tracing::warn!(
                component = COMPONENT,
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

    async fn replay_progress(&self, partition: i32) -> Result<ReplayProgress, RetryLater> {
        let progress = self.replay_record.replay_progress(partition).await?;
        let now = self.clock.now_ms();
        let started = Replay { since: now, recorded: 0 };
        let mut replays = self.replays();
        match progress {
            ReplayProgress::NotStarted => {
                replays.insert(partition, started);
            }
            ReplayProgress::InProgress => {
                replays.entry(partition).or_insert(started);
            }
            // The end of the partition may have been reported before the loss, and records written
            // in between are read only now. So records count until `ITEM_RECOVERY_WINDOW_MS` after
            // the start of the replay, even if it is complete before.
            ReplayProgress::Complete => {
                replays.retain(|other, replay| *other != partition || replay.is_recent(now));
            }
        }
        Ok(progress)
    }

    async fn begin_replay(&self, partition: i32) -> Result<(), RetryLater> {
        self.replay_record.begin_replay(partition).await
    }

    async fn complete_replay(&self, partition: i32) -> Result<(), RetryLater> {
        self.replay_record.complete_replay(partition).await
    }
}

impl std::fmt::Debug for EndedTicketHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndedTicketHandler").field("store", &self.store).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use daegi_domain::{Number, Settings, UserId};
    use daegi_runtime::{Health, Shutdown};
    use daegi_store::MemoryStore;

    use super::*;

    const PARTITION: i32 = 0;
    const START: Millis = 1_750_000_000_000;

    fn handler(clock: &Clock) -> EndedTicketHandler {
        let settings = Settings { token_count_to_move: 1, tick_ms: 1000 };
        EndedTicketHandler::new(&ConsumerDeps {
            store: Arc::new(MemoryStore::new(1, settings)),
            ticket_keys: TicketKeys::generate(),
            clock: clock.clone(),
            health: Health::new(&Shutdown::new()).component("consumer"),
        })
    }

    /// An end of a ticket whose item the store does not have.
    fn unknown_ticket() -> [Option<EndedTicket>; 1] {
        let (item, user) = (ItemId::parse("concert").unwrap(), UserId::parse("kim").unwrap());
        let ticket = Ticket::new(item, user, Number::base_at(START).next());
        [Some(EndedTicket { partition: PARTITION, ticket, reason: EndReason::Left, at: START })]
    }

    #[tokio::test]
    async fn records_read_shortly_after_a_replay_count_because_they_may_precede_the_loss() {
        let clock = Clock::manual(START);
        let handler = handler(&clock);
        let not_started = handler.replay_progress(PARTITION).await;
        assert_eq!(not_started, Ok(ReplayProgress::NotStarted));
        // The end of the partition was reported before the loss.
        handler.begin_replay(PARTITION).await.unwrap();
        handler.complete_replay(PARTITION).await.unwrap();
        assert_eq!(handler.replay_progress(PARTITION).await, Ok(ReplayProgress::Complete));
        let waits = handler.apply(&unknown_ticket()).await;
        assert!(waits.is_err(), "the record counts, so it waits for its item");

        clock.set(START + ITEM_RECOVERY_WINDOW_MS);
        assert_eq!(handler.replay_progress(PARTITION).await, Ok(ReplayProgress::Complete));
        assert_eq!(handler.apply(&unknown_ticket()).await, Ok(()));
        assert!(handler.replays().is_empty());
    }
}
