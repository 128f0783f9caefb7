//! The store goes away in the middle of a sale.

use std::time::{Duration, Instant};

use daegi_testkit::eventually;
use reqwest::StatusCode;

use crate::room::Room;

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_gone_is_told_within_a_second_and_recovers_by_itself() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let mut room = Room::open("redis", Some(redis), &[]).await;
    room.stock("concert", 10).await;
    let token = room.ticket("concert", "kim").await["token"].as_str().unwrap().to_owned();
    let mut redis = room.redis.take().unwrap();
    redis.stop();

    eventually(Duration::from_secs(5), "polls are refused", || async {
        room.poll("concert", &token).await.status() == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    let asked = Instant::now();
    for answer in [room.join("concert", "lee").await, room.poll("concert", &token).await] {
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(answer.headers().contains_key("retry-after"));
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
    }
    assert!(asked.elapsed() < Duration::from_secs(2), "two answers, a second each at most");
    let alive = room.http.get(format!("{}/livez", room.internal)).send().await.unwrap();
    assert_eq!(alive.status(), StatusCode::OK, "a pod does not die with its store");

    redis.start_again().await.unwrap();
    eventually(Duration::from_secs(20), "the api answers again", || async {
        // This server came back empty: what counts is that it is asked again.
        room.join("concert", "lee").await.status() == StatusCode::NOT_FOUND
    })
    .await;
    room.stock("concert", 10).await;
    room.quota(5).await;
    room.ticket("concert", "lee").await;
    room.until_entered("concert", 1).await;
    room.close().await;
}
