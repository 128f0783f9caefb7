//! A Redis that is silent, says no, forgets, or hangs up: bounded waiting, no storm, and the store
//! is back by itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use daegi_domain::Policy;
use daegi_store::{RedisStore, SharedStore, Store};
use daegi_testkit::{Mood, Redis, RedisProxy, eventually};
use tokio::task::JoinSet;

use crate::support::{PARTITIONS, SETTINGS, START, change, item, users};

/// A person is told within a second.
const TOLD: Duration = Duration::from_secs(1);

/// Being told that a store is known to be away takes no time; this is what a busy machine needs.
const AT_ONCE: Duration = Duration::from_millis(100);

const BACK: Duration = Duration::from_secs(5);

/// A store with an item, and somebody between it and its Redis.
async fn behind_a_proxy() -> Option<(Redis, RedisProxy, SharedStore)> {
    let redis = daegi_testkit::redis_or_loud().await?;
    let proxy = RedisProxy::start(redis.port()).await.unwrap();
    let store = RedisStore::open(&proxy.url(), PARTITIONS, SETTINGS).await.unwrap();
    store.put_item(&change("concert", Policy::default()), START).await.unwrap();
    Some((redis, proxy, Arc::new(store)))
}

async fn join(store: &SharedStore) -> daegi_store::Result<()> {
    store.join(&item("concert"), &users(3), &SETTINGS, START).await.map(drop)
}

/// Asks once; the answer must be "away".
async fn refused_within(store: &SharedStore, limit: Duration) {
    let asked = Instant::now();
    let error = join(store).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(asked.elapsed() < limit, "{:?}: {error}", asked.elapsed());
}

async fn survives(mood: Mood) {
    let Some((_redis, proxy, store)) = behind_a_proxy().await else { return };
    join(&store).await.unwrap();
    proxy.set_mood(mood);
    // The first finds out, the second whether a new connection helps.
    refused_within(&store, TOLD).await;
    refused_within(&store, TOLD).await;
    // Nobody waits from then on but one who tries, now and then.
    let (commands, connections) = (proxy.commands(), proxy.connections());
    let (mut slow, mut quick, began) = (0, 0, Instant::now());
    while began.elapsed() < 2 * TOLD {
        let asked = Instant::now();
        refused_within(&store, TOLD).await;
        match asked.elapsed() {
            long if long > AT_ONCE => slow += 1,
            _ => quick += 1,
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(slow <= 4 && quick >= 50, "{slow} of them waited, {quick} were told at once");
    let (commands, connections) = (proxy.commands() - commands, proxy.connections() - connections);
    assert!(connections <= 15, "{connections} connections in two seconds");
    assert!(commands <= 60, "{commands} commands in two seconds");

    proxy.set_mood(Mood::Through);
    eventually(BACK, "the store is back", || async { join(&store).await.is_ok() }).await;
    for _ in 0..10 {
        join(&store).await.unwrap();
    }
    proxy.close().await;
}

#[tokio::test]
async fn one_that_accepts_and_does_not_answer_is_survived() {
    survives(Mood::Silent).await;
}

#[tokio::test]
async fn one_that_is_loading_is_survived() {
    survives(Mood::Refusing("LOADING Redis is loading the dataset in memory".into())).await;
}

#[tokio::test]
async fn one_that_became_a_replica_is_survived() {
    survives(Mood::Refusing("READONLY You can't write against a read only replica.".into())).await;
}

#[tokio::test]
async fn one_whose_cluster_is_down_is_survived() {
    survives(Mood::Refusing("CLUSTERDOWN The cluster is down".into())).await;
}

#[tokio::test]
async fn one_that_is_out_of_memory_is_asked_again_at_once() {
    let Some((_redis, proxy, store)) = behind_a_proxy().await else { return };
    proxy
        .set_mood(Mood::Refusing("OOM command not allowed when used memory > 'maxmemory'.".into()));
    refused_within(&store, AT_ONCE).await;
    proxy.set_mood(Mood::Through);
    join(&store).await.expect("it can serve again, so it is asked");
}

#[tokio::test]
async fn many_who_ask_at_once_are_all_told_in_time_and_do_not_become_a_storm() {
    let Some((_redis, proxy, store)) = behind_a_proxy().await else { return };
    proxy.set_mood(Mood::Silent);
    let before = proxy.commands();
    let mut asking = JoinSet::new();
    for _ in 0..200 {
        let store = store.clone();
        asking.spawn(async move {
            let (mut told, began) = (0, Instant::now());
            while began.elapsed() < 3 * TOLD {
                refused_within(&store, TOLD).await;
                told += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            told
        });
    }
    let told: usize = asking.join_all().await.into_iter().sum();
    // Who comes while one tries is told with it, everybody else at once.
    assert!(told >= 200 * 3, "{told}: nobody waits for more than one who tries");
    let sent = proxy.commands() - before;
    assert!(sent <= 200 + 60, "{sent} commands: one each, and then only those who try");
    proxy.set_mood(Mood::Through);
    eventually(BACK, "the store is back", || async { join(&store).await.is_ok() }).await;
}

#[tokio::test]
async fn scripts_that_were_forgotten_are_told_again_and_nobody_notices() {
    let Some((redis, _proxy, store)) = behind_a_proxy().await else { return };
    for _ in 0..3 {
        redis.ask::<()>(&["SCRIPT", "FLUSH"]).await.unwrap();
        join(&store).await.unwrap();
        store.begin_term(0).await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_broke_costs_only_who_was_using_it() {
    let Some((redis, _proxy, store)) = behind_a_proxy().await else { return };
    for _ in 0..3 {
        let _: u64 =
            redis.ask(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await.unwrap();
        // Whether the first call still meets the broken connection is a race.
        let _ = join(&store).await;
        join(&store).await.unwrap();
    }
}

#[tokio::test]
async fn a_paused_server_is_survived() {
    let Some(redis) = daegi_testkit::redis_or_loud().await else { return };
    let opened = RedisStore::open(&redis.url(), PARTITIONS, SETTINGS).await.unwrap();
    let store: SharedStore = Arc::new(opened);
    store.put_item(&change("concert", Policy::default()), START).await.unwrap();
    redis.pause().unwrap();
    for _ in 0..3 {
        refused_within(&store, TOLD).await;
    }
    redis.resume().unwrap();
    eventually(BACK, "the store is back", || async { join(&store).await.is_ok() }).await;
}
