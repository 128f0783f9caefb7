//! A store that does not fit is refused in words, before anybody waits in it.

use daegi_domain::Settings;
use daegi_store::{Error, MemoryStore, RedisStore, Store, clock_skew};
use daegi_testkit::FakeRedis;

use crate::support::{PARTITIONS, SETTINGS};

#[tokio::test]
async fn another_number_of_partitions_is_refused() {
    let Some(server) = daegi_testkit::redis_or_loud().await else {
        return;
    };
    RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap();
    let error = RedisStore::open(&server.url(), 16, SETTINGS).await.unwrap_err();
    assert_eq!(error.to_string(), "the store has 4 partitions, this process was started with 16");
}

#[tokio::test]
async fn a_server_tells_how_full_it_is() {
    let Some(server) = daegi_testkit::redis_or_loud().await else {
        return;
    };
    server.ask::<()>(&["CONFIG", "SET", "maxmemory", "100mb"]).await.unwrap();
    let store = RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap();
    let memory = store.memory().await.unwrap().unwrap();
    assert_eq!(memory.limit, 100 * 1024 * 1024);
    assert!((1..memory.limit).contains(&memory.used), "{memory:?}");
}

#[tokio::test]
async fn clock_skew_is_measured_against_the_server() {
    let Some(server) = daegi_testkit::redis_or_loud().await else {
        return;
    };
    let store = RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap();
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
async fn a_wrong_address_and_a_closed_port_are_told_apart() {
    let error = RedisStore::open("redis://:bad:port:", PARTITIONS, SETTINGS).await.unwrap_err();
    assert!(matches!(error, Error::Address(_)), "{error}");
    let closed = format!("redis://127.0.0.1:{}", daegi_testkit::free_port());
    let error = RedisStore::open(&closed, PARTITIONS, SETTINGS).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}

#[tokio::test]
async fn a_server_that_is_run_another_way_is_told() {
    let Some(server) = daegi_testkit::redis_or_loud().await else { return };
    let host = server.url().replace("redis://", "");
    for (address, told) in [
        (format!("redis+cluster://{host}"), "no cluster"),
        (format!("redis+sentinel://{host}/main"), "no sentinel knows the service main"),
    ] {
        let error = RedisStore::open(&address, PARTITIONS, SETTINGS).await.unwrap_err();
        assert!(error.is_misconfigured(), "{address}: {error}");
        assert!(error.to_string().contains(told), "{address}: {error}");
    }
}

#[tokio::test]
async fn settings_count_on_the_first_start_only() {
    let Some(server) = daegi_testkit::redis_or_loud().await else {
        return;
    };
    let first = RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap();
    first.set_settings(Some(77), None).await.unwrap();
    let other = Settings { token_count_to_move: 5, tick_ms: 50 };
    let second = RedisStore::open(&server.url(), PARTITIONS, other).await.unwrap();
    let expected = Settings { token_count_to_move: 77, tick_ms: 1000 };
    assert_eq!(second.settings().await.unwrap(), expected);
}

#[tokio::test]
async fn a_server_that_went_away_answers_again_when_it_is_back() {
    let Some(mut server) = daegi_testkit::redis_or_loud().await else {
        return;
    };
    let store = RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap();
    server.stop();
    assert!(store.settings().await.unwrap_err().is_transient());
    server.start_again().await.unwrap();
    // The scripts are gone with the old server; calling one loads it again.
    daegi_testkit::eventually(std::time::Duration::from_secs(10), "the store is back", || async {
        store.begin_term(0).await.is_ok()
    })
    .await;
}
