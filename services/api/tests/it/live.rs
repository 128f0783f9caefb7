//! People who listen: what they are told, when, and what it costs.

use std::time::Duration;

use daegi_domain::Policy;
use daegi_store::Store;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::harness::{MAX_STREAMS, World, id, ticket};
use crate::probe::Mood;

/// People in a line, in their order.
async fn people<const N: usize>(names: [&str; N]) -> (World, [String; N]) {
    let world = World::with_item("concert").await;
    let mut tokens = Vec::new();
    for name in names {
        tokens.push(world.token("concert", name).await);
    }
    (world, tokens.try_into().unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_first_event_comes_at_once_and_is_what_a_poll_answers() {
    let (world, [_, lee]) = people(["kim", "lee"]).await;
    let polled = world.poll("concert", &lee).await.json();
    let mut stream = world.listen("concert", &lee, None).await;
    let said = stream.said().await.unwrap();
    assert!((1_000..=3_000).contains(&said.retry.unwrap()));
    assert!(said.id.is_some_and(|id| !id.is_empty()));
    let (mut told, mut polled) = (said.data.unwrap(), polled);
    // Spread anew in every answer.
    told["pollAfterMs"].take();
    polled["pollAfterMs"].take();
    assert_eq!(told, polled);
    drop(stream);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_the_whole_story_and_ends_with_it() {
    let (world, [kim, lee]) = people(["kim", "lee"]).await;
    let mut stream = world.listen("concert", &lee, None).await;
    assert_eq!(stream.ticket().await["position"], 2);
    world.leave("concert", &kim).await;
    assert_eq!(stream.ticket().await["position"], 1);
    world.put_item("concert", 0, true).await;
    assert_eq!(stream.ticket().await["lineState"], "SOLD_OUT");
    world.put_item("concert", 5, true).await;
    assert_eq!(stream.ticket().await["lineState"], "OPEN");
    let began = Instant::now();
    world.admit("concert", 1).await;
    let turn = stream.ticket().await;
    assert_eq!((&turn["status"], &turn["position"]), (&"ENTERABLE".into(), &0.into()));
    assert!(turn["pass"].is_string());
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let body = format!("{{\"token\":\"{lee}\"}}");
    world.post("/internal/v1/item/concert/entry/complete", &body).await;
    assert_eq!(stream.ticket().await["status"], "COMPLETED");
    assert_eq!(stream.said().await, None, "nothing can follow");
    world.end().await;
}

/// A line in which nobody's ticket ends is asked about rarely, a busy one not at every end.
#[tokio::test(start_paused = true)]
async fn an_order_that_is_placed_is_told_within_seconds_and_asked_for_together() {
    let (world, tokens) = people(["kim", "lee", "park"]).await;
    let mut streams = Vec::new();
    for token in &tokens {
        streams.push(world.listen("concert", token, None).await);
    }
    world.admit("concert", 3).await;
    for stream in &mut streams {
        while stream.ticket().await["status"] != "ENTERABLE" {}
    }
    let asked = world.store.calls("resolve");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.store.calls("resolve"), asked, "nothing has ended");
    let began = Instant::now();
    let body = format!("{{\"token\":\"{}\"}}", tokens[1]);
    world.post("/internal/v1/item/concert/entry/complete", &body).await;
    let asked = world.store.calls("resolve");
    assert_eq!(streams[1].ticket().await["status"], "COMPLETED");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let asked = world.store.calls("resolve") - asked;
    assert!(asked <= 2, "{asked} calls for three people");
    drop(streams);
    world.end().await;
}

/// Others join, the line stands still, time goes by: none of that is news to who is inside.
#[tokio::test(start_paused = true)]
async fn a_turn_is_told_once() {
    let (world, [kim]) = people(["kim"]).await;
    let mut stream = world.listen("concert", &kim, None).await;
    world.admit("concert", 1).await;
    let turn = loop {
        let said = stream.said().await.unwrap();
        if said.data.as_ref().is_some_and(|ticket| ticket["status"] == "ENTERABLE") {
            break said.id.unwrap();
        }
    };
    world.token("concert", "lee").await;
    world.put_item("concert", 0, true).await;
    for _ in 0..3 {
        assert_eq!(stream.said().await.unwrap().data, None, "only that the pod is there");
    }
    drop(stream);
    let mut again = world.listen("concert", &kim, Some(&turn)).await;
    assert_eq!(again.said().await.unwrap().data, None, "nor after coming back");
    drop(again);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_runs_out_is_told_on_time() {
    let world = World::with_item("concert").await;
    let policy = Policy { pass_ttl_seconds: 4, ..Policy::default() };
    world.put("concert", 5, true, Some(policy)).await;
    let kim = world.token("concert", "kim").await;
    let mut stream = world.listen("concert", &kim, None).await;
    world.admit("concert", 1).await;
    while stream.ticket().await["status"] != "ENTERABLE" {}
    let began = Instant::now();
    world.clock.advance(Duration::from_secs(4));
    assert_eq!(stream.ticket().await["status"], "EXPIRED");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(stream.said().await, None);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_back_hears_only_what_is_new() {
    let (world, [kim, lee]) = people(["kim", "lee"]).await;
    let mut stream = world.listen("concert", &lee, None).await;
    let heard = stream.said().await.unwrap().id.unwrap();
    drop(stream);
    let mut again = world.listen("concert", &lee, Some(&heard)).await;
    let greeting = again.said().await.unwrap();
    assert_eq!((greeting.data, greeting.id), (None, None), "that is known");
    world.leave("concert", &kim).await;
    assert_eq!(again.ticket().await["position"], 1);
    drop(again);
    let mut late = world.listen("concert", &lee, Some(&heard)).await;
    assert_eq!(late.said().await.unwrap().data.unwrap()["position"], 1, "what was missed");
    drop(late);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn silence_is_never_long() {
    let (world, [kim]) = people(["kim"]).await;
    world.put_item("concert", 0, true).await;
    let mut stream = world.listen("concert", &kim, None).await;
    while stream.ticket().await["lineState"] != "SOLD_OUT" {}
    for _ in 0..3 {
        let began = Instant::now();
        let beat = stream.said().await.unwrap();
        assert_eq!((beat.data, beat.id), (None, None), "a comment, no event");
        let silence = began.elapsed();
        assert!((15..=20).contains(&silence.as_secs()), "{silence:?}");
    }
    drop(stream);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_the_newest_state_only() {
    let (world, tokens) = people(["a", "b", "c", "d", "kim"]).await;
    let mut stream = world.listen("concert", &tokens[4], None).await;
    assert_eq!(stream.ticket().await["position"], 5);
    for token in &tokens[..4] {
        world.leave("concert", token).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    assert_eq!(stream.ticket().await["position"], 1, "and not 4, 3 and 2");
    drop(stream);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn listening_costs_the_store_nothing_and_counts_as_being_there() {
    let (world, [_, lee]) = people(["kim", "lee"]).await;
    let mut streams = Vec::new();
    for _ in 0..MAX_STREAMS {
        let mut stream = world.listen("concert", &lee, None).await;
        stream.ticket().await;
        streams.push(stream);
    }
    let number = world.number("concert", &lee);
    let (looks, marks) = (world.store.calls("snapshot"), world.store.marks(&id("concert"), number));
    let began = Instant::now();
    join_all(streams.iter_mut().map(|stream| async {
        stream.said().await;
        stream.said().await;
    }))
    .await;
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(29), "{took:?}");
    let looks = world.store.calls("snapshot") - looks;
    assert!(looks as u128 <= took.as_millis() / 190 + 2, "{looks} looks in {took:?}");
    assert_eq!(world.store.calls("resolve"), 0);
    let marks = world.store.marks(&id("concert"), number) - marks;
    assert!(marks >= 5, "{marks} marks in {took:?} are too few for a grace period of 10 s");
    drop(streams);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn beyond_the_limit_people_are_told_to_poll() {
    let (world, [kim]) = people(["kim"]).await;
    let mut streams = Vec::new();
    for _ in 0..MAX_STREAMS {
        streams.push(world.listen("concert", &kim, None).await);
    }
    let refused = world.get(&format!("{}/events", ticket("concert", &kim))).await;
    refused.is_problem(503, "UNAVAILABLE");
    assert!(!refused.header("retry-after").is_empty());
    assert_eq!(world.poll("concert", &kim).await.status, 200);
    streams.pop();
    streams.push(world.listen("concert", &kim, None).await);
    drop(streams);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_closes_says_when_to_come_back_and_not_all_at_once() {
    let (world, [_, lee]) = people(["kim", "lee"]).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut stream = world.listen("concert", &lee, None).await;
        stream.ticket().await;
        streams.push(stream);
    }
    world.shutdown.now();
    let mut waits = Vec::new();
    for stream in &mut streams {
        waits.push(stream.said().await.unwrap().retry.unwrap());
        assert_eq!(stream.said().await, None);
    }
    assert!(waits.iter().all(|ms| (1_000..=8_000).contains(ms)), "{waits:?}");
    let (soonest, latest) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
    assert!(latest - soonest > 2_000, "{waits:?} are not spread");
    drop(streams);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_ends_no_stream() {
    let (world, [kim, lee]) = people(["kim", "lee"]).await;
    let mut stream = world.listen("concert", &lee, None).await;
    assert_eq!(stream.ticket().await["position"], 2);
    world.store.set_mood(Mood::Refusing);
    let beat = stream.said().await.unwrap();
    assert_eq!(beat.data, None, "nothing is known, so nothing is told");
    world.store.set_mood(Mood::Up);
    world.leave("concert", &kim).await;
    assert_eq!(stream.ticket().await["position"], 1);
    drop(stream);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_item_ends_the_stream_and_both_say_why() {
    let (world, [kim]) = people(["kim"]).await;
    let mut stream = world.listen("concert", &kim, None).await;
    stream.ticket().await;
    world.store.remove_item(&id("concert")).await.unwrap();
    stream.ends_with("ITEM_NOT_FOUND", 404).await;
    let again = world.get(&format!("{}/events", ticket("concert", &kim))).await;
    again.is_problem(404, "ITEM_NOT_FOUND");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_restarted_line_ends_the_stream_and_says_why() {
    let (world, [kim]) = people(["kim"]).await;
    let mut stream = world.listen("concert", &kim, None).await;
    stream.ticket().await;
    world.store.reset(&id("concert"), world.clock.now_ms()).await.unwrap();
    stream.ends_with("LINE_RESTARTED", 410).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn who_may_not_poll_may_not_listen() {
    let (world, [kim]) = people(["kim"]).await;
    world.put_item("other", 5, true).await;
    for (uri, status, code) in [
        (ticket("concert", "forged"), 401, "INVALID_TOKEN"),
        (ticket("other", &kim), 403, "TOKEN_MISMATCH"),
        (ticket("concert", "me"), 401, "INVALID_TOKEN"),
    ] {
        world.get(&format!("{uri}/events")).await.is_problem(status, code);
    }
    let plain = world.get(&format!("{}/ws", ticket("concert", &kim))).await;
    plain.is_problem(400, "INVALID_REQUEST");
    world.end().await;
}
