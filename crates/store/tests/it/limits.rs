//! Limits of waiting tickets per line and per store.

use daegi_domain::{Policy, StoreLimits, UserId};
use daegi_store::{JoinOutcome, JoinRefusal, MemoryStore, RedisStore, SharedStore, Store};
use daegi_testkit::eventually;

use crate::support::{PARTITIONS, SETTINGS, START, both, change, item, user, users};

fn limited(most: u32) -> Policy {
    Policy { max_waiting: Some(most), ..Policy::default() }
}

async fn join(store: &dyn Store, id: &str, users: &[UserId]) -> Vec<bool> {
    let joined = store.join(&item(id), users, &SETTINGS, START).await.unwrap();
    let is_in = |joined: &JoinOutcome| match joined {
        JoinOutcome::Ticket { .. } => true,
        JoinOutcome::Refused(JoinRefusal::LineFull) => false,
        JoinOutcome::Refused(other) => panic!("{other:?}"),
    };
    joined.iter().map(is_in).collect()
}

#[tokio::test]
async fn a_batch_fills_a_line_exactly_to_its_limit() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        store.put_item(&change("concert", limited(5)), START).await.unwrap();
        assert_eq!(join(&*store, "concert", &users(3)).await, [true; 3], "{name}");
        // Three of these users wait already, and two of the five new ones fit.
        let joined = join(&*store, "concert", &users(8)).await;
        assert_eq!(joined, [true, true, true, true, true, false, false, false], "{name}");
        let counts = store.counts(&[item("concert")]).await.unwrap();
        assert_eq!(counts[0].waiting, 5, "{name}");
        // An admission frees one position.
        let epoch = store.begin_term(START).await.unwrap();
        store.admit(epoch, &item("concert"), 1, 0, 1000, START).await.unwrap();
        assert_eq!(join(&*store, "concert", &users(8)[5..]).await, [true, false, false], "{name}");
    }
}

#[tokio::test]
async fn users_who_missed_their_turn_keep_their_share_of_the_limit() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        store.put_item(&change("concert", limited(2)), START).await.unwrap();
        let all = users(3);
        join(&*store, "concert", &all[..2]).await;
        let (epoch, later) = (store.begin_term(START).await.unwrap(), START + 100_000);
        let admission = store.admit(epoch, &item("concert"), 2, 0, 1000, later).await.unwrap();
        assert_eq!(admission.missed, 2, "{name}");
        assert_eq!(join(&*store, "concert", &all[2..]).await, [false], "{name}");
        assert_eq!(join(&*store, "concert", &all[..1]).await, [true], "{name}: returns");
    }
}

#[tokio::test]
async fn lowering_the_limit_ends_no_ticket() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let requeue = |most| Policy {
            max_waiting: most,
            on_rejoin: daegi_domain::OnRejoin::Requeue,
            ..Policy::default()
        };
        store.put_item(&change("concert", requeue(None)), START).await.unwrap();
        join(&*store, "concert", &users(4)).await;
        store.put_item(&change("concert", requeue(Some(2))), START).await.unwrap();
        assert_eq!(join(&*store, "concert", &users(5)).await, [true, true, true, true, false]);
        let counts = store.counts(&[item("concert")]).await.unwrap();
        assert_eq!(counts[0].waiting, 4, "{name}");
    }
}

#[tokio::test]
async fn the_limit_of_the_whole_store_counts_all_lines() {
    let limits = StoreLimits { max_waiting: 4, ..StoreLimits::default() };
    let server = daegi_testkit::redis_or_skip().await;
    let memory = MemoryStore::new(PARTITIONS, SETTINGS).with_max_waiting(4);
    let mut stores: Vec<SharedStore> = vec![std::sync::Arc::new(memory)];
    if let Some(server) = &server {
        let redis = server.config();
        let redis = RedisStore::open_with(redis, PARTITIONS, SETTINGS, limits).await.unwrap();
        stores.push(std::sync::Arc::new(redis));
    }
    for store in stores {
        for id in ["one", "other"] {
            store.put_item(&change(id, Policy::default()), START).await.unwrap();
        }
        let all = users(6);
        assert_eq!(join(&*store, "one", &all).await, [true, true, true, true, false, false]);
        // Pods read the count that the leader publishes within 1 s.
        store.publish_waiting(4).await.unwrap();
        let attempts = std::cell::Cell::new(0);
        eventually(std::time::Duration::from_secs(30), "the limit holds", || {
            attempts.set(attempts.get() + 1);
            let new = [user(&format!("new-{}", attempts.get()))];
            let store = store.clone();
            async move { !join(&*store, "other", &new).await[0] }
        })
        .await;
    }
}
