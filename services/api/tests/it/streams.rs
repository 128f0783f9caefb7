//! Streams: what is sent, when, and what it costs.

use std::time::Duration;

use daegi_domain::Policy;
use daegi_store::ItemStore;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::harness::{Harness, MAX_STREAMS, id, ticket};
use crate::spy_store::StoreMode;

/// Joins users in this order.
async fn joined_users<const N: usize>(names: [&str; N]) -> (Harness, [String; N]) {
    let harness = Harness::with_item("concert").await;
    let mut tokens = Vec::new();
    for name in names {
        tokens.push(harness.token("concert", name).await);
    }
    (harness, tokens.try_into().unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_first_event_is_sent_immediately_and_equals_a_poll() {
    let (harness, [_, lee]) = joined_users(["kim", "lee"]).await;
    let polled = harness.poll("concert", &lee).await.json();
    let mut stream = harness.open_stream("concert", &lee, None).await;
    let event = stream.next_event().await.unwrap();
    assert!((1_000..=3_000).contains(&event.retry.unwrap()));
    assert!(event.id.is_some_and(|id| !id.is_empty()));
    let (mut sent, mut polled) = (event.data.unwrap(), polled);
    // Random in every response.
    sent["pollAfterMs"].take();
    polled["pollAfterMs"].take();
    assert_eq!(sent, polled);
    drop(stream);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_sends_all_changes_and_ends_with_the_ticket() {
    let (harness, [kim, lee]) = joined_users(["kim", "lee"]).await;
    let mut stream = harness.open_stream("concert", &lee, None).await;
    assert_eq!(stream.ticket().await["position"], 2);
    harness.leave("concert", &kim).await;
    assert_eq!(stream.ticket().await["position"], 1);
    harness.put_item("concert", 0, true).await;
    assert_eq!(stream.ticket().await["lineState"], "SOLD_OUT");
    harness.put_item("concert", 5, true).await;
    assert_eq!(stream.ticket().await["lineState"], "OPEN");
    let began = Instant::now();
    harness.admit("concert", 1).await;
    let turn = stream.ticket().await;
    assert_eq!((&turn["status"], &turn["position"]), (&"ENTERABLE".into(), &0.into()));
    assert!(turn["pass"].is_string());
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let body = format!("{{\"token\":\"{lee}\"}}");
    harness.post("/internal/v1/item/concert/entry/complete", &body).await;
    assert_eq!(stream.ticket().await["status"], "COMPLETED");
    assert_eq!(stream.next_event().await, None, "nothing can follow");
    harness.end().await;
}

/// Entries of a line without ends are checked rarely, those of a busy line not at every end.
#[tokio::test(start_paused = true)]
async fn a_completed_entry_is_sent_within_seconds_and_checks_share_calls() {
    let (harness, tokens) = joined_users(["kim", "lee", "park"]).await;
    let mut streams = Vec::new();
    for token in &tokens {
        streams.push(harness.open_stream("concert", token, None).await);
    }
    harness.admit("concert", 3).await;
    for stream in &mut streams {
        while stream.ticket().await["status"] != "ENTERABLE" {}
    }
    let resolves = harness.store.calls("resolve");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(harness.store.calls("resolve"), resolves, "nothing has ended");
    let began = Instant::now();
    let body = format!("{{\"token\":\"{}\"}}", tokens[1]);
    harness.post("/internal/v1/item/concert/entry/complete", &body).await;
    let resolves = harness.store.calls("resolve");
    assert_eq!(streams[1].ticket().await["status"], "COMPLETED");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let resolves = harness.store.calls("resolve") - resolves;
    assert!(resolves <= 2, "{resolves} calls for three entries");
    drop(streams);
    harness.end().await;
}

/// Joins, the state of the line and time do not affect an entry.
#[tokio::test(start_paused = true)]
async fn an_admission_is_sent_once() {
    let (harness, [kim]) = joined_users(["kim"]).await;
    let mut stream = harness.open_stream("concert", &kim, None).await;
    harness.admit("concert", 1).await;
    let turn = loop {
        let event = stream.next_event().await.unwrap();
        if event.data.as_ref().is_some_and(|ticket| ticket["status"] == "ENTERABLE") {
            break event.id.unwrap();
        }
    };
    harness.token("concert", "lee").await;
    harness.put_item("concert", 0, true).await;
    for _ in 0..3 {
        assert_eq!(stream.next_event().await.unwrap().data, None, "only that the pod is there");
    }
    drop(stream);
    let mut again = harness.open_stream("concert", &kim, Some(&turn)).await;
    assert_eq!(again.next_event().await.unwrap().data, None, "nor after coming back");
    drop(again);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_entry_is_sent_on_time() {
    let harness = Harness::with_item("concert").await;
    let policy = Policy { pass_ttl_seconds: 4, ..Policy::default() };
    harness.put("concert", 5, true, Some(policy)).await;
    let kim = harness.token("concert", "kim").await;
    let mut stream = harness.open_stream("concert", &kim, None).await;
    harness.admit("concert", 1).await;
    while stream.ticket().await["status"] != "ENTERABLE" {}
    let began = Instant::now();
    harness.clock.advance(Duration::from_secs(4));
    assert_eq!(stream.ticket().await["status"], "EXPIRED");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(stream.next_event().await, None);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_reconnecting_client_receives_only_changes() {
    let (harness, [kim, lee]) = joined_users(["kim", "lee"]).await;
    let mut stream = harness.open_stream("concert", &lee, None).await;
    let response = stream.next_event().await.unwrap().id.unwrap();
    drop(stream);
    let mut again = harness.open_stream("concert", &lee, Some(&response)).await;
    let greeting = again.next_event().await.unwrap();
    assert_eq!((greeting.data, greeting.id), (None, None), "that is known");
    harness.leave("concert", &kim).await;
    assert_eq!(again.ticket().await["position"], 1);
    drop(again);
    let mut late = harness.open_stream("concert", &lee, Some(&response)).await;
    assert_eq!(late.next_event().await.unwrap().data.unwrap()["position"], 1, "what was missed");
    drop(late);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn keep_alives_are_sent_on_a_silent_stream() {
    let (harness, [kim]) = joined_users(["kim"]).await;
    harness.put_item("concert", 0, true).await;
    let mut stream = harness.open_stream("concert", &kim, None).await;
    while stream.ticket().await["lineState"] != "SOLD_OUT" {}
    for _ in 0..3 {
        let began = Instant::now();
        let beat = stream.next_event().await.unwrap();
        assert_eq!((beat.data, beat.id), (None, None), "a comment, no event");
        let silence = began.elapsed();
        assert!((15..=20).contains(&silence.as_secs()), "{silence:?}");
    }
    drop(stream);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_receives_only_the_latest_state() {
    let (harness, tokens) = joined_users(["a", "b", "c", "d", "kim"]).await;
    let mut stream = harness.open_stream("concert", &tokens[4], None).await;
    assert_eq!(stream.ticket().await["position"], 5);
    for token in &tokens[..4] {
        harness.leave("concert", token).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    assert_eq!(stream.ticket().await["position"], 1, "and not 4, 3 and 2");
    drop(stream);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn streams_need_no_store_calls_and_mark_their_tickets_as_seen() {
    let (harness, [_, lee]) = joined_users(["kim", "lee"]).await;
    let mut streams = Vec::new();
    for _ in 0..MAX_STREAMS {
        let mut stream = harness.open_stream("concert", &lee, None).await;
        stream.ticket().await;
        streams.push(stream);
    }
    let number = harness.number("concert", &lee);
    let (looks, marks) =
        (harness.store.calls("snapshot"), harness.store.marks(&id("concert"), number));
    let began = Instant::now();
    join_all(streams.iter_mut().map(|stream| async {
        stream.next_event().await;
        stream.next_event().await;
    }))
    .await;
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(29), "{took:?}");
    let looks = harness.store.calls("snapshot") - looks;
    assert!(looks as u128 <= took.as_millis() / 190 + 2, "{looks} looks in {took:?}");
    assert_eq!(harness.store.calls("resolve"), 0);
    let marks = harness.store.marks(&id("concert"), number) - marks;
    assert!(marks >= 5, "{marks} marks in {took:?} are too few for a grace period of 10 s");
    drop(streams);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn streams_beyond_the_limit_are_refused_with_503() {
    let (harness, [kim]) = joined_users(["kim"]).await;
    let mut streams = Vec::new();
    for _ in 0..MAX_STREAMS {
        streams.push(harness.open_stream("concert", &kim, None).await);
    }
    let refused = harness.get(&format!("{}/events", ticket("concert", &kim))).await;
    refused.assert_problem(503, "UNAVAILABLE");
    assert!(!refused.header("retry-after").is_empty());
    assert_eq!(harness.poll("concert", &kim).await.status, 200);
    streams.pop();
    streams.push(harness.open_stream("concert", &kim, None).await);
    drop(streams);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_shuts_down_sends_spread_reconnect_delays() {
    let (harness, [_, lee]) = joined_users(["kim", "lee"]).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut stream = harness.open_stream("concert", &lee, None).await;
        stream.ticket().await;
        streams.push(stream);
    }
    harness.shutdown.stop_now();
    let mut waits = Vec::new();
    for stream in &mut streams {
        waits.push(stream.next_event().await.unwrap().retry.unwrap());
        assert_eq!(stream.next_event().await, None);
    }
    assert!(waits.iter().all(|ms| (1_000..=8_000).contains(ms)), "{waits:?}");
    let (soonest, latest) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
    assert!(latest - soonest > 2_000, "{waits:?} are not spread");
    drop(streams);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_outage_does_not_end_streams() {
    let (harness, [kim, lee]) = joined_users(["kim", "lee"]).await;
    let mut stream = harness.open_stream("concert", &lee, None).await;
    assert_eq!(stream.ticket().await["position"], 2);
    harness.store.set_mode(StoreMode::Refusing);
    let beat = stream.next_event().await.unwrap();
    assert_eq!(beat.data, None, "a keep-alive carries no data while the line is unknown");
    harness.store.set_mode(StoreMode::Up);
    harness.leave("concert", &kim).await;
    assert_eq!(stream.ticket().await["position"], 1);
    drop(stream);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_item_ends_the_stream_with_a_problem() {
    let (harness, [kim]) = joined_users(["kim"]).await;
    let mut stream = harness.open_stream("concert", &kim, None).await;
    stream.ticket().await;
    harness.store.remove_item(&id("concert"), harness.clock.now_ms()).await.unwrap();
    stream.assert_ends_with("ITEM_NOT_FOUND", 404).await;
    let again = harness.get(&format!("{}/events", ticket("concert", &kim))).await;
    again.assert_problem(404, "ITEM_NOT_FOUND");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_restarted_line_ends_the_stream_with_a_problem() {
    let (harness, [kim]) = joined_users(["kim"]).await;
    let mut stream = harness.open_stream("concert", &kim, None).await;
    stream.ticket().await;
    harness.store.reset(&id("concert"), harness.clock.now_ms()).await.unwrap();
    stream.assert_ends_with("LINE_RESTARTED", 410).await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_token_that_cannot_poll_cannot_stream() {
    let (harness, [kim]) = joined_users(["kim"]).await;
    harness.put_item("other", 5, true).await;
    for (uri, status, code) in [
        (ticket("concert", "forged"), 401, "INVALID_TOKEN"),
        (ticket("other", &kim), 403, "TOKEN_MISMATCH"),
        (ticket("concert", "me"), 401, "INVALID_TOKEN"),
    ] {
        harness.get(&format!("{uri}/events")).await.assert_problem(status, code);
    }
    let plain = harness.get(&format!("{}/ws", ticket("concert", &kim))).await;
    plain.assert_problem(400, "INVALID_REQUEST");
    harness.end().await;
}
