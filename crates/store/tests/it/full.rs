//! Redis at `maxmemory` refuses new tickets; everything else works.

use std::time::Duration;

use daegi_domain::{
    EndReason, ItemChange, Lane, LivenessPage, Number, Policy, StoreLimits, UserId,
};
use daegi_store::{
    AdminStore, AdmissionStore, CurrentLeader, EndOutcome, Epoch, ItemStore, JoinOutcome,
    JoinRefusal, Lease, LiveState, OutboxStore, RedisStore, ReplayStore, Store, TicketState,
    TicketStore,
};
use daegi_testkit::{Redis, eventually};
use tokio_util::sync::CancellationToken;

use crate::support::{PARTITIONS, SETTINGS, START, change, item, ticket_of, tickets_of, user};

const TTL: Duration = Duration::from_secs(30);

/// Memory for tickets beyond what an empty server uses.
const SPACE: u64 = 2 * 1024 * 1024;

async fn used_memory(store: &RedisStore) -> u64 {
    store.memory().await.unwrap().unwrap().used
}

async fn set_maxmemory(server: &Redis, bytes: u64) {
    server.command::<()>(&["CONFIG", "SET", "maxmemory", &bytes.to_string()]).await.unwrap();
}

fn user_range(from: usize, count: usize) -> Vec<UserId> {
    (from..from + count).map(|index| user(&format!("user-{index}"))).collect()
}

/// Joins users until Redis refuses; returns how many joined.
async fn fill(store: &RedisStore, id: &str) -> usize {
    let mut joined = 0;
    loop {
        let outcomes =
            store.join(&item(id), &user_range(joined, 500), &SETTINGS, START).await.unwrap();
        if outcomes.contains(&JoinOutcome::Refused(JoinRefusal::StoreFull)) {
            return joined;
        }
        joined += 500;
        assert!(joined < 200_000, "the server never became full");
    }
}

/// A store whose server has no memory left, and how many users its line has.
async fn full_store(server: &Redis) -> (RedisStore, usize) {
    let limits = StoreLimits { memory_high_percent: 100, ..StoreLimits::default() };
    let store = RedisStore::open_with(server.config(), PARTITIONS, SETTINGS, limits).await.unwrap();
    for id in ["concert", "other"] {
        store.put_item(&change(id, Policy::default()), START).await.unwrap();
    }
    store.join(&item("other"), &user_range(0, 5), &SETTINGS, START).await.unwrap();
    set_maxmemory(server, used_memory(&store).await + SPACE).await;
    let joined = fill(&store, "concert").await;
    (store, joined)
}

fn number_of(joined: &JoinOutcome) -> Number {
    match joined {
        JoinOutcome::Ticket { number, .. } => *number,
        JoinOutcome::Refused(why) => panic!("refused: {why:?}"),
    }
}

async fn number(store: &RedisStore, who: &str) -> Number {
    let joined = store.join(&item("concert"), &[user(who)], &SETTINGS, START).await.unwrap();
    number_of(&joined[0])
}

