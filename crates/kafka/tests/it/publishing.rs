//! What is published arrives, in order, and only then counts as published.

use std::time::Duration;

use daegi_domain::{ItemId, Number, Ticket, TicketKeys, TokenActivated, Topics, UserId};
use daegi_kafka::{EmbeddedBroker, Error, Publisher, Record};
use uuid::Uuid;

use crate::reader::read;

fn activated(item: &str, number: u64) -> TokenActivated {
    let ticket = Ticket {
        item: ItemId::parse(item).unwrap(),
        user: UserId::parse("kim").unwrap(),
        number: Number(number),
    };
    TokenActivated::new(&TicketKeys::generate(), ticket, Uuid::new_v4(), 1_000, 2_000)
}

#[tokio::test]
async fn an_event_travels_as_a_binary_cloud_event() {
    let topics = Topics::default();
    let broker = EmbeddedBroker::start(&topics).unwrap();
    let publisher = Publisher::new(broker.bootstrap_servers()).unwrap();
    let event = activated("concert", 7);
    publisher.publish(&[Record::event(&event, &topics).unwrap()]).await.unwrap();
    let found = read(broker.bootstrap_servers(), "token.activated", 1).await.remove(0);
    assert_eq!(found.key, "concert");
    assert_eq!(serde_json::from_slice::<TokenActivated>(&found.body).unwrap(), event);
    let id = event.event_id.to_string();
    for (name, value) in [
        ("ce_specversion", "1.0"),
        ("ce_id", id.as_str()),
        ("ce_type", "token.activated"),
        ("ce_source", "/daegi"),
        ("ce_time", "1970-01-01T00:00:01.000Z"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(found.headers[name], value, "{name}");
    }
}

#[tokio::test]
async fn a_batch_keeps_the_order_of_every_key() {
    let topics = Topics::default();
    let broker = EmbeddedBroker::start(&topics).unwrap();
    let publisher = Publisher::new(broker.bootstrap_servers()).unwrap();
    let events = (0..2_000).map(|n| activated(["a", "b", "c"][n as usize % 3], n));
    let records: Vec<_> = events.map(|event| Record::event(&event, &topics).unwrap()).collect();
    publisher.publish(&records).await.unwrap();
    let found = read(broker.bootstrap_servers(), "token.activated", records.len()).await;
    for key in ["a", "b", "c"] {
        let of_key = found.iter().filter(|found| found.key == key);
        let numbers: Vec<_> = of_key
            .map(|found| serde_json::from_slice::<TokenActivated>(&found.body).unwrap().number)
            .collect();
        assert!(numbers.len() > 600 && numbers.is_sorted(), "{key}");
    }
}

#[tokio::test]
async fn nothing_counts_as_published_while_the_broker_is_away_and_all_does_after() {
    let topics = Topics::default();
    let broker = EmbeddedBroker::start(&topics).unwrap();
    let publisher = Publisher::new(broker.bootstrap_servers()).unwrap();
    let publisher = publisher.with_patience(Duration::from_millis(300));
    let record = Record::event(&activated("concert", 7), &topics).unwrap();
    broker.pause().unwrap();
    let away = publisher.publish(std::slice::from_ref(&record)).await;
    assert!(matches!(away, Err(Error::Unconfirmed(_))), "{away:?}");
    broker.resume().unwrap();
    let publisher = publisher.with_patience(Duration::from_secs(20));
    publisher.publish(&[record]).await.unwrap();
    assert_eq!(read(broker.bootstrap_servers(), "token.activated", 1).await.len(), 1);
}
