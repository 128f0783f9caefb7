//! An unavailable store gives 503, never a 500 and never a hang.

use std::sync::Arc;

use daegi_domain::Settings;
use daegi_store::RedisStore;
use daegi_testkit::redis_or_skip;

use super::harness::{AdminHarness, ITEM, QUOTA};

#[tokio::test]
async fn every_call_returns_unavailable_while_the_store_is_down() {
    let Some(mut redis) = redis_or_skip().await else {
        return;
    };
    let settings = Settings { token_count_to_move: 1, tick_ms: 1000 };
    let store = RedisStore::open(&redis.url(), 4, settings).await.unwrap();
    let admin = AdminHarness::with_store(Arc::new(store));
    redis.stop();
    for call in [
        ("GET", QUOTA, ""),
        ("PUT", QUOTA, r#"{"tokenCountToMove":1}"#),
        ("GET", "/waiting-queue/token-count", ""),
        ("GET", "/waiting-item", ""),
        ("GET", ITEM, ""),
        ("DELETE", ITEM, ""),
        ("PATCH", "/waiting-item/concert/policy", "{}"),
        ("POST", "/waiting-item/concert/pause", ""),
        ("GET", "/leader", ""),
    ] {
        let detail = admin.refused(503, "UNAVAILABLE", call).await;
        assert!(!detail.contains("redis"), "{detail}");
    }
    let reply = admin.call("GET", QUOTA, "").await;
    assert_eq!(reply.headers["retry-after"], "1");
}
