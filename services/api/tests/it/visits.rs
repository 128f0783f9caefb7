//! Visits through HTTP: what is counted, and that hostile headers change nothing else.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use daegi_api::VisitOptions;
use daegi_domain::history::MINUTE_MS;
use daegi_domain::visit::{Access, Browser, Device, Dimension, Total};
use daegi_domain::{VisitCounts, VisitLabel, VisitStep};
use daegi_store::HistoryStore;
use daegi_testkit::eventually;

use crate::harness::{Harness, NOW, TEST_TIMEOUT, id, line, request, ticket};

const PHONE: &str = "Mozilla/5.0 (Linux; Android 14; SM-S928N) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/27.0 Chrome/125.0.0.0 Mobile Safari/537.36";
const COMPUTER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0";

async fn counting() -> Harness {
    let country_header = Some("cf-ipcountry".parse().unwrap());
    let retention = Duration::from_secs(86_400);
    Harness::with_visits("concert", VisitOptions { country_header, retention }).await
}

/// Waits until the pod has written this many of a total, and returns all counts.
async fn written(harness: &Harness, total: Total, count: u64) -> VisitCounts {
    eventually(TEST_TIMEOUT, "the counts are written", async || {
        let minute = NOW / MINUTE_MS;
        let steps = minute..=minute + 10;
        let steps = harness.store.visits(&id("concert"), VisitStep::Minute, steps).await.unwrap();
        let mut all = VisitCounts::default();
        steps.iter().for_each(|(_, counts)| all.merge(counts));
        (all.get(total) == count).then_some(all)
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn shares_of_a_crowd_are_those_of_its_requests() {
    let harness = counting().await;
    for n in 0..100 {
        let user = format!("user-{n}");
        let (agent, country, language) = match n % 4 {
            0 => (COMPUTER, "US", "en-US,en;q=0.5"),
            _ => (PHONE, "KR", "ko-KR"),
        };
        let client = if n < 80 { "page;load=700" } else { "sdk-js" };
        let headers = [
            ("user-id", &*user),
            ("user-agent", agent),
            ("cf-ipcountry", country),
            ("accept-language", language),
            ("daegi-client", client),
        ];
        // Some through the fast path, some with a body through the router.
        let body = if n % 3 == 0 { "{}" } else { "" };
        let json = ("content-type", "application/json");
        let headers: Vec<_> = headers.into_iter().chain([json]).collect();
        let joined = harness.call(request(Method::POST, &line("concert"), &headers, body)).await;
        assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.text);
    }
    let counts = written(&harness, Total::Visits, 100).await;
    assert_eq!((counts.get(Device::Phone), counts.get(Device::Desktop)), (75, 25));
    assert_eq!((counts.get(Browser::Samsung), counts.get(Browser::Firefox)), (75, 25));
    assert_eq!((counts.get(Access::Page), counts.get(Access::Sdk)), (80, 20));
    let country = |text: &[u8]| counts.get(VisitLabel::country(Some(text)));
    assert_eq!((country(b"KR"), country(b"US")), (75, 25));
    let language = |text: &[u8]| counts.get(VisitLabel::language(Some(text)));
    assert_eq!((language(b"ko"), language(b"en")), (75, 25));
    assert_eq!(counts.get(VisitLabel::page_load(700)), 80);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn page_views_forms_reconnects_and_leaves_are_counted_and_polls_are_not() {
    let harness = counting().await;
    let token = harness.token("concert", "kim").await;
    assert_eq!(harness.join("concert", "kim").await.status, StatusCode::OK);
    for _ in 0..3 {
        assert_eq!(harness.get("/wait/concert").await.status, StatusCode::OK);
        harness.poll("concert", &token).await;
    }
    assert_eq!(harness.get("/wait/nothing").await.status, StatusCode::NOT_FOUND);
    let form = harness.call(request(Method::POST, "/wait/concert", &[], "")).await;
    assert_eq!(form.status, StatusCode::SEE_OTHER);
    let events = format!("{}/events", ticket("concert", &token));
    let stream = request(Method::GET, &events, &[("last-event-id", "1-0")], "");
    drop(harness.raw(stream).await);
    harness.clock.advance(Duration::from_secs(45));
    harness.leave("concert", &token).await;
    harness.leave("concert", &token).await;
    let counts = written(&harness, Total::Leaves, 1).await;
    let totals = [Total::Visits, Total::PageViews, Total::Reconnects].map(|it| counts.get(it));
    assert_eq!(totals, [2, 3, 2]);
    assert_eq!((counts.get(Access::Api), counts.get(Access::Form)), (1, 1));
    assert_eq!(counts.get(VisitLabel::time_to_leave(45_000)), 1);
    assert_eq!(counts.get(Dimension::Country.unknown()), 2);
    let missing = harness.store.visits(&id("nothing"), VisitStep::Hour, 0..=NOW).await.unwrap();
    assert_eq!(missing, [], "an item that does not exist is not counted");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn counts_are_written_when_the_process_stops() {
    let harness = counting().await;
    harness.join("concert", "kim").await;
    let store = harness.store.0.store.clone();
    harness.end().await;
    let hours = store.visits(&id("concert"), VisitStep::Hour, 0..=NOW).await.unwrap();
    assert_eq!(hours[0].1.get(Total::Visits), 1);
}

#[tokio::test(start_paused = true)]
async fn hostile_headers_are_counted_as_other_and_do_not_prevent_a_join() {
    let harness = counting().await;
    let long = "x".repeat(4_000);
    let crowd = ["'; DROP TABLE", "<script>", "ＫＲ", &long, "\u{7f}", "page;load=NaN"];
    let mut joined = 0;
    for (n, text) in crowd.iter().enumerate() {
        let names = ["user-agent", "cf-ipcountry", "accept-language", "daegi-client"];
        let user = format!("user-{n}");
        let headers: Vec<_> = names.iter().map(|name| (*name, *text)).collect();
        let headers: Vec<_> = headers.into_iter().chain([("user-id", &*user)]).collect();
        if text.parse::<axum::http::HeaderValue>().is_ok() {
            let reply = harness.call(request(Method::POST, &line("concert"), &headers, "")).await;
            assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
            joined += 1;
        }
    }
    let counts = written(&harness, Total::Visits, joined).await;
    assert_eq!((counts.get(Device::Other), counts.get(Browser::Other)), (joined, joined));
    assert_eq!(counts.of(Dimension::Country).count(), 1, "only other");
    assert_eq!(counts.of(Dimension::PageLoad).count(), 0);
    harness.end().await;
}
