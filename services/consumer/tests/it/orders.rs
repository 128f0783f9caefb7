//! Events of order services.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use daegi_domain::{EndReason, OrderClosed, Outcome, Ticket, Topics, UserId};
use daegi_kafka::Record;
use daegi_runtime::Clock;
use daegi_store::{JoinOutcome, MemoryStore, TicketState};
use daegi_testkit::{InterceptedStore, StoreInterceptor, TopicWriter, eventually};
use futures_util::future::join_all;

use crate::harness::{ConsumerHarness, PARTITIONS, SETTINGS, TEST_TIMEOUT, changed, item};

/// Users with an entry, admitted directly through the store.
pub(crate) async fn entered(harness: &ConsumerHarness, users: &[UserId]) -> Vec<Ticket> {
    let (concert, now) = (item("concert"), Clock::system().now_ms());
    let (store, settings) = (&harness.store, harness.store.settings().await.unwrap());
    store.put_item(&changed("concert", 10, 1).change(), now).await.unwrap();
    let joined = store.join(&concert, users, &settings, now).await.unwrap();
    let epoch = store.begin_term(0).await.unwrap();
    store.admit(epoch, &concert, 10, 0, 1_000, now).await.unwrap();
    let ticket = |(joined, user): (JoinOutcome, &UserId)| match joined {
        JoinOutcome::Ticket { number, .. } => Ticket::new(item("concert"), user.clone(), number),
        JoinOutcome::Refused(refusal) => panic!("refused: {refusal:?}"),
    };
    joined.into_iter().zip(users).map(ticket).collect()
}

fn closed(harness: &ConsumerHarness, ticket: &Ticket, outcome: Outcome) -> Record {
    let event = OrderClosed {
        event_id: format!("order-{}", ticket.number.0),
        item_id: ticket.item.clone(),
        user_id: ticket.user.clone(),
        token: harness.ticket_keys.token(ticket),
        outcome,
        occurred_at: "2026-01-01T00:00:00Z".into(),
    };
    Record::from_event(&event, &Topics::default()).unwrap()
}

pub(crate) async fn ended(harness: &ConsumerHarness, ticket: &Ticket, reason: EndReason) {
    eventually(TEST_TIMEOUT, "the ticket has ended", async || {
        let now = Clock::system().now_ms();
        let states = harness.store.resolve(std::slice::from_ref(ticket), now).await.unwrap();
        states[0] == TicketState::Ended(reason)
    })
    .await;
}

#[tokio::test]
async fn an_order_ends_the_entry_and_a_forged_one_does_not() {
    let harness = ConsumerHarness::start();
    let users = ["kim", "lee"].map(|name| UserId::parse(name).unwrap());
    let [kim, lee] = entered(&harness, &users).await.try_into().unwrap();
    // Kim's event names Lee: poison, and the events behind it still take effect.
    let mut forged = closed(&harness, &kim, Outcome::Completed);
    let body = String::from_utf8(forged.body.unwrap()).unwrap();
    forged.body = Some(body.replace(r#""userId":"kim""#, r#""userId":"lee""#).into_bytes());
    harness.publish(&[forged, closed(&harness, &lee, Outcome::Completed)]).await;
    ended(&harness, &lee, EndReason::Completed).await;
    assert_eq!(harness.store.counts(&[item("concert")]).await.unwrap()[0].entered, 1);
    let cancelled = closed(&harness, &kim, Outcome::Cancelled);
    harness.publish(&[cancelled.clone(), cancelled]).await;
    ended(&harness, &kim, EndReason::Left).await;
    harness.stop().await;
}

/// Counts attempts to complete an order.
#[derive(Debug, Clone, Default)]
struct Tries(Arc<AtomicUsize>);

impl StoreInterceptor for Tries {
    async fn before(&self, call: &'static str) -> daegi_store::Result<()> {
        self.0.fetch_add(usize::from(call == "complete"), Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn an_order_of_a_lost_item_waits_until_the_item_is_back() {
    let (memory, tries) = (Arc::new(MemoryStore::new(PARTITIONS, SETTINGS)), Tries::default());
    let harness = ConsumerHarness::with_store(Arc::new(InterceptedStore {
        store: memory.clone(),
        interceptor: tries.clone(),
    }));
    let kim = entered(&harness, &[UserId::parse("kim").unwrap()]).await.remove(0);
    memory.restore(None);
    harness.publish(&[closed(&harness, &kim, Outcome::Completed)]).await;
    eventually(TEST_TIMEOUT, "it is tried again", async || tries.0.load(Ordering::SeqCst) > 1)
        .await;
    let now = Clock::system().now_ms();
    harness.store.put_item(&changed("concert", 10, 1).change(), now).await.unwrap();
    // Resolving the ticket would reclaim it, so the test waits for its event.
    eventually(TEST_TIMEOUT, "its end is in the outbox", async || {
        let outboxes = (0..PARTITIONS).map(|partition| harness.store.outbox_len(partition));
        join_all(outboxes).await.into_iter().any(|events| events.unwrap() > 0)
    })
    .await;
    ended(&harness, &kim, EndReason::Completed).await;
    harness.stop().await;
}

#[tokio::test]
async fn an_order_dated_in_the_future_holds_its_partition_no_longer_than_another_one() {
    let (store, tries) = (Arc::new(MemoryStore::new(PARTITIONS, SETTINGS)), Tries::default());
    let now = Clock::system().now_ms();
    let clock = Clock::manual(now);
    let harness = ConsumerHarness::with_clock(
        Arc::new(InterceptedStore { store, interceptor: tries.clone() }),
        clock.clone(),
    );
    let kim = entered(&harness, &[UserId::parse("kim").unwrap()]).await.remove(0);
    let lost = Ticket { item: item("lost"), ..kim.clone() };
    let bodies =
        [&lost, &kim].map(|ticket| closed(&harness, ticket, Outcome::Completed).body.unwrap());
    let in_ten_years = i64::try_from(now).unwrap() + 10 * 365 * 86_400_000;
    let writer = TopicWriter::new(harness.brokers()).unwrap();
    writer.write_at("order.closed", 0, &bodies, Some(in_ten_years)).await.unwrap();
    eventually(TEST_TIMEOUT, "it is tried again", async || tries.0.load(Ordering::SeqCst) > 1)
        .await;
    clock.advance(Duration::from_secs(60));
    ended(&harness, &kim, EndReason::Completed).await;
    harness.stop().await;
}
