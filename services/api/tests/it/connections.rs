//! Limits of held connections per ticket and per pod.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::harness::{Harness, line, ticket};

fn long_poll(token: &str) -> String {
    format!("{}?waitMs=30000", ticket("concert", token))
}

#[tokio::test(start_paused = true)]
async fn a_newer_connection_replaces_the_oldest_of_a_ticket() {
    let harness = Harness::with_held_per_ticket("concert", 3).await;
    let (kim, lee) = (harness.token("concert", "kim").await, harness.token("concert", "lee").await);
    let mut other = harness.open_stream("concert", &lee, None).await;
    other.ticket().await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = harness.open_stream("concert", &kim, None).await;
        stream.ticket().await;
        streams.push(stream);
    }
    let mut newest = harness.open_stream("concert", &kim, None).await;
    newest.ticket().await;
    let mut oldest = streams.remove(0);
    let last = oldest.next_event().await.unwrap();
    assert_eq!((last.name.as_deref(), last.retry), (Some("problem"), Some(30_000)));
    assert_eq!(last.data.unwrap()["code"], "RATE_LIMITED");
    assert_eq!(oldest.next_event().await, None);
    // The others, and other tickets, are still served.
    harness.put_item("concert", 0, true).await;
    for stream in streams.iter_mut().chain([&mut newest, &mut other]) {
        assert_eq!(stream.ticket().await["lineState"], "SOLD_OUT");
    }
    drop((streams, newest, other, oldest));
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_superseded_long_poll_answers_immediately() {
    let harness = Harness::with_held_per_ticket("concert", 2).await;
    let kim = harness.token("concert", "kim").await;
    harness.poll("concert", &kim).await;
    let began = Instant::now();
    let first = async {
        let answer = harness.get(&long_poll(&kim)).await;
        (answer, began.elapsed())
    };
    let others = async {
        sleep(Duration::from_secs(1)).await;
        let streams = [
            harness.open_stream("concert", &kim, None).await,
            harness.open_stream("concert", &kim, None).await,
        ];
        sleep(Duration::from_secs(1)).await;
        streams
    };
    let ((answer, took), streams) = tokio::join!(first, others);
    assert_eq!((answer.status.as_u16(), &answer.json()["position"]), (200, &1.into()));
    assert!((1_000..1_500).contains(&took.as_millis()), "{took:?}");
    drop(streams);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn long_polls_beyond_the_limit_of_a_pod_are_answered_immediately() {
    let harness = Harness::with_held_per_ticket("concert", 3).await;
    let mut tokens = Vec::new();
    for n in 0..11 {
        tokens.push(harness.token("concert", &format!("user-{n}")).await);
    }
    harness.poll("concert", &tokens[10]).await;
    let began = Instant::now();
    let polls = tokens.iter().map(|token| async {
        let answer = harness.get(&long_poll(token)).await;
        assert_eq!(answer.json()["status"], "WAITING");
        began.elapsed() >= Duration::from_secs(30)
    });
    let held = futures_util::future::join_all(polls).await;
    assert_eq!(held.iter().filter(|held| **held).count(), 10, "{held:?}");
    assert_eq!(harness.get(&line("concert")).await.status, 200);
    harness.end().await;
}
