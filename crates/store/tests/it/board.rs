//! What operators changed, and what processes say about themselves, on both stores.

use daegi_domain::{EndReason, Number, Policy};
use daegi_store::{JOURNAL_KEPT, NOTICE_KEEP_MS, Notice, Totals};

use crate::support::{SETTINGS, START, both, change, item, users};

#[tokio::test]
async fn the_journal_tells_the_latest_changes_first_and_forgets_the_oldest() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        assert_eq!(store.journal_read(10).await.unwrap(), Vec::<String>::new(), "{name}");
        for entry in 0..JOURNAL_KEPT + 5 {
            store.journal_write(&format!("change {entry}")).await.unwrap();
        }
        let latest = store.journal_read(2).await.unwrap();
        assert_eq!(latest, ["change 1004", "change 1003"], "{name}");
        let all = store.journal_read(u32::MAX).await.unwrap();
        assert_eq!((all.len(), all.last().unwrap().as_str()), (1000, "change 5"), "{name}");
    }
}

#[tokio::test]
async fn a_process_that_says_nothing_any_more_is_forgotten() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let later = START + NOTICE_KEEP_MS;
        store.post_notice("b", "standing by", START).await.unwrap();
        store.post_notice("a", "leading", START + 1).await.unwrap();
        store.post_notice("b", "leading now", START + 2).await.unwrap();
        let notice = |who: &str, text: &str, at| Notice { who: who.into(), text: text.into(), at };
        let [a, b] = [notice("a", "leading", START + 1), notice("b", "leading now", START + 2)];
        assert_eq!(store.notices(later + 1).await.unwrap(), [a, b.clone()], "{name}");
        assert_eq!(store.notices(later + 2).await.unwrap(), [b], "{name}");
        store.post_notice("c", "new", later + 3).await.unwrap();
        let left = store.notices(START).await.unwrap();
        assert_eq!(left, [notice("c", "new", later + 3)], "{name}: taken down, not only hidden");
    }
}

#[tokio::test]
async fn counts_tell_where_the_line_is_and_how_tickets_ended() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let policy = Policy { pass_ttl_seconds: 30, grace_seconds: 0, ..Policy::default() };
        store.put_item(&change("concert", policy), START).await.unwrap();
        let (id, epoch) = (item("concert"), store.begin_term(0).await.unwrap());
        let people = users(6);
        store.join(&id, &people, &SETTINGS, START).await.unwrap();
        store.admit(epoch, &id, 3, 0, 100, START).await.unwrap();
        let base = Number::base_at(START).0;
        let at = |nth: usize| (&people[nth], Number(base + 1 + nth as u64));
        let ended = |nth, reason| {
            let (user, number) = at(nth);
            store.complete(&id, user, number, reason, START)
        };
        assert!(ended(0, EndReason::Completed).await.unwrap().is_done(), "{name}");
        assert!(ended(1, EndReason::Left).await.unwrap().is_done(), "{name}");
        let (user, number) = at(4);
        store.leave(&id, user, number, START).await.unwrap();
        store.expire(epoch, &id, START + 31_000).await.unwrap();
        let counts = store.counts(&[id]).await.unwrap().remove(0);
        assert_eq!((counts.base, counts.frontier), (Number(base), Number(base + 4)), "{name}");
        assert_eq!((counts.tail, counts.waiting, counts.entered), (Number(base + 6), 2, 0));
        let totals = Totals {
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

/// What must hold however Redis is run.
pub(crate) const EVERYWHERE: &[fn()] = &[
    the_journal_tells_the_latest_changes_first_and_forgets_the_oldest,
    a_process_that_says_nothing_any_more_is_forgotten,
    counts_tell_where_the_line_is_and_how_tickets_ended,
];
