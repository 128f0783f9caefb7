//! A store that cannot be used gives 503, never a 500 and never a hang.

use std::sync::Arc;

use daegi_domain::Settings;
use daegi_store::{Error, RedisStore};
use daegi_testkit::{InterceptedStore, StoreInterceptor, redis_or_skip};

use super::harness::{AdminHarness, ITEM, QUOTA};
use crate::harness::memory;

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

/// Fails every call with the same error.
#[derive(Debug, Clone)]
struct Failing(Error);

impl StoreInterceptor for Failing {
    async fn before(&self, _: &'static str) -> daegi_store::Result<()> {
        Err(self.0.clone())
    }
}

#[tokio::test]
async fn an_error_that_no_retry_helps_says_what_to_do_and_names_no_host() {
    for (error, advice) in [
        (Error::InvalidUrl("10.0.0.7: WRONGPASS".into()), "correct --store (DAEGI_STORE)"),
        (Error::Corrupt("10.0.0.7: an item without stock".into()), "correct the data"),
        (Error::UnsupportedVersion { found: "5.0.1".into(), needed: "6.2" }, "too old"),
        (Error::Eviction { policy: "allkeys-lru".into() }, "set maxmemory-policy noeviction"),
        (Error::PartitionMismatch { stored: 16, given: 4 }, "set --partitions 16"),
    ] {
        let store = InterceptedStore { store: memory(1), interceptor: Failing(error) };
        let admin = AdminHarness::with_store(Arc::new(store));
        let reply = admin.call("GET", QUOTA, "").await;
        assert_eq!((reply.status.as_u16(), &reply.body["code"]), (503, &"UNAVAILABLE".into()));
        let detail = reply.body["detail"].as_str().unwrap();
        assert!(detail.contains(advice), "{detail}");
        assert!(!detail.contains("again") && !detail.contains("10.0.0.7"), "{detail}");
        assert!(!reply.headers.contains_key("retry-after"), "{detail}");
    }
}
