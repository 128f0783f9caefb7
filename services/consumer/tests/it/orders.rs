//! What order services say about orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use daegi_domain::{EndReason, OrderClosed, Outcome, Ticket, Topics, UserId};
use daegi_kafka::Record;
use daegi_runtime::Clock;
use daegi_store::{Joined, MemoryStore, Standing};
use daegi_testkit::{Gate, Gated, Writer, eventually};
use futures_util::future::join_all;

use crate::pod::{PARTITIONS, Pod, SETTINGS, SOON, changed, item};

/// Two people inside, by the leader's hand.
pub(crate) async fn inside(pod: &Pod, users: &[UserId]) -> Vec<Ticket> {
    let (concert, now) = (item("concert"), Clock::system().now_ms());
    let (store, settings) = (&pod.store, pod.store.settings().await.unwrap());
    store.put_item(&changed("concert", 10, 1).change(), now).await.unwrap();
    let joined = store.join(&concert, users, &settings, now).await.unwrap();
    let epoch = store.begin_term(0).await.unwrap();
    store.admit(epoch, &concert, 10, 0, 1_000, now).await.unwrap();
    let ticket = |(joined, user): (Joined, &UserId)| match joined {
        Joined::At { number, .. } => Ticket { item: item("concert"), user: user.clone(), number },
        Joined::Refused(refusal) => panic!("refused: {refusal:?}"),
    };
    joined.into_iter().zip(users).map(ticket).collect()
}

fn closed(pod: &Pod, ticket: &Ticket, outcome: Outcome) -> Record {
    let event = OrderClosed {
        event_id: format!("order-{}", ticket.number.0),
        item_id: ticket.item.clone(),
        user_id: ticket.user.clone(),
        token: pod.ticket_keys.token(ticket),
        outcome,
        occurred_at: "2026-01-01T00:00:00Z".into(),
    };
    Record::event(&event, &Topics::default()).unwrap()
}

pub(crate) async fn ended(pod: &Pod, ticket: &Ticket, reason: EndReason) {
    let asked = [(ticket.user.clone(), ticket.number)];
    eventually(SOON, "the ticket has ended", async || {
        let now = Clock::system().now_ms();
        let standings = pod.store.resolve(&ticket.item, &asked, now).await.unwrap();
        standings[0] == Standing::Ended(reason)
    })
    .await;
}

#[tokio::test]
async fn an_order_frees_the_slot_and_a_forged_one_does_not() {
    let pod = Pod::start();
    let users = ["kim", "lee"].map(|name| UserId::parse(name).unwrap());
    let [kim, lee] = inside(&pod, &users).await.try_into().unwrap();
    // Kim's event names Lee: poison, and the events behind it still take effect.
    let mut forged = closed(&pod, &kim, Outcome::Completed);
    let body = String::from_utf8(forged.body.unwrap()).unwrap();
    forged.body = Some(body.replace(r#""userId":"kim""#, r#""userId":"lee""#).into_bytes());
    pod.publish(&[forged, closed(&pod, &lee, Outcome::Completed)]).await;
    ended(&pod, &lee, EndReason::Completed).await;
    assert_eq!(pod.store.counts(&[item("concert")]).await.unwrap()[0].entered, 1);
    let cancelled = closed(&pod, &kim, Outcome::Cancelled);
    pod.publish(&[cancelled.clone(), cancelled]).await;
    ended(&pod, &kim, EndReason::Left).await;
    pod.stop().await;
}

/// Counts how often an order is tried.
#[derive(Debug, Clone, Default)]
struct Tries(Arc<AtomicUsize>);

impl Gate for Tries {
    async fn before(&self, call: &'static str) -> daegi_store::Result<()> {
        self.0.fetch_add(usize::from(call == "complete"), Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn an_order_of_a_lost_item_waits_until_the_item_is_back() {
    let (memory, tries) = (Arc::new(MemoryStore::new(PARTITIONS, SETTINGS)), Tries::default());
    let pod = Pod::on(Arc::new(Gated { store: memory.clone(), gate: tries.clone() }));
    let kim = inside(&pod, &[UserId::parse("kim").unwrap()]).await.remove(0);
    memory.lose(None);
    pod.publish(&[closed(&pod, &kim, Outcome::Completed)]).await;
    eventually(SOON, "it is tried again", async || tries.0.load(Ordering::SeqCst) > 1).await;
    let now = Clock::system().now_ms();
    pod.store.put_item(&changed("concert", 10, 1).change(), now).await.unwrap();
    // Asking for the ticket would put it back into the line, so its event is waited for.
    eventually(SOON, "its end is in the outbox", async || {
        let outboxes = (0..PARTITIONS).map(|partition| pod.store.outbox_len(partition));
        join_all(outboxes).await.into_iter().any(|events| events.unwrap() > 0)
    })
    .await;
    ended(&pod, &kim, EndReason::Completed).await;
    pod.stop().await;
}

#[tokio::test]
async fn an_order_dated_in_the_future_holds_its_partition_no_longer_than_another_one() {
    let (store, tries) = (Arc::new(MemoryStore::new(PARTITIONS, SETTINGS)), Tries::default());
    let now = Clock::system().now_ms();
    let clock = Clock::manual(now);
    let pod = Pod::with(Arc::new(Gated { store, gate: tries.clone() }), clock.clone());
    let kim = inside(&pod, &[UserId::parse("kim").unwrap()]).await.remove(0);
    let lost = Ticket { item: item("lost"), ..kim.clone() };
    let bodies = [&lost, &kim].map(|ticket| closed(&pod, ticket, Outcome::Completed).body.unwrap());
    let in_ten_years = i64::try_from(now).unwrap() + 10 * 365 * 86_400_000;
    let written = Writer::new(pod.brokers()).unwrap();
    written.write_at("order.closed", 0, &bodies, Some(in_ten_years)).await.unwrap();
    eventually(SOON, "it is tried again", async || tries.0.load(Ordering::SeqCst) > 1).await;
    clock.advance(Duration::from_secs(60));
    ended(&pod, &kim, EndReason::Completed).await;
    pod.stop().await;
}
