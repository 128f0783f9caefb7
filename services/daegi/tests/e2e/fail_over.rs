//! A Redis master dies while users join and poll over HTTP: no response is 500, none takes longer than
//! 2 s, and admission resumes without a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use daegi_testkit::{Redis, eventually, redis_cluster_or_skip, redis_sentinel_or_skip};
use reqwest::{Client, Response, StatusCode};
use tokio::task::JoinSet;

use crate::harness::DaegiHarness;

/// Longest permitted response time.
const MAX_RESPONSE_TIME: Duration = Duration::from_secs(2);

/// Time in which all lines must work again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Enough items to reach all nodes of a cluster.
const ITEMS: usize = 8;

fn item(at: usize) -> String {
    format!("concert-{at}")
}

/// Returns whether the response has a ticket. Otherwise it must be 503 with `Retry-After`.
fn is_served(response: &Response) -> bool {
    match response.status() {
        StatusCode::OK | StatusCode::CREATED => true,
        StatusCode::SERVICE_UNAVAILABLE => {
            assert!(response.headers().contains_key("retry-after"), "{response:?}");
            false
        }
        other => panic!("{other}: {response:?}"),
    }
}

/// Joins new users and polls once for each until `stop` is set. Returns the longest response time.
async fn load(http: Client, line: String, stop: Arc<AtomicBool>) -> Duration {
    let mut longest = Duration::ZERO;
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let started = Instant::now();
        let join = http.post(&line).header("user-id", format!("user-{number}"));
        let joined = join.send().await.unwrap();
        longest = longest.max(started.elapsed());
        if is_served(&joined) {
            let ticket: serde_json::Value = joined.json().await.unwrap();
            let started = Instant::now();
            let token = ticket["token"].as_str().unwrap();
            is_served(&http.get(format!("{line}/{token}")).send().await.unwrap());
            longest = longest.max(started.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    longest
}

/// Puts load on every line, kills a master with `kill`, and checks the recovery.
async fn survives(name: &'static str, store: &str, kill: impl AsyncFnOnce()) {
    let harness = DaegiHarness::open_at(name, store, &["--lease-ms", "1000"]).await;
    for at in 0..ITEMS {
        harness.stock(&item(at), 100_000).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut loads = JoinSet::new();
    for at in 0..ITEMS {
        loads.spawn(load(harness.http.clone(), harness.line(&item(at)), stop.clone()));
    }
    harness.quota(1).await;
    for at in 0..ITEMS {
        harness.until_entered(&item(at), 1).await;
    }

    kill().await;
    let killed = Instant::now();
    eventually(RECOVERY_TIMEOUT, "a join fails", async || {
        let mut failed = false;
        for at in 0..ITEMS {
            failed |= !is_served(&harness.join(&item(at), "kim").await);
        }
        failed
    })
    .await;
    for at in 0..ITEMS {
        let what = format!("{name}: line {at} can be joined");
        eventually(RECOVERY_TIMEOUT, &what, async || {
            is_served(&harness.join(&item(at), "lee").await)
        })
        .await;
    }
    assert!(killed.elapsed() < RECOVERY_TIMEOUT, "{name}: back after {:?}", killed.elapsed());

    // A scheduler leads again and admits users on every node.
    eventually(RECOVERY_TIMEOUT, "the admin API answers", async || harness.is_led().await).await;
    for at in 0..ITEMS {
        let admitted = harness.counts(&item(at)).await.1;
        harness.until_entered(&item(at), admitted + 1).await;
    }
    stop.store(true, Ordering::Relaxed);
    for longest in loads.join_all().await {
        assert!(longest < MAX_RESPONSE_TIME, "{name}: a response took {longest:?}");
    }
    harness.close().await;
}

/// Stops a master after its replica has the items: a replica promoted without them would response 404.
async fn stop_replicated(master: &mut Redis) {
    // WAIT covers only writes of its own connection, so write first.
    let mut connection = master.connection().await.unwrap();
    let mut write = redis::cmd("SET");
    write.arg("{p00}:written").arg(1).exec_async(&mut connection).await.unwrap();
    eventually(RECOVERY_TIMEOUT, "a replica has caught up", async || {
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
    survives("sentinel", &url, async || stop_replicated(redis.master().await.unwrap()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_master_dies_under_load() {
    let Some(mut redis) = redis_cluster_or_skip().await else { return };
    let url = redis.url();
    // The node with the lease, so that leadership fails over, too.
    survives("cluster", &url, async || {
        stop_replicated(redis.master_of("{p00}").await.unwrap()).await
    })
    .await;
}
