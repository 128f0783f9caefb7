//! Several servers at once, and somebody in between.

use std::time::Duration;

use daegi_testkit::{
    Mood, RedisProxy, eventually, redis_cluster_or_loud, redis_or_loud, redis_sentinel_or_loud,
};

const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn sentinels_name_a_master_that_has_a_replica() {
    let Some(mut servers) = redis_sentinel_or_loud().await else { return };
    let master = servers.master().await.unwrap();
    master.ask::<()>(&["SET", "place", "1"]).await.unwrap();
    let info: String = master.ask(&["INFO", "replication"]).await.unwrap();
    assert!(info.contains("role:master") && info.contains("connected_slaves:1"), "{info}");
    servers.flush().await.unwrap();
    let place: Option<u32> = servers.master().await.unwrap().ask(&["GET", "place"]).await.unwrap();
    assert_eq!(place, None);
}

#[tokio::test]
async fn a_cluster_shares_its_keys_and_has_replicas() {
    let Some(mut cluster) = redis_cluster_or_loud().await else { return };
    let owner = cluster.master_of("{p00}").await.unwrap();
    let port = owner.port();
    owner.ask::<()>(&["SET", "{p00}place", "1"]).await.unwrap();
    let other = cluster.another_master("{p00}").await.unwrap();
    assert_ne!(other.port(), port);
    let moved = other.ask::<u32>(&["GET", "{p00}place"]).await.unwrap_err();
    assert_eq!(moved.code(), Some("MOVED"));
    cluster.flush().await.unwrap();
    let place: Option<u32> = cluster.at(port).ask(&["GET", "{p00}place"]).await.unwrap();
    assert_eq!(place, None);
}

#[tokio::test]
async fn a_proxy_hands_on_says_no_and_is_silent() {
    let Some(redis) = redis_or_loud().await else { return };
    let proxy = RedisProxy::start(redis.port()).await.unwrap();
    let client = redis::Client::open(proxy.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let commands = proxy.commands();
    let ping = redis::cmd("PING");
    assert_eq!(ping.query_async::<String>(&mut connection).await.unwrap(), "PONG");
    proxy.set_mood(Mood::Refusing("LOADING soon".into()));
    let told = ping.query_async::<String>(&mut connection).await.unwrap_err();
    assert_eq!(told.code(), Some("LOADING"));
    proxy.set_mood(Mood::Silent);
    assert!(ping.query_async::<String>(&mut connection).await.unwrap_err().is_timeout());
    assert_eq!(proxy.commands() - commands, 3);
    proxy.close().await;
    eventually(SOON, "the connection is cut", async || {
        ping.query_async::<String>(&mut connection.clone())
            .await
            .is_err_and(|told| !told.is_timeout())
    })
    .await;
}

#[tokio::test]
async fn a_paused_redis_accepts_and_does_not_answer() {
    let Some(redis) = redis_or_loud().await else { return };
    redis.pause().unwrap();
    let told = redis.ask::<String>(&["PING"]).await.unwrap_err();
    assert!(told.is_timeout(), "{told}");
    redis.resume().unwrap();
    assert_eq!(redis.ask::<String>(&["PING"]).await.unwrap(), "PONG");
}
