//! Tickets that ended before the store lost data.

use std::sync::Arc;

use daegi_domain::{EndReason, Ticket, TokenClosed, Topics, UserId};
use daegi_kafka::Record;
use daegi_runtime::Clock;
use daegi_store::{Closing, MemoryStore, RedisStore, Standing};
use uuid::Uuid;

use crate::orders::{ended, inside};
use crate::pod::{PARTITIONS, Pod, SETTINGS, changed, item};

/// The event of an end, with the token of this ticket.
fn closed(pod: &Pod, ticket: &Ticket, token: &Ticket) -> Record {
    let event = TokenClosed {
        event_id: Uuid::new_v4(),
        item_id: ticket.item.clone(),
        user_id: ticket.user.clone(),
        token: pod.ticket_keys.token(token),
        number: ticket.number,
        reason: EndReason::Completed,
        closed_at: "2026-01-01T00:00:00Z".into(),
    };
    Record::event(&event, &Topics::default()).unwrap()
}

/// Kim completes, Lee does not, and then the store loses everything.
async fn a_ticket_that_ended_stays_ended(pod: &Pod, lose: impl AsyncFnOnce()) {
    pod.changes(&[changed("concert", 10, 1)]).await;
    pod.until("concert", |item| item.is_some()).await;
    let users = ["kim", "lee"].map(|name| UserId::parse(name).unwrap());
    let [kim, lee] = inside(pod, &users).await.try_into().unwrap();
    let now = Clock::system().now_ms();
    let completed = pod.store.complete(&kim.item, &kim.user, kim.number, EndReason::Completed, now);
    assert_eq!(completed.await.unwrap(), Closing::Done);
    // Lee's is forged: it has Kim's token.
    pod.publish(&[closed(pod, &lee, &kim), closed(pod, &kim, &kim)]).await;

    lose().await;
    pod.until("concert", |item| item.is_some()).await;
    ended(pod, &kim, EndReason::Completed).await;
    let asked = [(lee.user.clone(), lee.number)];
    let lees = pod.store.resolve(&item("concert"), &asked, Clock::system().now_ms()).await.unwrap();
    assert!(matches!(lees[0], Standing::At(_)), "reclaimed: {lees:?}");
}

#[tokio::test]
async fn a_ticket_that_ended_before_the_memory_store_lost_it_stays_ended() {
    let memory = Arc::new(MemoryStore::new(PARTITIONS, SETTINGS));
    let pod = Pod::on(memory.clone());
    a_ticket_that_ended_stays_ended(&pod, async || memory.lose(None)).await;
    pod.stop().await;
}

#[tokio::test]
async fn a_ticket_that_ended_before_redis_lost_it_stays_ended() {
    let Some(redis) = daegi_testkit::redis_or_loud().await else { return };
    let store = RedisStore::open(&redis.url(), PARTITIONS, SETTINGS).await.unwrap();
    let pod = Pod::on(Arc::new(store));
    a_ticket_that_ended_stays_ended(&pod, async || {
        let mut connection = redis.connection().await.unwrap();
        let () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    })
    .await;
    pod.stop().await;
}
