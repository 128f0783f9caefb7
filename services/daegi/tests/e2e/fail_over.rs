//! A master dies while people join and poll over HTTP: no 500, nobody waits for long, and the
//! room is back by itself and lets people in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use daegi_testkit::{Redis, eventually, redis_cluster_or_skip, redis_sentinel_or_skip};
use reqwest::{Client, Response, StatusCode};
use tokio::task::JoinSet;

use crate::room::Room;

/// What a person may have to wait at most.
const LONGEST: Duration = Duration::from_secs(2);

/// When everybody must be served again.
const BACK: Duration = Duration::from_secs(10);

/// On a cluster they are spread over all nodes.
const ITEMS: usize = 8;

fn item(at: usize) -> String {
    format!("concert-{at}")
}

/// What a person may be told while a master is away: the ticket, or when to come back.
fn is_served(answer: &Response) -> bool {
    match answer.status() {
        StatusCode::OK | StatusCode::CREATED => true,
        StatusCode::SERVICE_UNAVAILABLE => {
            assert!(answer.headers().contains_key("retry-after"), "{answer:?}");
            false
        }
        other => panic!("{other}: {answer:?}"),
    }
}

/// New people join a line, and each polls once, until it is enough. Returns the longest wait.
async fn crowd(http: Client, line: String, enough: Arc<AtomicBool>) -> Duration {
    let mut longest = Duration::ZERO;
    for number in 0.. {
        if enough.load(Ordering::Relaxed) {
            break;
        }
        let asked = Instant::now();
        let join = http.post(&line).header("user-id", format!("user-{number}"));
        let joined = join.send().await.unwrap();
        longest = longest.max(asked.elapsed());
        if is_served(&joined) {
            let ticket: serde_json::Value = joined.json().await.unwrap();
            let asked = Instant::now();
            let token = ticket["token"].as_str().unwrap();
            is_served(&http.get(format!("{line}/{token}")).send().await.unwrap());
            longest = longest.max(asked.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    longest
}

/// A room with a crowd at every line; `kill` is what happens to a master.
async fn survives(name: &'static str, store: &str, kill: impl AsyncFnOnce()) {
    let room = Room::open_at(name, store, &["--lease-ms", "1000"]).await;
    for at in 0..ITEMS {
        room.stock(&item(at), 100_000).await;
    }
    let enough = Arc::new(AtomicBool::new(false));
    let mut crowds = JoinSet::new();
    for at in 0..ITEMS {
        crowds.spawn(crowd(room.http.clone(), room.line(&item(at)), enough.clone()));
    }
    room.quota(1).await;
    for at in 0..ITEMS {
        room.until_entered(&item(at), 1).await;
    }

    kill().await;
    let killed = Instant::now();
    eventually(BACK, "it is felt", async || {
        let mut felt = false;
        for at in 0..ITEMS {
            felt |= !is_served(&room.join(&item(at), "kim").await);
        }
        felt
    })
    .await;
    for at in 0..ITEMS {
        let what = format!("{name}: line {at} can be joined");
        eventually(BACK, &what, async || is_served(&room.join(&item(at), "lee").await)).await;
    }
    assert!(killed.elapsed() < BACK, "{name}: back after {:?}", killed.elapsed());

    // Somebody leads again, and lets people in on every node.
    eventually(BACK, "the admin API answers", async || room.is_led().await).await;
    for at in 0..ITEMS {
        let inside = room.counts(&item(at)).await.1;
        room.until_entered(&item(at), inside + 1).await;
    }
    enough.store(true, Ordering::Relaxed);
    for longest in crowds.join_all().await {
        assert!(longest < LONGEST, "{name}: somebody waited for {longest:?}");
    }
    room.close().await;
}

/// Once its replica has the items: one that is promoted without them answers that there are none.
async fn dies(master: &mut Redis) {
    // Redis waits for what this very connection has written, and for nothing if that is nothing.
    let mut connection = master.connection().await.unwrap();
    let mut write = redis::cmd("SET");
    write.arg("{p00}:written").arg(1).exec_async(&mut connection).await.unwrap();
    eventually(BACK, "a replica has caught up", async || {
        let mut wait = redis::cmd("WAIT");
        let replicas = wait.arg(1).arg(100).query_async::<u64>(&mut connection.clone()).await;
        replicas.unwrap() > 0
    })
    .await;
    master.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_master_dies_under_load() {
    let Some(mut redis) = redis_sentinel_or_skip().await else { return };
    let url = redis.url();
    survives("sentinel", &url, async || dies(redis.master().await.unwrap()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_master_dies_under_load() {
    let Some(mut redis) = redis_cluster_or_skip().await else { return };
    let url = redis.url();
    // The one with the lease, so that leading fails over, too.
    survives("cluster", &url, async || dies(redis.master_of("{p00}").await.unwrap()).await).await;
}
