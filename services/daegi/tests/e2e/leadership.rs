//! Exactly one scheduler leads: through hand-over, crash, pause and fencing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use daegi_domain::{ItemChange, ItemId, ItemName, Policy, Settings, UserId};
use daegi_runtime::Clock;
use daegi_scheduler::metrics;
use daegi_store::{Lease, RedisStore, SharedStore};
use daegi_testkit::{Redis, eventually, redis_or_skip};
use reqwest::Method;
use serde_json::{Value, json};

use crate::processes::{Fleet, FleetProcess};

/// The default of `--lease-ms`.
const LEASE: Duration = Duration::from_secs(3);
const SECOND: Duration = Duration::from_secs(1);
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Admissions per tick of 50 ms.
const QUOTA: u32 = 2;
const USERS: usize = 900;

/// A leader and two standbys, with the default lease.
async fn leader_and_standbys(redis: &Redis) -> (FleetProcess, Vec<FleetProcess>) {
    let fleet = Fleet::new(redis).env("DAEGI_LEASE_MS", &LEASE.as_millis().to_string());
    let leader = fleet.start_ready("daegi-scheduler").await;
    eventually(TEST_TIMEOUT, "the first leads", || leader.is_leader()).await;
    let standbys = vec![
        fleet.start_ready("daegi-scheduler").await,
        fleet.start_ready("daegi-scheduler").await,
    ];
    for standby in &standbys {
        assert!(!standby.is_leader().await);
    }
    (leader, standbys)
}

/// Returns the leader status that this replica reports.
async fn leader(replica: &FleetProcess) -> Value {
    replica.admin(Method::GET, "leader", Value::Null).await
}

/// Waits until one of them leads.
async fn next_term(standbys: &[FleetProcess]) {
    eventually(TEST_TIMEOUT, "a standby leads", async || {
        standbys[0].is_leader().await || standbys[1].is_leader().await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_gets_sigterm_hands_over_within_a_second() {
    let Some(redis) = redis_or_skip().await else { return };
    let (mut leader, standbys) = leader_and_standbys(&redis).await;
    let signalled = Instant::now();
    leader.sigterm();
    next_term(&standbys).await;
    assert!(signalled.elapsed() < SECOND, "after {:?}", signalled.elapsed());
    assert_eq!(leader.wait().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_killed_is_replaced_within_the_lease_and_a_second() {
    let Some(redis) = redis_or_skip().await else { return };
    let (leader, standbys) = leader_and_standbys(&redis).await;
    let killed = Instant::now();
    leader.kill();
    next_term(&standbys).await;
    assert!(killed.elapsed() < LEASE + SECOND, "after {:?}", killed.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn standbys_serve_operators_and_name_the_leader() {
    let Some(redis) = redis_or_skip().await else { return };
    let (first, standbys) = leader_and_standbys(&redis).await;
    let own = leader(&first).await;
    let (name, epoch) = (&own["replica"], &own["epoch"]);
    for standby in &standbys {
        let status = leader(standby).await;
        assert_eq!((&status["leading"], &status["leader"]), (&json!(false), name), "{status}");
        assert_eq!((&status["epoch"], &status["since"]), (epoch, &own["since"]));
        assert!(status["termSeconds"].is_u64() && status["replica"] != *name, "{status}");
        assert_eq!(standby.metric(metrics::IS_LEADER).await, 0.0);
    }
    let path = "waiting-queue/token-count-to-move";
    standbys[0].admin(Method::PUT, path, json!({ "tokenCountToMove": 77 })).await;
    assert_eq!(first.admin(Method::GET, path, Value::Null).await["tokenCountToMove"], 77);
    assert_eq!(first.metric(metrics::IS_LEADER).await, 1.0);
    assert_eq!(Some(first.metric(metrics::EPOCH).await), epoch.as_f64());
    let lasts = async || first.metric(metrics::TERM_SECONDS).await > 0.0;
    eventually(TEST_TIMEOUT, "the duration of the term is reported", lasts).await;
}

/// Creates a line of 900 users and one scheduler with a short lease that admits them.
async fn sale(redis: &Redis) -> (SharedStore, FleetProcess) {
    let settings = Settings { token_count_to_move: QUOTA, tick_ms: 50 };
    let store = RedisStore::open(&redis.url(), 16, settings).await.unwrap();
    let store: SharedStore = Arc::new(store);
    let concert = ItemChange {
        id: concert(),
        name: ItemName::parse("concert").unwrap(),
        stock: 100_000,
        enabled: true,
        version: None,
        policy: Some(Policy { grace_seconds: 0, ..Policy::default() }),
    };
    let now = Clock::system().now_ms();
    store.put_item(&concert, now).await.unwrap();
    let users: Vec<_> = (0..USERS).map(|n| UserId::parse(&format!("user-{n}")).unwrap()).collect();
    store.join(&concert.id, &users, &settings, now).await.unwrap();
    let scheduler = Fleet::new(redis).start_ready("daegi-scheduler").await;
    eventually(TEST_TIMEOUT, "users are admitted", async || entered(&store).await > 0).await;
    (store, scheduler)
}

fn concert() -> ItemId {
    ItemId::parse("concert").unwrap()
}

async fn entered(store: &SharedStore) -> u64 {
    store.counts(&[concert()]).await.unwrap()[0].entered
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_paused_for_longer_than_its_lease_admits_nothing_after_waking() {
    let Some(redis) = redis_or_skip().await else { return };
    let (store, scheduler) = sale(&redis).await;
    scheduler.pause();
    // This test takes the lease and admits no user.
    let lease = eventually(TEST_TIMEOUT, "the lease expires", async || {
        Lease::try_acquire(&*store, Duration::from_secs(300), Clock::system().now_ms())
            .await
            .unwrap()
    })
    .await;
    let before = entered(&store).await;
    assert!(before < USERS as u64, "no user is left to admit");
    scheduler.resume();
    let learned = async || scheduler.metric(metrics::HAND_OVERS).await > 0.0;
    eventually(TEST_TIMEOUT, "the old leader ends its term", learned).await;
    assert!(!scheduler.is_leader().await);
    assert_eq!(entered(&store).await, before);
    lease.release().await;
    eventually(TEST_TIMEOUT, "the scheduler leads and admits again", async || {
        entered(&store).await > before
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_calls_of_a_stale_leader_are_counted() {
    let Some(redis) = redis_or_skip().await else { return };
    let (store, scheduler) = sale(&redis).await;
    assert_eq!(scheduler.metric(metrics::STALE).await, 0.0);
    store.begin_term(Clock::system().now_ms()).await.unwrap();
    let counted = async || scheduler.metric(metrics::STALE).await == 1.0;
    eventually(TEST_TIMEOUT, "the rejected call is counted", counted).await;
    let status = leader(&scheduler).await;
    assert_eq!(
        (&status["staleRefusals"], &status["handOvers"]),
        (&json!(1), &json!(1)),
        "{status}"
    );
}
