//! Stock runs out and comes back.

use std::time::Duration;

use daegi_testkit::eventually;
use reqwest::StatusCode;
use serde_json::Value;

use crate::harness::DaegiHarness;

#[tokio::test(flavor = "multi_thread")]
async fn sold_out_stops_admission_for_every_ticket_and_a_restock_resumes_it() {
    for harness in DaegiHarness::each().await {
        harness.stock("concert", 1000).await;
        let mut tokens = Vec::new();
        for n in 0..100 {
            let ticket = harness.ticket("concert", &format!("user-{n}")).await;
            tokens.push(ticket["token"].as_str().unwrap().to_owned());
        }
        harness.quota(7).await;
        harness.until_entered("concert", 14).await;
        harness.stock("concert", 0).await;
        assert_all_sold_out(&harness, &tokens).await;
        let admitted = harness.counts("concert").await.1;

        let refused = harness.join("concert", "late").await;
        assert_eq!(refused.status(), StatusCode::CONFLICT, "{}", harness.name);
        assert_eq!(refused.json::<Value>().await.unwrap()["code"], "SOLD_OUT", "{}", harness.name);
        several_ticks(&harness).await;
        assert_eq!(
            harness.counts("concert").await.1,
            admitted,
            "{}: no admission since",
            harness.name
        );

        harness.stock("concert", 1000).await;
        harness.until_entered("concert", 100).await;
        harness.ticket("concert", "late").await;
        harness.close().await;
    }
}

async fn assert_all_sold_out(harness: &DaegiHarness, tokens: &[String]) {
    let last = tokens.last().unwrap();
    eventually(Duration::from_secs(5), "polls say SOLD_OUT", || async {
        harness.poll_ok("concert", last).await["lineState"] == "SOLD_OUT"
    })
    .await;
    for token in tokens {
        let ticket = harness.poll_ok("concert", token).await;
        assert_eq!(ticket["lineState"], "SOLD_OUT", "{}", harness.name);
    }
}

/// Waits for several ticks, measured by the admissions of another line.
async fn several_ticks(harness: &DaegiHarness) {
    harness.stock("clock", 1000).await;
    for n in 0..21 {
        harness.ticket("clock", &format!("tick-{n}")).await;
    }
    harness.until_entered("clock", 21).await;
}
