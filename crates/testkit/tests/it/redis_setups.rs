//! Sentinels, clusters and the Redis proxy.

use std::time::Duration;

use daegi_testkit::{
    ProxyMode, RedisProxy, eventually, redis_cluster_or_skip, redis_or_skip, redis_sentinel_or_skip,
};

const TEST_TIMEOUT: Duration = Duration::from_secs(5);

#[tokio::test]
async fn sentinels_name_a_master_that_has_a_replica() {
    let Some(mut servers) = redis_sentinel_or_skip().await else { return };
    let master = servers.master().await.unwrap();
    master.command::<()>(&["SET", "place", "1"]).await.unwrap();
    let info: String = master.command(&["INFO", "replication"]).await.unwrap();
    assert!(info.contains("role:master") && info.contains("connected_slaves:1"), "{info}");
    servers.flush().await.unwrap();
    let place: Option<u32> =
        servers.master().await.unwrap().command(&["GET", "place"]).await.unwrap();
    assert_eq!(place, None);
}

#[tokio::test]
async fn a_cluster_shares_its_keys_and_has_replicas() {
    let Some(mut cluster) = redis_cluster_or_skip().await else { return };
    let owner = cluster.master_of("{p00}").await.unwrap();
    let port = owner.port();
    owner.command::<()>(&["SET", "{p00}place", "1"]).await.unwrap();
    let other = cluster.another_master("{p00}").await.unwrap();
    assert_ne!(other.port(), port);
    let moved = other.command::<u32>(&["GET", "{p00}place"]).await.unwrap_err();
    assert_eq!(moved.code(), Some("MOVED"));
    cluster.flush().await.unwrap();
    let place: Option<u32> = cluster.at(port).command(&["GET", "{p00}place"]).await.unwrap();
    assert_eq!(place, None);
}

#[tokio::test]
async fn a_redis_proxy_forwards_rejects_and_stays_silent() {
    let Some(redis) = redis_or_skip().await else { return };
    let proxy = RedisProxy::start(redis.port()).await.unwrap();
    let client = redis::Client::open(proxy.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let commands = proxy.commands();
    let ping = redis::cmd("PING");
    assert_eq!(ping.query_async::<String>(&mut connection).await.unwrap(), "PONG");
    proxy.set_mode(ProxyMode::Reject("LOADING soon".into()));
    let error = ping.query_async::<String>(&mut connection).await.unwrap_err();
    assert_eq!(error.code(), Some("LOADING"));
    proxy.set_mode(ProxyMode::Silent);
    assert!(ping.query_async::<String>(&mut connection).await.unwrap_err().is_timeout());
    assert_eq!(proxy.commands() - commands, 3);
    proxy.close().await;
    eventually(TEST_TIMEOUT, "the connection is cut", async || {
        ping.query_async::<String>(&mut connection.clone())
            .await
            .is_err_and(|error| !error.is_timeout())
    })
    .await;
}

#[tokio::test]
async fn a_paused_redis_accepts_and_does_not_reply() {
    let Some(redis) = redis_or_skip().await else { return };
    redis.pause().unwrap();
    let error = redis.command::<String>(&["PING"]).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    redis.resume().unwrap();
    assert_eq!(redis.command::<String>(&["PING"]).await.unwrap(), "PONG");
}