#[tokio::test]
async fn a_full_redis_refuses_only_new_tickets() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let (store, _) = full_store(&server).await;
    // Far below what is used, so that nothing below makes the server less than full.
    set_maxmemory(&server, 1).await;
    let (concert, other) = (item("concert"), item("other"));
    let joined = store.join(&concert, &[user("newcomer")], &SETTINGS, START).await.unwrap();
    assert_eq!(joined, [JoinOutcome::Refused(JoinRefusal::StoreFull)]);

    // A process that starts now and leads.
    let store = {
        drop(store);
        RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap()
    };
    let lease = Lease::try_acquire(&store, TTL, START).await.unwrap().expect("the lock is free");
    assert!(Lease::try_acquire(&store, TTL, START).await.unwrap().is_none(), "the lock is taken");
    let epoch = lease.epoch();
    let current = CurrentLeader { leader: "a".into(), epoch, since: START };
    store.lock().publish_leader(&current).await.unwrap();
    assert_eq!(store.lock().current_leader().await.unwrap(), Some(current));
    let (stop, lost) = (CancellationToken::new(), lease.lost());
    let holding = lease.hold(stop.clone());
    stop.cancel();
    holding.await;
    assert!(lost.is_cancelled());
    let lease = Lease::try_acquire(&store, TTL, START).await.unwrap().expect("released");
    let epoch: Epoch = lease.epoch();

    // Tickets are admitted, left, completed, expired and swept.
    assert_eq!(store.admit(epoch, &concert, 3, 0, 1000, START).await.unwrap().admitted, 3);
    let (first, fourth) = (number(&store, "user-0").await, number(&store, "user-3").await);
    let done = store
        .complete(&ticket_of(&concert, &user("user-0"), first), EndReason::Completed, START)
        .await;
    assert_eq!(done.unwrap(), EndOutcome::Ended);
    let left = store.leave(&ticket_of(&concert, &user("user-3"), fourth), START).await;
    assert_eq!(left.unwrap(), EndOutcome::Ended);
    store
        .mark_seen(&concert, Lane::STANDARD, &LivenessPage::of([fourth.next()]), START)
        .await
        .unwrap();
    let fifth = (user("user-4"), number(&store, "user-4").await);
    let state = store.resolve(&tickets_of(&concert, &[fifth]), START).await.unwrap();
    assert_eq!(state, [TicketState::Live(LiveState::Waiting { position: Some(1) })]);
    let later = START + 700_000;
    assert_eq!(store.expire(epoch, &concert, Lane::STANDARD, later).await.unwrap().expired, 2);
    assert!(
        store.sweep(epoch, &concert, Lane::STANDARD, Number(0), later).await.unwrap().abandoned > 0
    );

    // Calls of operators and product services.
    let paused = store.set_paused(&concert, true, later).await.unwrap().unwrap();
    assert!(paused.paused);
    assert!(!store.set_paused(&concert, false, later).await.unwrap().unwrap().paused);
    let revision = store.item(&concert).await.unwrap().unwrap().revision;
    store
        .set_policy(
            &concert,
            &Policy { max_active: Some(7), ..Policy::default() }.into(),
            revision,
            later,
        )
        .await
        .unwrap();
    assert_eq!(store.item(&concert).await.unwrap().unwrap().policy.max_active, Some(7));
    assert_eq!(store.set_settings(Some(0), None).await.unwrap().token_count_to_move, 0);
    let sold_out = ItemChange { stock: 0, ..change("concert", Policy::default()) };
    store.put_item(&sold_out, START).await.unwrap();
    store.append_audit("paused").await.unwrap();
    store.put_heartbeat("process", "{}", START).await.unwrap();
    store.begin_replay("log").await.unwrap();
    assert!(store.complete_replay("log").await.unwrap());

    // The outbox is acknowledged and lines are emptied.
    for partition in 0..PARTITIONS {
        let batches = store.outbox_read(partition, None, 1000).await.unwrap();
        let ids: Vec<_> = batches.into_iter().map(|batch| batch.id).collect();
        if !ids.is_empty() {
            store.outbox_ack(partition, &ids).await.unwrap();
        }
    }
    assert!(store.reset(&concert, START).await.unwrap().is_some());
    assert_eq!(store.counts(&[concert]).await.unwrap()[0].waiting, 0);
    assert!(store.remove_item(&other, later).await.unwrap());
}

#[tokio::test]
async fn admissions_and_returns_continue_on_a_full_redis() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let (store, _) = full_store(&server).await;
    set_maxmemory(&server, 1).await;
    let (concert, epoch) = (item("concert"), store.begin_term(START).await.unwrap());
    let first = number(&store, "user-0").await;
    // Unseen for longer than the grace period: the whole chunk misses its turn.
    let later = START + 100_000;
    let admission = store.admit(epoch, &concert, 3, 0, 1000, later).await.unwrap();
    assert_eq!((admission.admitted, admission.missed > 0), (0, true));
    let back =
        store.resolve(&tickets_of(&concert, &[(user("user-0"), first)]), later).await.unwrap();
    assert_eq!(back, [TicketState::Live(LiveState::Waiting { position: Some(1) })]);
    let admission = store.admit(epoch, &concert, 1, 0, 1000, later + 1).await.unwrap();
    assert_eq!(admission.admitted, 1);
}

