//! Reports of guards about the service behind a line.

use std::time::Duration;

use daegi_domain::ItemId;
use daegi_store::PaceStore;
use serde_json::json;

use crate::harness::Harness;

const ORIGIN: &str = "/internal/v1/item/concert/origin-health";

#[tokio::test(start_paused = true)]
async fn reports_of_all_instances_are_added_up_and_reach_the_store_within_a_second() {
    let harness = Harness::with_item("concert").await;
    let latency = json!([{ "upToMs": 50, "count": 90 }, { "upToMs": 400, "count": 10 }]);
    let shop_1 = json!({ "instance": "shop-1", "requests": 100, "errors": 2, "latency": latency });
    let shop_2 = json!({ "instance": "shop-2", "requests": 10, "p95Ms": 40 });
    for report in [&shop_1, &shop_1, &shop_2] {
        assert_eq!(harness.post(ORIGIN, &report.to_string()).await.status, 204);
    }
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let (id, now) = (ItemId::parse("concert").unwrap(), harness.clock.now_ms());
    let reports = harness.store.origin_reports(&id, now).await.unwrap();
    let [report] = reports.as_slice() else { panic!("one pod: {reports:?}") };
    assert_eq!((report.totals.requests, report.totals.errors, report.instances), (210, 4, 2));
    let p95 = report.totals.signal().p95_ms.unwrap();
    assert!((320..=450).contains(&p95), "{p95}");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn wild_reports_are_refused() {
    let harness = Harness::with_item("concert").await;
    let refused = |report: serde_json::Value| {
        let body = report.to_string();
        let harness = &harness;
        async move { harness.post(ORIGIN, &body).await.assert_problem(400, "INVALID_REQUEST") }
    };
    refused(json!({ "instance": "", "requests": 1 })).await;
    refused(json!({ "instance": "a b", "requests": 1 })).await;
    refused(json!({ "instance": "a".repeat(65), "requests": 1 })).await;
    refused(json!({ "instance": "a", "requests": 1, "errors": 2 })).await;
    refused(json!({ "instance": "a", "requests": 10_000_001 })).await;
    let bucket = json!({ "upToMs": 5, "count": 1 });
    refused(json!({ "instance": "a", "requests": 99, "latency": vec![&bucket; 65] })).await;
    refused(json!({ "instance": "a", "requests": 1, "latency": [bucket, bucket] })).await;
    refused(json!({ "instance": "a", "requests": 1, "latency": [bucket], "p95Ms": 5 })).await;
    refused(json!({ "instance": "a", "requests": 1, "p99Ms": 5 })).await;
    let unknown = "/internal/v1/item/unknown/origin-health";
    let report = json!({ "instance": "a", "requests": 1 }).to_string();
    harness.post(unknown, &report).await.assert_problem(404, "ITEM_NOT_FOUND");
    harness.end().await;
}
