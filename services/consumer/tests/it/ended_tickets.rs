//! Tickets that ended before the store lost data.

use std::sync::Arc;

use daegi_domain::{EndReason, Ticket, TokenClosed, Topics, UserId};
use daegi_kafka::Record;
use daegi_runtime::Clock;
use daegi_store::{EndOutcome, MemoryStore, RedisStore, TicketState};
use uuid::Uuid;

use crate::harness::{ConsumerHarness, PARTITIONS, SETTINGS, changed};
use crate::orders::{ended, entered};

/// The event of an end, with the token of this ticket.
fn closed(harness: &ConsumerHarness, ticket: &Ticket, token: &Ticket) -> Record {
    let event = TokenClosed {
        event_id: Uuid::new_v4(),
        item_id: ticket.item.clone(),
        user_id: ticket.user.clone(),
        token: harness.ticket_keys.token(token),
        number: ticket.number,
        lane: None,
        reason: EndReason::Completed,
        closed_at: "2026-01-01T00:00:00Z".into(),
    };
    Record::from_event(&event, &Topics::default()).unwrap()
}

/// Kim completes, Lee does not, and then the store loses everything.
async fn a_ticket_that_ended_stays_ended(harness: &ConsumerHarness, lose: impl AsyncFnOnce()) {
    harness.changes(&[changed("concert", 10, 1)]).await;
    harness.until("concert", |item| item.is_some()).await;
    let users = ["kim", "lee"].map(|name| UserId::parse(name).unwrap());
    let [kim, lee] = entered(harness, &users).await.try_into().unwrap();
    let now = Clock::system().now_ms();
    let completed = harness.store.complete(&kim, EndReason::Completed, now);
    assert_eq!(completed.await.unwrap(), EndOutcome::Ended);
    // Lee's is forged: it has Kim's token.
    harness.publish(&[closed(harness, &lee, &kim), closed(harness, &kim, &kim)]).await;

    lose().await;
    harness.until("concert", |item| item.is_some()).await;
    ended(harness, &kim, EndReason::Completed).await;
    let lees = harness.store.resolve(&[lee], Clock::system().now_ms()).await.unwrap();
    assert!(matches!(lees[0], TicketState::Live(_)), "reclaimed: {lees:?}");
}

#[tokio::test]
async fn a_ticket_that_ended_before_the_memory_store_lost_it_stays_ended() {
    let memory = Arc::new(MemoryStore::new(PARTITIONS, SETTINGS));
    let harness = ConsumerHarness::with_store(memory.clone());
    a_ticket_that_ended_stays_ended(&harness, async || memory.restore(None)).await;
    harness.stop().await;
}

#[tokio::test]
async fn a_ticket_that_ended_before_redis_lost_it_stays_ended() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let store = RedisStore::open(&redis.url(), PARTITIONS, SETTINGS).await.unwrap();
    let harness = ConsumerHarness::with_store(Arc::new(store));
    a_ticket_that_ended_stays_ended(&harness, async || {
        let mut connection = redis.connection().await.unwrap();
        let () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    })
    .await;
    harness.stop().await;
}
