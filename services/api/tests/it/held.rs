//! Held connections: how many of them one ticket and one pod may have.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::harness::{World, line, ticket};

fn long_poll(token: &str) -> String {
    format!("{}?waitMs=30000", ticket("concert", token))
}

#[tokio::test(start_paused = true)]
async fn the_newest_connections_of_a_ticket_win() {
    let world = World::with_held_per_ticket("concert", 3).await;
    let (kim, lee) = (world.token("concert", "kim").await, world.token("concert", "lee").await);
    let mut other = world.listen("concert", &lee, None).await;
    other.ticket().await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = world.listen("concert", &kim, None).await;
        stream.ticket().await;
        streams.push(stream);
    }
    let mut newest = world.listen("concert", &kim, None).await;
    newest.ticket().await;
    let mut oldest = streams.remove(0);
    let last = oldest.said().await.unwrap();
    assert_eq!((last.name.as_deref(), last.retry), (Some("problem"), Some(30_000)));
    assert_eq!(last.data.unwrap()["code"], "RATE_LIMITED");
    assert_eq!(oldest.said().await, None);
    // The others, and other tickets, are still served.
    world.put_item("concert", 0, true).await;
    for stream in streams.iter_mut().chain([&mut newest, &mut other]) {
        assert_eq!(stream.ticket().await["lineState"], "SOLD_OUT");
    }
    drop((streams, newest, other, oldest));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_superseded_long_poll_answers_immediately() {
    let world = World::with_held_per_ticket("concert", 2).await;
    let kim = world.token("concert", "kim").await;
    world.poll("concert", &kim).await;
    let began = Instant::now();
    let first = async {
        let answer = world.get(&long_poll(&kim)).await;
        (answer, began.elapsed())
    };
    let others = async {
        sleep(Duration::from_secs(1)).await;
        let streams =
            [world.listen("concert", &kim, None).await, world.listen("concert", &kim, None).await];
        sleep(Duration::from_secs(1)).await;
        streams
    };
    let ((answer, took), streams) = tokio::join!(first, others);
    assert_eq!((answer.status.as_u16(), &answer.json()["position"]), (200, &1.into()));
    assert!((1_000..1_500).contains(&took.as_millis()), "{took:?}");
    drop(streams);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn long_polls_beyond_the_limit_of_a_pod_are_answered_immediately() {
    let world = World::with_held_per_ticket("concert", 3).await;
    let mut tokens = Vec::new();
    for n in 0..11 {
        tokens.push(world.token("concert", &format!("user-{n}")).await);
    }
    world.poll("concert", &tokens[10]).await;
    let began = Instant::now();
    let polls = tokens.iter().map(|token| async {
        let answer = world.get(&long_poll(token)).await;
        assert_eq!(answer.json()["status"], "WAITING");
        began.elapsed() >= Duration::from_secs(30)
    });
    let held = futures_util::future::join_all(polls).await;
    assert_eq!(held.iter().filter(|held| **held).count(), 10, "{held:?}");
    assert_eq!(world.get(&line("concert")).await.status, 200);
    world.end().await;
}
