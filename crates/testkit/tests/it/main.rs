//! Tests of the test kit: real and fake Redis servers, proxies, and a real Kafka.

mod kafka;
mod redis_setups;

use std::time::Duration;

use daegi_testkit::{
    FakeRedis, FaultProxy, LinkFault, durable_redis_or_skip, eventually, redis_or_skip,
};
use redis::AsyncCommands;

#[tokio::test]
async fn a_redis_is_empty_counts_its_commands_and_survives_an_outage_on_its_port() {
    let Some(mut redis) = redis_or_skip().await else {
        return;
    };
    let mut connection = redis.connection().await.unwrap();
    let _: () = connection.set("place", 1).await.unwrap();
    assert_eq!(redis.commandstats().await.unwrap()["set"], 1);

    let port = redis.port();
    redis.stop();
    assert!(redis.connection().await.is_err());

    redis.start_again().await.unwrap();
    assert_eq!(redis.port(), port);
    let mut connection = redis.connection().await.unwrap();
    let place: Option<u32> = connection.get("place").await.unwrap();
    assert_eq!(place, None);
}

#[tokio::test]
async fn a_durable_redis_has_lost_nothing_after_an_outage() {
    let Some(mut redis) = durable_redis_or_skip().await else {
        return;
    };
    let mut connection = redis.connection().await.unwrap();
    for place in 0..1_000 {
        let _: () = connection.set(place, place).await.unwrap();
    }
    redis.stop();
    redis.start_again().await.unwrap();
    let mut connection = redis.connection().await.unwrap();
    let places: u32 = redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap();
    assert_eq!(places, 1_000);
}

#[tokio::test]
async fn two_redis_servers_do_not_share_anything() {
    let (Some(one), Some(other)) = (redis_or_skip().await, redis_or_skip().await) else {
        return;
    };
    let _: () = one.connection().await.unwrap().set("place", 1).await.unwrap();
    let exists: bool = other.connection().await.unwrap().exists("place").await.unwrap();
    assert!(!exists);
}

#[tokio::test]
async fn a_dropped_redis_is_gone() {
    let Some(redis) = redis_or_skip().await else {
        return;
    };
    let address = ("127.0.0.1", redis.port());
    drop(redis);
    eventually(Duration::from_secs(5), "the port is closed", || async move {
        tokio::net::TcpStream::connect(address).await.is_err()
    })
    .await;
}

#[tokio::test]
async fn a_fake_redis_reports_its_version() {
    let fake = FakeRedis::start("5.0.14").await.unwrap();
    let client = redis::Client::open(fake.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let info: String = redis::cmd("INFO").arg("server").query_async(&mut connection).await.unwrap();
    assert!(info.contains("redis_version:5.0.14"), "{info}");
    let pong: String = redis::cmd("PING").query_async(&mut connection).await.unwrap();
    assert_eq!(pong, "PONG");
    let other: String =
        redis::cmd("SET").arg("a").arg("b").query_async(&mut connection).await.unwrap();
    assert_eq!(other, "OK");
}

#[tokio::test]
async fn a_fault_proxy_delivers_held_bytes_late_and_nothing_after_a_reset() {
    let Some(redis) = redis_or_skip().await else {
        return;
    };
    let proxy = FaultProxy::start(redis.port()).await.unwrap();
    let client = redis::Client::open(("127.0.0.1", proxy.port())).unwrap();
    let mut far = client.get_multiplexed_async_connection().await.unwrap();
    let soon = Duration::from_secs(10);
    let place = async || redis.command::<Option<u32>>(&["GET", "place"]).await.unwrap();

    proxy.set_fault(LinkFault::HoldAll);
    let set = far.set::<_, _, ()>("place", 1);
    assert!(tokio::time::timeout(Duration::from_millis(200), set).await.is_err());
    assert_eq!(place().await, None);
    proxy.set_fault(LinkFault::None);
    eventually(soon, "the late command arrives", async || place().await == Some(1)).await;

    proxy.set_fault(LinkFault::HoldReplies);
    let set = far.set::<_, _, ()>("place", 2);
    assert!(tokio::time::timeout(Duration::from_millis(200), set).await.is_err());
    assert_eq!(place().await, Some(2), "the request arrived, the reply was held");

    proxy.set_fault(LinkFault::TrapRequest(b"bait"));
    redis::cmd("SET").arg("place").arg(2).exec_async(&mut far).await.unwrap();
    let set = far.set::<_, _, ()>("bait", 1);
    assert!(tokio::time::timeout(Duration::from_millis(200), set).await.is_err());
    proxy.trapped().await;
    assert!(!redis.command::<bool>(&["EXISTS", "bait"]).await.unwrap());
    proxy.set_fault(LinkFault::None);
    let trapped = async || redis.command::<bool>(&["EXISTS", "bait"]).await.unwrap();
    eventually(soon, "the trapped request arrives", trapped).await;

    proxy.set_fault(LinkFault::Reset);
    assert!(far.set::<_, _, ()>("place", 3).await.is_err());
    assert!(client.get_multiplexed_async_connection().await.is_err());
    assert_eq!(place().await, Some(2));
}
