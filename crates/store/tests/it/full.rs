//! A Redis at `maxmemory`: new tickets are refused, and everything else works.

use std::time::Duration;

use daegi_domain::{EndReason, ItemChange, Number, Policy, SeenPage, UserId};
use daegi_store::{Closing, Epoch, Joined, Lease, Place, RedisStore, Reign, Standing, Store};
use daegi_testkit::Redis;
use tokio_util::sync::CancellationToken;

use crate::support::{PARTITIONS, SETTINGS, START, change, item, user};

const TTL: Duration = Duration::from_secs(30);

/// Memory for tickets beyond what an empty server uses.
const SPACE: u64 = 2 * 1024 * 1024;

async fn used_memory(store: &RedisStore) -> u64 {
    store.memory().await.unwrap().unwrap().used
}

async fn set_maxmemory(server: &Redis, bytes: u64) {
    server.ask::<()>(&["CONFIG", "SET", "maxmemory", &bytes.to_string()]).await.unwrap();
}

fn crowd(from: usize, count: usize) -> Vec<UserId> {
    (from..from + count).map(|index| user(&format!("user-{index}"))).collect()
}

/// Joins users until Redis refuses; returns how many joined.
async fn fill(store: &RedisStore, id: &str) -> usize {
    let mut joined = 0;
    loop {
        match store.join(&item(id), &crowd(joined, 500), &SETTINGS, START).await {
            Ok(_) => joined += 500,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                return joined;
            }
        }
        assert!(joined < 200_000, "the server never became full");
    }
}

/// A store whose server has no memory left, and how many users its line has.
async fn full_store(server: &Redis) -> (RedisStore, usize) {
    let store = RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap();
    for id in ["concert", "other"] {
        store.put_item(&change(id, Policy::default()), START).await.unwrap();
    }
    store.join(&item("other"), &crowd(0, 5), &SETTINGS, START).await.unwrap();
    set_maxmemory(server, used_memory(&store).await + SPACE).await;
    let joined = fill(&store, "concert").await;
    (store, joined)
}

fn number_of(joined: &Joined) -> Number {
    match joined {
        Joined::At { number, .. } => *number,
        Joined::Refused(why) => panic!("refused: {why:?}"),
    }
}

async fn number(store: &RedisStore, who: &str) -> Number {
    let joined = store.join(&item("concert"), &[user(who)], &SETTINGS, START).await.unwrap();
    number_of(&joined[0])
}

#[tokio::test]
async fn a_full_redis_refuses_only_new_tickets() {
    let Some(server) = daegi_testkit::redis_or_loud().await else { return };
    let (store, _) = full_store(&server).await;
    // Far below what is used, so that nothing below makes the server less than full.
    set_maxmemory(&server, 1).await;
    let (concert, other) = (item("concert"), item("other"));
    let newcomer = store.join(&concert, &[user("newcomer")], &SETTINGS, START).await;
    assert!(newcomer.unwrap_err().is_transient());

    // A process that starts now, and its term as the leader.
    let store = {
        drop(store);
        RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap()
    };
    let lease = Lease::try_acquire(&store, TTL, START).await.unwrap().expect("the lock is free");
    assert!(Lease::try_acquire(&store, TTL, START).await.unwrap().is_none(), "the lock is taken");
    let epoch = lease.epoch();
    let reign = Reign { leader: "a".into(), epoch, since: START };
    store.leases().announce(&reign).await.unwrap();
    assert_eq!(store.leases().reign().await.unwrap(), Some(reign));
    let (stop, lost) = (CancellationToken::new(), lease.lost());
    let holding = lease.hold(stop.clone());
    stop.cancel();
    holding.await;
    assert!(lost.is_cancelled());
    let lease = Lease::try_acquire(&store, TTL, START).await.unwrap().expect("released");
    let epoch: Epoch = lease.epoch();

    // Users who wait, are admitted, leave, and end.
    assert_eq!(store.admit(epoch, &concert, 3, 0, 1000, START).await.unwrap().admitted, 3);
    let (first, fourth) = (number(&store, "user-0").await, number(&store, "user-3").await);
    let done = store.complete(&concert, &user("user-0"), first, EndReason::Completed, START).await;
    assert_eq!(done.unwrap(), Closing::Done);
    let left = store.leave(&concert, &user("user-3"), fourth, START).await;
    assert_eq!(left.unwrap(), Closing::Done);
    store.mark_seen(&concert, &SeenPage::of([fourth.next()]), START).await.unwrap();
    let fifth = (user("user-4"), number(&store, "user-4").await);
    let standing = store.resolve(&concert, &[fifth], START).await.unwrap();
    assert_eq!(standing, [Standing::At(Place::Waiting { position: 1 })]);
    let later = START + 700_000;
    assert_eq!(store.expire(epoch, &concert, later).await.unwrap().expired, 2);
    assert!(store.sweep(epoch, &concert, Number(0), later).await.unwrap().abandoned > 0);

    // Operators and product services.
    let paused = store.set_paused(&concert, true).await.unwrap().unwrap();
    assert!(paused.paused);
    assert!(!store.set_paused(&concert, false).await.unwrap().unwrap().paused);
    let revision = store.item(&concert).await.unwrap().unwrap().revision;
    store
        .set_policy(&concert, &Policy { max_active: Some(7), ..Policy::default() }, revision)
        .await
        .unwrap();
    assert_eq!(store.item(&concert).await.unwrap().unwrap().policy.max_active, Some(7));
    assert_eq!(store.set_settings(Some(0), None).await.unwrap().token_count_to_move, 0);
    let sold_out = ItemChange { stock: 0, ..change("concert", Policy::default()) };
    store.put_item(&sold_out, START).await.unwrap();
    store.journal_write("paused").await.unwrap();
    store.post_notice("process", "{}", START).await.unwrap();
    store.begin_catalogue("log").await.unwrap();
    assert!(store.end_catalogue("log").await.unwrap());

    // The outbox drains, lines are emptied.
    for partition in 0..PARTITIONS {
        let batches = store.outbox_read(partition, None, 1000).await.unwrap();
        let ids: Vec<_> = batches.into_iter().map(|batch| batch.id).collect();
        if !ids.is_empty() {
            store.outbox_ack(partition, &ids).await.unwrap();
        }
    }
    assert!(store.reset(&concert, START).await.unwrap().is_some());
    assert_eq!(store.counts(&[concert]).await.unwrap()[0].waiting, 0);
    assert!(store.remove_item(&other).await.unwrap());
}

#[tokio::test]
async fn admissions_and_returns_go_on_where_a_redis_is_full() {
    let Some(server) = daegi_testkit::redis_or_loud().await else { return };
    let (store, _) = full_store(&server).await;
    set_maxmemory(&server, 1).await;
    let (concert, epoch) = (item("concert"), store.begin_term(START).await.unwrap());
    let first = number(&store, "user-0").await;
    // Unseen for longer than the grace period: the whole chunk misses its turn.
    let later = START + 100_000;
    let admission = store.admit(epoch, &concert, 3, 0, 1000, later).await.unwrap();
    assert_eq!((admission.admitted, admission.missed > 0), (0, true));
    let back = store.resolve(&concert, &[(user("user-0"), first)], later).await.unwrap();
    assert_eq!(back, [Standing::At(Place::Waiting { position: 1 })]);
    let admission = store.admit(epoch, &concert, 1, 0, 1000, later + 1).await.unwrap();
    assert_eq!(admission.admitted, 1);
}
