//! The store is unavailable in the middle of a sale.

use std::time::{Duration, Instant};

use daegi_testkit::eventually;
use reqwest::StatusCode;

use crate::harness::DaegiHarness;

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_store_is_reported_within_a_second_and_service_recovers_without_a_restart() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let mut harness = DaegiHarness::open("redis", Some(redis), &[]).await;
    harness.stock("concert", 10).await;
    let token = harness.ticket("concert", "kim").await["token"].as_str().unwrap().to_owned();
    let mut redis = harness.redis.take().unwrap();
    redis.stop();

    eventually(Duration::from_secs(5), "polls return 503", || async {
        harness.poll("concert", &token).await.status() == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    let started = Instant::now();
    for response in [harness.join("concert", "lee").await, harness.poll("concert", &token).await] {
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key("retry-after"));
        assert_eq!(response.headers()["content-type"], "application/problem+json");
    }
    assert!(started.elapsed() < Duration::from_secs(2), "two responses, at most 1 s each");
    let alive = harness.http.get(format!("{}/livez", harness.internal)).send().await.unwrap();
    assert_eq!(alive.status(), StatusCode::OK, "a pod stays alive while its store is down");

    redis.start_again().await.unwrap();
    eventually(Duration::from_secs(20), "the api reaches the store again", || async {
        // The restarted server is empty, so 404 shows that the api reads from it again.
        harness.join("concert", "lee").await.status() == StatusCode::NOT_FOUND
    })
    .await;
    harness.stock("concert", 10).await;
    harness.quota(5).await;
    harness.ticket("concert", "lee").await;
    harness.until_entered("concert", 1).await;
    harness.close().await;
}
