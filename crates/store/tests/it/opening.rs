//! Opening a store: a server that cannot be used is refused with the reason.

use daegi_domain::Settings;
use daegi_store::{AdminStore, AdmissionStore, Error, MemoryStore, RedisStore, clock_skew};
use daegi_testkit::FakeRedis;

use crate::support::{PARTITIONS, SETTINGS};

#[tokio::test]
async fn another_number_of_partitions_is_refused() {
    let Some(server) = daegi_testkit::redis_or_skip().await else {
        return;
    };
    RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap();
    let error = RedisStore::open(server.config(), 16, SETTINGS).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the store has 4 partitions, this process was started with 16; set --partitions 4"
    );
}

#[tokio::test]
async fn memory_usage_contains_the_limit_of_the_server() {
    let Some(server) = daegi_testkit::redis_or_skip().await else {
        return;
    };
    server.command::<()>(&["CONFIG", "SET", "maxmemory", "100mb"]).await.unwrap();
    let store = RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap();
    let memory = store.memory().await.unwrap().unwrap();
    assert_eq!(memory.limit, 100 * 1024 * 1024);
    assert!((1..memory.limit).contains(&memory.used), "{memory:?}");
}

#[tokio::test]
async fn clock_skew_is_measured_against_the_server() {
    let Some(server) = daegi_testkit::redis_or_skip().await else {
        return;
    };
    let store = RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap();
    let system = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::try_from(since.as_millis()).unwrap()
    };
    // `None`: the machine was too slow for this measurement.
    if let Some(skew) = clock_skew::measure(&store, system).await.unwrap() {
        assert!(skew.abs() <= 300, "{skew} ms, on one machine");
    }
    if let Some(skew) = clock_skew::measure(&store, || system() + 5_000).await.unwrap() {
        assert!((4_700..5_300).contains(&skew), "{skew} ms");
    }
    let memory = MemoryStore::new(PARTITIONS, SETTINGS);
    assert_eq!(clock_skew::measure(&memory, system).await.unwrap(), None);
}

#[tokio::test]
async fn a_redis_that_is_too_old_is_refused() {
    let server = FakeRedis::start("5.0.7").await.unwrap();
    let error = RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap_err();
    assert_eq!(error.to_string(), "redis 5.0.7 is too old, 6.2 or newer is needed");
}

#[tokio::test]
async fn an_invalid_url_and_a_closed_port_are_different_errors() {
    let error = RedisStore::open("redis://:bad:port:", PARTITIONS, SETTINGS).await.unwrap_err();
    assert!(matches!(error, Error::InvalidUrl(_)), "{error}");
    let closed = format!("redis://127.0.0.1:{}", daegi_testkit::free_port());
    let error = RedisStore::open(&closed, PARTITIONS, SETTINGS).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}

#[tokio::test]
async fn a_server_of_another_topology_is_refused_with_the_reason() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    for (topology, service, reason) in [
        ("+cluster://", "", "no cluster"),
        ("+sentinel://", "/main", "no sentinel knows the service main"),
    ] {
        let mut redis = server.config();
        redis.url = redis.url.replace("://", topology) + service;
        let error = RedisStore::open(&redis, PARTITIONS, SETTINGS).await.unwrap_err();
        assert!(error.is_misconfigured(), "{topology}: {error}");
        assert!(error.to_string().contains(reason), "{topology}: {error}");
    }
}

#[tokio::test]
async fn settings_are_written_on_the_first_start_only() {
    let Some(server) = daegi_testkit::redis_or_skip().await else {
        return;
    };
    let first = RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap();
    first.set_settings(Some(77), None).await.unwrap();
    let other = Settings { token_count_to_move: 5, tick_ms: 50 };
    let second = RedisStore::open(server.config(), PARTITIONS, other).await.unwrap();
    let expected = Settings { token_count_to_move: 77, tick_ms: 1000 };
    assert_eq!(second.settings().await.unwrap(), expected);
}

#[tokio::test]
async fn a_server_that_restarts_is_used_again() {
    let Some(mut server) = daegi_testkit::redis_or_skip().await else {
        return;
    };
    let store = RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap();
    server.stop();
    assert!(store.settings().await.unwrap_err().is_transient());
    server.start_again().await.unwrap();
    // The restarted server has no scripts; the first call sends them.
    daegi_testkit::eventually(std::time::Duration::from_secs(10), "the store is back", || async {
        store.begin_term(0).await.is_ok()
    })
    .await;
}
