//! `POST simulate` and `POST …/forecast`.

use super::harness::{AdminHarness, ITEM};

#[tokio::test]
async fn a_sale_is_simulated_and_nothing_changes() {
    let admin = AdminHarness::open().await;
    let before = admin.ok(200, "GET", "/waiting-item", "").await;
    let sale = r#"{"arrivals":{"perMinute":[300,50]},"stock":100,"policy":{"tokensPerTick":5},
        "visitors":{"buyPercent":100,"checkoutSeconds":10},"seed":7}"#;
    let forecast = admin.ok(200, "POST", "/simulate", sale).await;
    assert_eq!((forecast["bought"].as_u64(), forecast["unsold"].as_u64()), (Some(100), Some(0)));
    assert!(forecast["soldOutSeconds"].as_u64().unwrap() > 20);
    // Users who come after the sell-out are refused.
    let joined = forecast["perMinute"]["joined"][0].as_u64().unwrap();
    assert!((100..300).contains(&joined), "{joined}");
    assert_eq!(admin.ok(200, "POST", "/simulate", sale).await, forecast, "the same seed");
    assert_eq!(admin.ok(200, "GET", "/waiting-item", "").await, before);
    assert_eq!(admin.ok(200, "GET", "/audit", "").await["entries"], serde_json::json!([]));
}

#[tokio::test]
async fn a_sale_that_is_too_large_or_wrong_is_refused_with_its_field() {
    let admin = AdminHarness::open().await;
    for (sale, says) in [
        (r#"{"arrivals":{"total":50001,"minutes":10},"stock":1}"#, "50001"),
        (
            r#"{"arrivals":{"total":10,"minutes":10},"stock":1,"policy":{"maxActive":0}}"#,
            "maxActive",
        ),
        (r#"{"arrivals":{"total":10,"minutes":10},"stock":1,"maxHours":49}"#, "maxHours"),
    ] {
        let detail = admin.refused(400, "INVALID_REQUEST", ("POST", "/simulate", sale)).await;
        assert!(detail.contains(says), "{sale}: {detail}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_simulation_runs_at_a_time() {
    let admin = AdminHarness::open().await;
    let sale = r#"{"arrivals":{"total":5000,"minutes":60,"shape":"steady"},"stock":9000}"#;
    let calls = (0..3).map(|_| admin.call("POST", "/simulate", sale));
    let replies = futures_util::future::join_all(calls).await;
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status.as_u16()).collect();
    assert_eq!(statuses, [200, 409, 409]);
}

#[tokio::test]
async fn a_change_of_the_rate_has_a_forecast_before_it_is_made() {
    let admin = AdminHarness::open().await;
    let users: Vec<_> = (0..120).map(|n| crate::harness::user(&format!("u{n}"))).collect();
    let (settings, now) = (admin.store.settings().await.unwrap(), admin.clock.now_ms());
    let id = crate::harness::item("concert");
    admin.store.join(&id, &users, &settings, now).await.unwrap();
    let forecast =
        async |change: &str| admin.ok(200, "POST", &format!("{ITEM}/forecast"), change).await;
    // 100 are for sale, and 10 are admitted per second.
    let present = forecast("{}").await;
    assert_eq!(
        (present["waiting"].as_u64(), present["withoutTurn"].as_u64()),
        (Some(120), Some(20))
    );
    assert_eq!(present["clearsInSeconds"]["p50"], 11);
    assert_eq!(forecast(r#"{"tokensPerTick":2}"#).await["clearsInSeconds"]["p50"], 51);
    assert!(forecast(r#"{"tokensPerTick":0}"#).await["clearsAt"].is_null());
    let narrow = forecast(r#"{"maxActive":10}"#).await;
    assert!(narrow["clearsInSeconds"]["p50"].as_u64().unwrap() > 5_000, "{narrow}");
    let item = admin.ok(200, "GET", ITEM, "").await;
    assert!(item["policy"]["maxActive"].is_null(), "nothing changes");
    let wrong = ("POST", "/waiting-item/concert/forecast", r#"{"maxActive":0}"#);
    admin.refused(400, "INVALID_REQUEST", wrong).await;
}
