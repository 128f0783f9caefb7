//! A Redis at `maxmemory`: new tickets are refused, and everything else works.

use std::time::Duration;

use daegi_domain::{EndReason, ItemChange, Number, Policy, SeenPage, StoreLimits, UserId};
use daegi_store::{
    Closing, Epoch, Joined, Lease, Place, RedisStore, Refusal, Reign, Standing, Store,
};
use daegi_testkit::{Redis, eventually};
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
            Ok(answers) if answers.contains(&Joined::Refused(Refusal::StoreFull)) => return joined,
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
    let limits = StoreLimits { memory_high_percent: 100, ..StoreLimits::default() };
    let store = RedisStore::open_with(&server.url(), PARTITIONS, SETTINGS, limits).await.unwrap();
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
    match store.join(&concert, &[user("newcomer")], &SETTINGS, START).await {
        Ok(joined) => assert_eq!(joined, [Joined::Refused(Refusal::StoreFull)]),
        Err(error) => assert!(error.is_transient(), "{error}"),
    }

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
    let paused = store.set_paused(&concert, true, later).await.unwrap().unwrap();
    assert!(paused.paused);
    assert!(!store.set_paused(&concert, false, later).await.unwrap().unwrap().paused);
    let revision = store.item(&concert).await.unwrap().unwrap().revision;
    store
        .set_policy(&concert, &Policy { max_active: Some(7), ..Policy::default() }, revision, later)
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

#[tokio::test]
async fn above_the_high_water_mark_users_in_line_are_served_and_new_ones_refused() {
    let Some(server) = daegi_testkit::redis_or_loud().await else { return };
    let store = RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap();
    store.put_item(&change("concert", Policy::default()), START).await.unwrap();
    let concert = item("concert");
    store.join(&concert, &crowd(0, 2), &SETTINGS, START).await.unwrap();
    set_maxmemory(&server, used_memory(&store).await * 100 / 95).await;
    // One batch: a user that never joined between two who wait.
    let attempts = std::cell::Cell::new(0);
    let join = || {
        attempts.set(attempts.get() + 1);
        let batch = [user("user-1"), user(&format!("new-{}", attempts.get())), user("user-0")];
        let (store, concert) = (&store, &concert);
        async move { store.join(concert, &batch, &SETTINGS, START).await.unwrap() }
    };
    eventually(TTL, "the mark is noticed", || async {
        join().await[1] == Joined::Refused(Refusal::StoreFull)
    })
    .await;
    let joined = join().await;
    let positions = [&joined[0], &joined[2]].map(|joined| match joined {
        Joined::At { place: Place::Waiting { position }, new: false, .. } => *position,
        other => panic!("{other:?}"),
    });
    assert_eq!(positions, [2, 1]);
    let epoch = store.begin_term(START).await.unwrap();
    assert_eq!(store.admit(epoch, &concert, 1, 0, 1000, START).await.unwrap().admitted, 1);
    set_maxmemory(&server, used_memory(&store).await * 10).await;
    eventually(TTL, "memory is free again", || async {
        matches!(join().await[1], Joined::At { .. })
    })
    .await;
}

#[tokio::test]
async fn how_full_the_server_is_costs_two_commands_per_second() {
    let Some(server) = daegi_testkit::redis_or_loud().await else { return };
    let store = RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap();
    store.put_item(&change("concert", Policy::default()), START).await.unwrap();
    let started = std::time::Instant::now();
    let calls = |stats: &std::collections::HashMap<String, u64>| {
        stats.get("info").copied().unwrap_or_default()
    };
    let before = server.commandstats().await.unwrap();
    for index in 0..200 {
        store.join(&item("concert"), &crowd(index, 1), &SETTINGS, START).await.unwrap();
    }
    let after = server.commandstats().await.unwrap();
    // Every join reads `INFO server` inside its script, to notice a fail-over.
    let measured = calls(&after) - calls(&before) - 200;
    assert!(measured <= started.elapsed().as_secs() + 2, "{measured} measurements");
}

#[tokio::test]
async fn a_redis_that_evicts_keys_is_refused_unless_allowed() {
    let Some(server) = daegi_testkit::redis_or_loud().await else { return };
    server.ask::<()>(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]).await.unwrap();
    let error = RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap_err();
    assert!(error.is_misconfigured(), "{error}");
    assert!(error.to_string().contains("maxmemory-policy volatile-lru"), "{error}");
    let limits = StoreLimits { allow_eviction: true, ..StoreLimits::default() };
    RedisStore::open_with(&server.url(), PARTITIONS, SETTINGS, limits).await.unwrap();
}

#[tokio::test]
async fn the_sweep_frees_a_full_redis_and_joins_work_again() {
    let Some(server) = daegi_testkit::redis_or_loud().await else { return };
    let (store, joined) = full_store(&server).await;
    let (concert, epoch) = (item("concert"), store.begin_term(START).await.unwrap());
    let full = used_memory(&store).await;
    // Later than a loss could widen the lost range of a new line, so that ends are forgotten early.
    let later = START + 2_200_000;
    let (mut swept, mut cursor) = (0, Number(0));
    loop {
        let sweep = store.sweep(epoch, &concert, cursor, later).await.unwrap();
        (swept, cursor) = (swept + sweep.abandoned as usize, sweep.cursor);
        if cursor == Number(0) {
            break;
        }
    }
    assert_eq!(swept, joined);
    for partition in 0..PARTITIONS {
        let batches = store.outbox_read(partition, None, 10_000).await.unwrap();
        let ids: Vec<_> = batches.into_iter().map(|batch| batch.id).collect();
        if !ids.is_empty() {
            store.outbox_ack(partition, &ids).await.unwrap();
        }
    }
    let forgotten = later + daegi_store::WAITING_END_KEEP_MS;
    while store.expire(epoch, &concert, forgotten).await.unwrap().more {}
    let freed = full - used_memory(&store).await;
    assert!(freed > SPACE / 2, "{freed} of {SPACE} bytes for {joined} tickets");
    eventually(TTL, "joins work again", || async {
        let joined = store.join(&concert, &[user("new")], &SETTINGS, forgotten).await;
        joined.is_ok_and(|joined| matches!(joined[0], Joined::At { .. }))
    })
    .await;
}
