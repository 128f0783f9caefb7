//! The audit log, heartbeats and counts, on both stores.

use daegi_domain::{EndReason, Lane, Number, Policy};
use daegi_store::{
    HEARTBEAT_RETENTION_MS, HeartbeatRecord, LineTotals, MAX_AUDIT_ENTRIES, MAX_OPERATORS,
    PutOperator,
};

use crate::support::{SETTINGS, START, both, change, item, ticket_of, users};

#[tokio::test]
async fn the_audit_log_returns_the_latest_changes_first_and_deletes_the_oldest() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        assert_eq!(store.read_audit(10).await.unwrap(), Vec::<String>::new(), "{name}");
        for entry in 0..MAX_AUDIT_ENTRIES + 5 {
            store.append_audit(&format!("change {entry}")).await.unwrap();
        }
        let latest = store.read_audit(2).await.unwrap();
        assert_eq!(latest, ["change 1004", "change 1003"], "{name}");
        let all = store.read_audit(u32::MAX).await.unwrap();
        assert_eq!((all.len(), all.last().unwrap().as_str()), (1000, "change 5"), "{name}");
    }
}

#[tokio::test]
async fn operators_are_stored_once_removed_and_bounded() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        assert_eq!(store.operators().await.unwrap(), Vec::<String>::new(), "{name}");
        assert_eq!(store.put_operator("kim", "first").await.unwrap(), PutOperator::Stored);
        assert_eq!(store.put_operator("kim", "second").await.unwrap(), PutOperator::NameTaken);
        assert_eq!(store.put_operator("ann", "other").await.unwrap(), PutOperator::Stored);
        assert_eq!(store.operators().await.unwrap(), ["other", "first"], "{name}: by name");
        assert!(store.remove_operator("kim").await.unwrap(), "{name}");
        assert!(!store.remove_operator("kim").await.unwrap(), "{name}");
        for nth in 1..MAX_OPERATORS {
            let stored = store.put_operator(&format!("operator-{nth}"), "").await.unwrap();
            assert_eq!(stored, PutOperator::Stored, "{name}");
        }
        let refused = store.put_operator("kim", "first").await.unwrap();
        assert_eq!(refused, PutOperator::LimitReached, "{name}");
        assert_eq!(store.operators().await.unwrap().len(), MAX_OPERATORS as usize, "{name}");
    }
}

#[tokio::test]
async fn a_process_without_heartbeats_is_removed() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let later = START + HEARTBEAT_RETENTION_MS;
        store.put_heartbeat("b", "standing by", START).await.unwrap();
        store.put_heartbeat("a", "leading", START + 1).await.unwrap();
        store.put_heartbeat("b", "leading now", START + 2).await.unwrap();
        let heartbeat = |who: &str, text: &str, at| HeartbeatRecord {
            process: who.into(),
            payload: text.into(),
            at,
        };
        let [a, b] =
            [heartbeat("a", "leading", START + 1), heartbeat("b", "leading now", START + 2)];
        assert_eq!(store.heartbeats(later + 1).await.unwrap(), [a, b.clone()], "{name}");
        assert_eq!(store.heartbeats(later + 2).await.unwrap(), [b], "{name}");
        store.put_heartbeat("c", "new", later + 3).await.unwrap();
        let left = store.heartbeats(START).await.unwrap();
        assert_eq!(left, [heartbeat("c", "new", later + 3)], "{name}: deleted, not only hidden");
    }
}

#[tokio::test]
async fn counts_contain_the_frontier_and_the_ends_by_reason() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let policy = Policy { pass_ttl_seconds: 30, grace_seconds: 0, ..Policy::default() };
        store.put_item(&change("concert", policy), START).await.unwrap();
        let (id, epoch) = (item("concert"), store.begin_term(0).await.unwrap());
        let users_in_line = users(6);
        store.join(&id, &users_in_line, &SETTINGS, START).await.unwrap();
        store.admit(epoch, &id, 3, 0, 100, START).await.unwrap();
        let base = Number::base_at(START).0;
        let at = |nth: usize| ticket_of(&id, &users_in_line[nth], Number(base + 1 + nth as u64));
        for (nth, reason) in [(0, EndReason::Completed), (1, EndReason::Left)] {
            assert!(store.complete(&at(nth), reason, START).await.unwrap().is_ended(), "{name}");
        }
        store.leave(&at(4), START).await.unwrap();
        store.expire(epoch, &id, Lane::STANDARD, START + 31_000).await.unwrap();
        let counts = store.counts(&[id]).await.unwrap().remove(0);
        assert_eq!((counts.base, counts.front), (Number(base), Number(base + 4)), "{name}");
        assert_eq!((counts.tail, counts.waiting, counts.entered), (Number(base + 6), 2, 0));
        let totals = LineTotals {
            joined: 6,
            admitted: 3,
            ended: 4,
            completed: 1,
            expired: 1,
            left: 2,
            abandoned: 0,
        };
        assert_eq!(counts.totals, totals, "{name}");
    }
}

/// Tests that run again on Sentinel and Cluster.
pub(crate) const ALL_TOPOLOGIES: &[fn()] = &[
    the_audit_log_returns_the_latest_changes_first_and_deletes_the_oldest,
    a_process_without_heartbeats_is_removed,
    counts_contain_the_frontier_and_the_ends_by_reason,
];
