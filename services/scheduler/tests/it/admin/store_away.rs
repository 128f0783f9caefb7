//! A store that does not answer is the operator's bad luck, never a 500 and never a hang.

use std::sync::Arc;

use daegi_domain::Settings;
use daegi_store::RedisStore;
use daegi_testkit::redis_or_loud;

use super::desk::{Desk, ITEM, QUOTA};

#[tokio::test]
async fn every_call_answers_unavailable_while_the_store_is_away() {
    let Some(mut redis) = redis_or_loud().await else {
        return;
    };
    let settings = Settings { token_count_to_move: 1, tick_ms: 1000 };
    let store = RedisStore::open(&redis.url(), 4, settings).await.unwrap();
    let desk = Desk::at(Arc::new(store));
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
        let detail = desk.refused(503, "UNAVAILABLE", call).await;
        assert!(!detail.contains("redis"), "{detail}");
    }
    let reply = desk.call("GET", QUOTA, "").await;
    assert_eq!(reply.headers["retry-after"], "1");
}
