//! Item updates of product services, applied once or repeatedly; the state of a replay.

use daegi_domain::{ItemChange, ItemUpdate, ItemUpdateKind, LogPosition, Policy};
use daegi_store::ItemUpdateOutcome::{Created, Removed, Stale};
use daegi_store::ReplayState;

use crate::support::{START, both, change, item, settings_are_restored};

#[tokio::test]
async fn an_older_version_changes_nothing_even_after_a_removal() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        settings_are_restored(&*store).await;
        let versioned = |version, stock| ItemChange {
            version: Some(version),
            stock,
            policy: None,
            ..change("concert", Policy::default())
        };
        let id = item("concert");
        store.put_item(&versioned(5, 10), START).await.unwrap();
        for old in [5, 4] {
            store.put_item(&versioned(old, 99), START).await.unwrap();
        }
        assert_eq!(store.item(&id).await.unwrap().unwrap().stock, 10, "{name}");
        let kind = ItemUpdateKind::Remove { id: id.clone(), version: Some(6) };
        let removal = ItemUpdate { kind, position: LogPosition { offset: 1, at: START } };
        store.apply_item_updates(&[removal], START).await.unwrap();
        store.put_item(&versioned(6, 99), START).await.unwrap();
        assert_eq!(store.item(&id).await.unwrap(), None, "{name}");
        store.put_item(&versioned(u64::MAX, 3), START).await.unwrap();
        assert_eq!(store.item(&id).await.unwrap().unwrap().version, u64::MAX, "{name}");
    }
}

#[tokio::test]
async fn a_removal_without_a_version_is_applied_once() {
    let (stores, _server) = both().await;
    let read = |offset, at| LogPosition { offset, at };
    let put = |version, read| {
        let change = ItemChange { version: Some(version), ..change("concert", Policy::default()) };
        ItemUpdate { kind: ItemUpdateKind::Upsert(change), position: read }
    };
    let gone = |read| ItemUpdate {
        kind: ItemUpdateKind::Remove { id: item("concert"), version: None },
        position: read,
    };
    for (name, store) in stores {
        settings_are_restored(&*store).await;
        let log = [put(1, read(5, 50)), gone(read(6, 60)), put(2, read(7, 70))];
        let outcomes = store.apply_item_updates(&log, START).await.unwrap();
        assert_eq!(outcomes, [Created, Removed, Created], "{name}");
        assert_eq!(
            store.apply_item_updates(&log, START).await.unwrap(),
            [Stale; 3],
            "{name}: read again"
        );
        assert!(store.item(&item("concert")).await.unwrap().is_some(), "{name}");
        // A recreated topic starts at offset 0, and the clock of a producer may be behind.
        for news in [gone(read(0, 80)), gone(read(9, 40))] {
            store.put_item(&change("concert", Policy::default()), START).await.unwrap();
            assert_eq!(
                store.apply_item_updates(&[news], START).await.unwrap(),
                [Removed],
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn a_store_that_lost_its_items_has_no_replay_state() {
    let (stores, server) = both().await;
    for (name, store) in &stores {
        assert_eq!(store.replay_state("items/0").await.unwrap(), ReplayState::NotStarted, "{name}");
        assert!(!store.complete_replay("items/0").await.unwrap(), "{name}: no replay has begun");
        store.begin_replay("items/0").await.unwrap();
        assert_eq!(store.replay_state("items/0").await.unwrap(), ReplayState::InProgress, "{name}");
        assert!(store.complete_replay("items/0").await.unwrap(), "{name}");
        assert_eq!(store.replay_state("items/0").await.unwrap(), ReplayState::Complete, "{name}");
        assert_eq!(store.replay_state("items/1").await.unwrap(), ReplayState::NotStarted, "{name}");
    }
    let (Some(server), Some((_, store))) = (server, stores.get(1)) else { return };
    let mut connection = server.connection().await.unwrap();
    // The loss of one partition is enough, because on a cluster it may be on a separate node.
    let () =
        redis::cmd("DEL").arg("daegi:{p03}:catalogues").query_async(&mut connection).await.unwrap();
    assert_eq!(store.replay_state("items/0").await.unwrap(), ReplayState::NotStarted);
    assert!(!store.complete_replay("items/0").await.unwrap());
}

/// Tests that run again on Sentinel and Cluster.
pub(crate) const ALL_TOPOLOGIES: &[fn()] = &[
    an_older_version_changes_nothing_even_after_a_removal,
    a_removal_without_a_version_is_applied_once,
    a_store_that_lost_its_items_has_no_replay_state,
];
