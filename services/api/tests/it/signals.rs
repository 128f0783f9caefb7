//! Signals that tickets belong to programs: which tickets get them, and that nothing follows from them.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use daegi_domain::SignalCounts;
use daegi_runtime::http::Peer;
use daegi_store::SignalStore;

use crate::harness::{Harness, id, line, request};

/// Two writes.
const WRITTEN: Duration = Duration::from_secs(6);
const PHONE: [(&str, &str); 3] =
    [("user-agent", "Mozilla/5.0 (iPhone)"), ("accept-language", "ko"), ("daegi-page", "1a2b")];
const SCRIPT: [(&str, &str); 1] = [("user-agent", "python-requests/2")];

impl Harness {
    async fn counts(&self) -> SignalCounts {
        tokio::time::sleep(WRITTEN).await;
        self.store.signal_counts(&id("concert"), self.clock.now_ms()).await.unwrap()
    }

    async fn join_as(&self, source: &str, user: &str, headers: &[(&str, &str)]) -> String {
        let headers: Vec<_> = headers.iter().copied().chain([("user-id", user)]).collect();
        let request = from(source, request(Method::POST, &line("concert"), &headers, ""));
        let joined = self.call(request).await;
        assert_eq!(joined.status, 201, "{}", joined.text);
        joined.json()["token"].as_str().unwrap().to_owned()
    }
}

fn from(source: &str, mut request: Request<Body>) -> Request<Body> {
    request.extensions_mut().insert(Peer(SocketAddr::new(source.parse().unwrap(), 4711)));
    request
}

#[tokio::test(start_paused = true)]
async fn a_campus_of_browsers_does_not_look_automated_and_a_program_does() {
    let harness = Harness::with_item("concert").await;
    for n in 0..50 {
        harness.join_as("203.0.113.9", &format!("student-{n}"), &PHONE).await;
    }
    let campus = harness.counts().await;
    assert_eq!(campus, SignalCounts { source: 30, ..SignalCounts::default() });
    for n in 0..30 {
        harness.join_as("198.51.100.1", &format!("fake-{n}"), &SCRIPT).await;
    }
    let counts = harness.counts().await;
    // The first 20 have no page only.
    let expected = SignalCounts {
        automated: 10,
        source: 40,
        headers: 10,
        no_page: 30,
        ..SignalCounts::default()
    };
    assert_eq!(counts, expected);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_api_client_does_not_look_automated() {
    let harness = Harness::with_item("concert").await;
    harness.join_as("198.51.100.1", "kim", &SCRIPT).await;
    let counts = harness.counts().await;
    assert_eq!(counts, SignalCounts { no_page: 1, ..SignalCounts::default() });
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn polls_that_come_far_too_early_are_a_signal_and_obedient_ones_are_not() {
    let harness = Harness::with_item("concert").await;
    let eager = harness.join_as("198.51.100.1", "kim", &PHONE).await;
    let obedient = harness.join_as("198.51.100.2", "lee", &PHONE).await;
    for _ in 0..12 {
        let wait = harness.poll("concert", &obedient).await.json()["pollAfterMs"].as_u64().unwrap();
        harness.poll("concert", &eager).await;
        harness.poll("concert", &eager).await;
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }
    let counts = harness.counts().await;
    assert_eq!(counts, SignalCounts { early_polls: 1, ..SignalCounts::default() });
    assert_eq!(harness.poll("concert", &eager).await.json()["position"], 1, "nothing follows");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_hidden_field_of_the_form_is_a_signal_of_its_own() {
    let harness = Harness::with_item("concert").await;
    let form = async |body: &str| {
        let headers =
            [("content-type", "application/x-www-form-urlencoded"), ("accept-language", "ko")];
        let pressed = request(Method::POST, "/wait/concert", &headers, body);
        assert_eq!(harness.call(pressed).await.header("location"), "/wait/concert");
    };
    let page = harness.get("/wait/concert").await;
    assert!(page.text.contains("name=\"website\""), "{}", page.text);
    form("").await;
    form("website=").await;
    assert_eq!(harness.counts().await, SignalCounts::default());
    form("website=spam").await;
    let expected = SignalCounts { automated: 1, honeypot: 1, ..SignalCounts::default() };
    assert_eq!(harness.counts().await, expected);
    harness.end().await;
}