#[tokio::test]
async fn above_the_high_water_mark_users_in_line_are_served_and_new_ones_refused() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let store = RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap();
    store.put_item(&change("concert", Policy::default()), START).await.unwrap();
    let concert = item("concert");
    store.join(&concert, &user_range(0, 2), &SETTINGS, START).await.unwrap();
    set_maxmemory(&server, used_memory(&store).await * 100 / 95).await;
    // One batch: a user that never joined between two who wait.
    let attempts = std::cell::Cell::new(0);
    let join = || {
        attempts.set(attempts.get() + 1);
        let batch = [user("user-1"), user(&format!("new-{}", attempts.get())), user("user-0")];
        let (store, concert) = (&store, &concert);
        async move { store.join(concert, &batch, &SETTINGS, START).await.unwrap() }
    };
    eventually(TTL, "the limit takes effect", || async {
        join().await[1] == JoinOutcome::Refused(JoinRefusal::StoreFull)
    })
    .await;
    let joined = join().await;
    let positions = [&joined[0], &joined[2]].map(|joined| match joined {
        JoinOutcome::Ticket {
            state: LiveState::Waiting { position: Some(position) },
            is_new: false,
            ..
        } => *position,
        other => panic!("{other:?}"),
    });
    assert_eq!(positions, [2, 1]);
    let epoch = store.begin_term(START).await.unwrap();
    assert_eq!(store.admit(epoch, &concert, 1, 0, 1000, START).await.unwrap().admitted, 1);
    set_maxmemory(&server, used_memory(&store).await * 10).await;
    eventually(TTL, "memory is free again", || async {
        matches!(join().await[1], JoinOutcome::Ticket { .. })
    })
    .await;
}

#[tokio::test]
async fn memory_is_measured_with_at_most_two_commands_per_second() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let store = RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap();
    store.put_item(&change("concert", Policy::default()), START).await.unwrap();
    let started = std::time::Instant::now();
    let calls = |stats: &std::collections::HashMap<String, u64>| {
        stats.get("info").copied().unwrap_or_default()
    };
    let before = server.commandstats().await.unwrap();
    for index in 0..200 {
        store.join(&item("concert"), &user_range(index, 1), &SETTINGS, START).await.unwrap();
    }
    let after = server.commandstats().await.unwrap();
    // Every join reads `INFO server` inside its script, to notice a fail-over.
    let measured = calls(&after) - calls(&before) - 200;
    assert!(measured <= started.elapsed().as_secs() + 2, "{measured} measurements");
}

#[tokio::test]
async fn a_redis_that_evicts_keys_is_refused_unless_allowed() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    server.command::<()>(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]).await.unwrap();
    let error = RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap_err();
    assert!(error.is_misconfigured(), "{error}");
    assert!(error.to_string().contains("maxmemory-policy volatile-lru"), "{error}");
    let limits = StoreLimits { allow_eviction: true, ..StoreLimits::default() };
    RedisStore::open_with(server.config(), PARTITIONS, SETTINGS, limits).await.unwrap();
}

#[tokio::test]
async fn the_sweep_frees_a_full_redis_and_joins_work_again() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let (store, joined) = full_store(&server).await;
    let (concert, epoch) = (item("concert"), store.begin_term(START).await.unwrap());
    let full = used_memory(&store).await;
    // Later than a loss could extend the lost range of a new line, so that ends have the short retention.
    let later = START + 2_200_000;
    let (mut swept, mut cursor) = (0, Number(0));
    loop {
        let sweep = store.sweep(epoch, &concert, Lane::STANDARD, cursor, later).await.unwrap();
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
    let past_retention = later + daegi_store::WAITING_END_RETENTION_MS;
    while store.expire(epoch, &concert, Lane::STANDARD, past_retention).await.unwrap().more {}
    let freed = full - used_memory(&store).await;
    assert!(freed > SPACE / 2, "{freed} of {SPACE} bytes for {joined} tickets");
    eventually(TTL, "joins work again", || async {
        let joined = store.join(&concert, &[user("new")], &SETTINGS, past_retention).await;
        joined.is_ok_and(|joined| matches!(joined[0], JoinOutcome::Ticket { .. }))
    })
    .await;
}
