//! What product services say, read once or more often.

use daegi_domain::{ItemChange, ItemNews, LogPosition, Policy, Said};
use daegi_store::Catalogue;
use daegi_store::NewsOutcome::{Created, Removed, Stale};

use crate::support::{START, both, change, item};

#[tokio::test]
async fn an_older_version_changes_nothing_even_after_a_removal() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
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
        let said = Said::Gone { id: id.clone(), version: Some(6) };
        let removal = ItemNews { said, read: LogPosition { offset: 1, at: START } };
        store.apply_news(&[removal], START).await.unwrap();
        store.put_item(&versioned(6, 99), START).await.unwrap();
        assert_eq!(store.item(&id).await.unwrap(), None, "{name}");
        store.put_item(&versioned(u64::MAX, 3), START).await.unwrap();
        assert_eq!(store.item(&id).await.unwrap().unwrap().version, u64::MAX, "{name}");
    }
}

#[tokio::test]
async fn a_removal_without_a_version_counts_once_however_often_it_is_read() {
    let (stores, _server) = both().await;
    let read = |offset, at| LogPosition { offset, at };
    let put = |version, read| {
        let change = ItemChange { version: Some(version), ..change("concert", Policy::default()) };
        ItemNews { said: Said::Changed(change), read }
    };
    let gone = |read| ItemNews { said: Said::Gone { id: item("concert"), version: None }, read };
    for (name, store) in stores {
        let log = [put(1, read(5, 50)), gone(read(6, 60)), put(2, read(7, 70))];
        let outcomes = store.apply_news(&log, START).await.unwrap();
        assert_eq!(outcomes, [Created, Removed, Created], "{name}");
        assert_eq!(store.apply_news(&log, START).await.unwrap(), [Stale; 3], "{name}: read again");
        assert!(store.item(&item("concert")).await.unwrap().is_some(), "{name}");
        // A topic that was made anew counts from 0, and a writer's clock may be slow.
        for news in [gone(read(0, 80)), gone(read(9, 40))] {
            store.put_item(&change("concert", Policy::default()), START).await.unwrap();
            assert_eq!(store.apply_news(&[news], START).await.unwrap(), [Removed], "{name}");
        }
    }
}

#[tokio::test]
async fn a_store_that_lost_its_items_has_not_read_the_log() {
    let (stores, server) = both().await;
    for (name, store) in &stores {
        assert_eq!(store.catalogue("items/0").await.unwrap(), Catalogue::Unread, "{name}");
        assert!(!store.end_catalogue("items/0").await.unwrap(), "{name}: nobody has begun");
        store.begin_catalogue("items/0").await.unwrap();
        assert_eq!(store.catalogue("items/0").await.unwrap(), Catalogue::Reading, "{name}");
        assert!(store.end_catalogue("items/0").await.unwrap(), "{name}");
        assert_eq!(store.catalogue("items/0").await.unwrap(), Catalogue::Read, "{name}");
        assert_eq!(store.catalogue("items/1").await.unwrap(), Catalogue::Unread, "{name}");
    }
    let (Some(server), Some((_, store))) = (server, stores.get(1)) else { return };
    let mut connection = server.connection().await.unwrap();
    // One partition of many is enough: on a cluster it may be on a node of its own.
    let () =
        redis::cmd("DEL").arg("daegi:{p03}:catalogues").query_async(&mut connection).await.unwrap();
    assert_eq!(store.catalogue("items/0").await.unwrap(), Catalogue::Unread);
    assert!(!store.end_catalogue("items/0").await.unwrap());
}

/// What must hold however Redis is run.
pub(crate) const EVERYWHERE: &[fn()] = &[
    an_older_version_changes_nothing_even_after_a_removal,
    a_removal_without_a_version_counts_once_however_often_it_is_read,
    a_store_that_lost_its_items_has_not_read_the_log,
];
