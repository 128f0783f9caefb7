//! Published records arrive in order, and count as published only when confirmed.

use std::time::Duration;

use daegi_domain::{ItemId, Number, Ticket, TicketKeys, TokenActivated, Topic, UserId};
use daegi_kafka::{Error, Record};
use uuid::Uuid;

use crate::broker::{Broker, TEST_TIMEOUT};

fn activated(item: &str, number: u64) -> TokenActivated {
    let (item, user) = (ItemId::parse(item).unwrap(), UserId::parse("kim").unwrap());
    let ticket = Ticket::new(item, user, Number(number));
    TokenActivated::new(&TicketKeys::generate(), (ticket, None), Uuid::new_v4(), 1_000, 2_000)
}

#[tokio::test]
async fn an_event_travels_as_a_binary_cloud_event() {
    for broker in Broker::each().await {
        let event = activated("concert", 7);
        let record = Record::from_event(&event, &broker.topics).unwrap();
        broker.publisher().publish(&[record]).await.unwrap();
        let found = broker.read(Topic::TokenActivated, 1).await.remove(0);
        assert_eq!(found.key.as_deref(), Some("concert".as_bytes()), "{}", broker.name);
        let body = found.body.as_ref().unwrap();
        assert_eq!(serde_json::from_slice::<TokenActivated>(body).unwrap(), event);
        let id = event.event_id.to_string();
        for (name, value) in [
            ("ce_specversion", "1.0"),
            ("ce_id", id.as_str()),
            ("ce_type", "token.activated"),
            ("ce_source", "/daegi"),
            ("ce_time", "1970-01-01T00:00:01.000Z"),
            ("content-type", "application/json"),
        ] {
            assert_eq!(found.headers[name], value, "{}: {name}", broker.name);
        }
    }
}

#[tokio::test]
async fn a_batch_keeps_the_order_of_every_key() {
    for broker in Broker::each().await {
        let events = (0..2_000).map(|n| activated(["a", "b", "c"][n as usize % 3], n));
        let records = events.map(|event| Record::from_event(&event, &broker.topics).unwrap());
        let records: Vec<_> = records.collect();
        broker.publisher().publish(&records).await.unwrap();
        let found = broker.read(Topic::TokenActivated, records.len()).await;
        for key in ["a", "b", "c"] {
            let of_key = found.iter().filter(|found| found.key.as_deref() == Some(key.as_bytes()));
            let event = |body| serde_json::from_slice::<TokenActivated>(body).unwrap();
            let numbers = of_key.map(|found| event(found.body.as_ref().unwrap()).number);
            let numbers: Vec<_> = numbers.collect();
            assert!(numbers.len() > 600 && numbers.is_sorted(), "{}: {key}", broker.name);
        }
    }
}

/// The fleet tests stop a real broker.
#[tokio::test]
async fn nothing_is_confirmed_while_the_broker_is_down_and_everything_is_after() {
    let broker = Broker::embedded();
    let publisher = broker.publisher().with_delivery_timeout(Duration::from_millis(300));
    let record = Record::from_event(&activated("concert", 7), &broker.topics).unwrap();
    broker.pause();
    let unconfirmed = publisher.publish(std::slice::from_ref(&record)).await;
    assert!(matches!(unconfirmed, Err(Error::Unconfirmed(_))), "{unconfirmed:?}");
    broker.resume();
    let publisher = publisher.with_delivery_timeout(TEST_TIMEOUT);
    publisher.publish(&[record]).await.unwrap();
    assert_eq!(broker.read(Topic::TokenActivated, 1).await.len(), 1);
}

#[tokio::test]
async fn sends_of_a_session_follow_each_other_without_waiting_and_in_order() {
    for broker in Broker::each().await {
        let publisher = broker.publisher();
        let session = publisher.session();
        let mut pending = Vec::new();
        for call in 0..4 {
            let numbers = call * 500..(call + 1) * 500;
            let records =
                numbers.map(|n| Record::from_event(&activated("concert", n), &broker.topics));
            pending.push(session.send(records).await.unwrap());
        }
        for delivery in pending {
            delivery.wait().await.unwrap();
        }
        let numbers = numbers(&broker, 2_000).await;
        assert!(numbers.into_iter().eq(0..2_000), "{}", broker.name);
    }
}

#[tokio::test]
async fn after_an_aborted_session_a_new_one_delivers_and_the_old_one_delivers_nothing_more() {
    let broker = Broker::embedded();
    let publisher = broker.publisher().with_delivery_timeout(Duration::from_millis(300));
    let record = |number| Record::from_event(&activated("concert", number), &broker.topics);
    broker.pause();
    let session = publisher.session();
    let first = session.send([record(1)]).await.unwrap();
    let second = session.send([record(2)]).await.unwrap();
    assert!(matches!(first.wait().await, Err(Error::Unconfirmed(_))));
    drop(second);
    session.abort().await;
    broker.resume();
    let publisher = publisher.with_delivery_timeout(TEST_TIMEOUT);
    publisher.publish(&[record(1).unwrap(), record(3).unwrap()]).await.unwrap();
    assert_eq!(numbers(&broker, 2).await, [1, 3]);
}

async fn numbers(broker: &Broker, count: usize) -> Vec<u64> {
    let found = broker.read(Topic::TokenActivated, count).await;
    let event = |body| serde_json::from_slice::<TokenActivated>(body).unwrap();
    found.iter().map(|found| event(found.body.as_ref().unwrap()).number.0).collect()
}
