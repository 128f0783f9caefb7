//! A Redis that is silent, rejects commands, loses scripts or closes connections: calls fail within a bound,
//! retries do not become a storm, and the store recovers without intervention.

use std::sync::Arc;
use std::time::{Duration, Instant};

use daegi_domain::Policy;
use daegi_store::{ItemStore, RedisStore, SharedStore};
use daegi_testkit::{ProxyMode, Redis, RedisProxy, eventually};
use tokio::task::JoinSet;

use crate::support::{PARTITIONS, SETTINGS, START, change, item, users};

/// The longest a call may take during an outage.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest a call may take that the circuit breaker rejects, on a busy machine.
const FAIL_FAST: Duration = Duration::from_millis(100);

const RECOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// A store with an item behind a proxy.
async fn proxied_store() -> Option<(Redis, RedisProxy, SharedStore)> {
    let redis = daegi_testkit::plain_redis_or_skip().await?;
    let proxy = RedisProxy::start(redis.port()).await.unwrap();
    let store = RedisStore::open(&proxy.url(), PARTITIONS, SETTINGS).await.unwrap();
    store.put_item(&change("concert", Policy::default()), START).await.unwrap();
    Some((redis, proxy, Arc::new(store)))
}

async fn join(store: &SharedStore) -> daegi_store::Result<()> {
    store.join(&item("concert"), &users(3), &SETTINGS, START).await.map(drop)
}

/// Calls once; the result must be a transient error.
async fn unavailable_within(store: &SharedStore, limit: Duration) {
    let started = Instant::now();
    let error = join(store).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(started.elapsed() < limit, "{:?}: {error}", started.elapsed());
}

async fn fails_fast_and_recovers(mode: ProxyMode) {
    let Some((_redis, proxy, store)) = proxied_store().await else { return };
    join(&store).await.unwrap();
    proxy.set_mode(mode);
    // The first call detects the outage, the second tries a new connection.
    unavailable_within(&store, CALL_TIMEOUT).await;
    unavailable_within(&store, CALL_TIMEOUT).await;
    // From then on only probes wait; other calls fail immediately.
    let (commands, connections) = (proxy.commands(), proxy.connections());
    let (mut slow, mut quick, began) = (0, 0, Instant::now());
    while began.elapsed() < 2 * CALL_TIMEOUT {
        let started = Instant::now();
        unavailable_within(&store, CALL_TIMEOUT).await;
        match started.elapsed() {
            long if long > FAIL_FAST => slow += 1,
            _ => quick += 1,
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(slow <= 4 && quick >= 50, "{slow} calls waited, {quick} failed immediately");
    let (commands, connections) = (proxy.commands() - commands, proxy.connections() - connections);
    assert!(connections <= 15, "{connections} connections in two seconds");
    assert!(commands <= 60, "{commands} commands in two seconds");

    proxy.set_mode(ProxyMode::Forward);
    eventually(RECOVERY_TIMEOUT, "the store recovers", || async { join(&store).await.is_ok() })
        .await;
    for _ in 0..10 {
        join(&store).await.unwrap();
    }
    proxy.close().await;
}

#[tokio::test]
async fn a_silent_server_fails_fast_until_it_recovers() {
    fails_fast_and_recovers(ProxyMode::Silent).await;
}

#[tokio::test]
async fn a_loading_server_fails_fast_until_it_recovers() {
    fails_fast_and_recovers(ProxyMode::Reject(
        "LOADING Redis is loading the dataset in memory".into(),
    ))
    .await;
}

#[tokio::test]
async fn a_read_only_replica_fails_fast_until_it_recovers() {
    fails_fast_and_recovers(ProxyMode::Reject(
        "READONLY You can't write against a read only replica.".into(),
    ))
    .await;
}

#[tokio::test]
async fn a_cluster_that_is_down_fails_fast_until_it_recovers() {
    fails_fast_and_recovers(ProxyMode::Reject("CLUSTERDOWN The cluster is down".into())).await;
}

#[tokio::test]
async fn a_server_out_of_memory_is_called_again_immediately() {
    let Some((_redis, proxy, store)) = proxied_store().await else { return };
    proxy.set_mode(ProxyMode::Reject(
        "OOM command not allowed when used memory > 'maxmemory'.".into(),
    ));
    unavailable_within(&store, FAIL_FAST).await;
    proxy.set_mode(ProxyMode::Forward);
    join(&store).await.expect("it can serve again, so it is started");
}

#[tokio::test]
async fn concurrent_calls_during_an_outage_fail_in_time_without_a_storm() {
    let Some((_redis, proxy, store)) = proxied_store().await else { return };
    proxy.set_mode(ProxyMode::Silent);
    let before = proxy.commands();
    let mut callers = JoinSet::new();
    for _ in 0..200 {
        let store = store.clone();
        callers.spawn(async move {
            let (mut failed, began) = (0, Instant::now());
            while began.elapsed() < 3 * CALL_TIMEOUT {
                unavailable_within(&store, CALL_TIMEOUT).await;
                failed += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            failed
        });
    }
    let failed: usize = callers.join_all().await.into_iter().sum();
    // A call during a probe fails with the probe, every other call immediately.
    assert!(failed >= 200 * 3, "{failed}: a call waits for at most one probe");
    let sent = proxy.commands() - before;
    assert!(sent <= 200 + 60, "{sent} commands: one each, then only probes");
    proxy.set_mode(ProxyMode::Forward);
    eventually(RECOVERY_TIMEOUT, "the store recovers", || async { join(&store).await.is_ok() })
        .await;
}

#[tokio::test]
async fn scripts_that_the_server_lost_are_sent_again() {
    let Some((redis, _proxy, store)) = proxied_store().await else { return };
    for _ in 0..3 {
        redis.command::<()>(&["SCRIPT", "FLUSH"]).await.unwrap();
        join(&store).await.unwrap();
        store.begin_term(0).await.unwrap();
    }
}

#[tokio::test]
async fn a_broken_connection_fails_at_most_one_call() {
    let Some((redis, _proxy, store)) = proxied_store().await else { return };
    for _ in 0..3 {
        let _: u64 =
            redis.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await.unwrap();
        // The first call may still use the broken connection; that is a race.
        let _ = join(&store).await;
        join(&store).await.unwrap();
    }
}

#[tokio::test]
async fn a_paused_server_fails_fast_until_it_recovers() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let opened = RedisStore::open(redis.config(), PARTITIONS, SETTINGS).await.unwrap();
    let store: SharedStore = Arc::new(opened);
    store.put_item(&change("concert", Policy::default()), START).await.unwrap();
    redis.pause().unwrap();
    for _ in 0..3 {
        unavailable_within(&store, CALL_TIMEOUT).await;
    }
    redis.resume().unwrap();
    eventually(RECOVERY_TIMEOUT, "the store recovers", || async { join(&store).await.is_ok() })
        .await;
}
