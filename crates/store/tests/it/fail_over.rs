//! Redis masters stop, hang and move while users join: calls fail only with a transient error and within
//! `MAX_LATENCY`, and the store recovers without intervention.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use daegi_domain::{ItemId, Policy, UserId};
use daegi_store::{Lease, SharedStore};
use daegi_testkit::{RedisCluster, eventually, redis_cluster_or_skip, redis_sentinel_or_skip};
use tokio::task::JoinSet;

use crate::support::{SETTINGS, START, Topology, change, item, user};

/// The longest a join may take during an outage.
const MAX_LATENCY: Duration = Duration::from_secs(2);

/// The longest an outage may last after a fail-over.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// More items than partitions, so that every node gets calls.
fn items() -> Vec<ItemId> {
    (0..12).map(|index| item(&format!("concert-{index}"))).collect()
}

/// Users who join repeatedly during a fault.
struct JoinLoad {
    stop_flag: Arc<AtomicBool>,
    users: JoinSet<LoadReport>,
}

#[derive(Debug, Default)]
struct LoadReport {
    longest: Duration,
    answered: u64,
    unavailable: u64,
}

impl JoinLoad {
    async fn start(store: &SharedStore) -> Self {
        let stop_flag = Arc::new(AtomicBool::new(false));
        let mut users = JoinSet::new();
        for (at, id) in items().into_iter().enumerate() {
            store.put_item(&change(id.as_str(), Policy::default()), START).await.unwrap();
            let who = user(&format!("user-{at}"));
            users.spawn(join_repeatedly(store.clone(), id, who, stop_flag.clone()));
        }
        Self { stop_flag, users }
    }

    /// Stops the load and checks latency and success of each user.
    async fn stop(self) {
        self.stop_flag.store(true, Ordering::Relaxed);
        for report in self.users.join_all().await {
            assert!(report.longest < MAX_LATENCY, "{report:?}");
            assert!(report.answered > 0, "{report:?}");
        }
    }
}

async fn join_repeatedly(
    store: SharedStore,
    id: ItemId,
    who: UserId,
    stop_flag: Arc<AtomicBool>,
) -> LoadReport {
    let mut report = LoadReport::default();
    while !stop_flag.load(Ordering::Relaxed) {
        let started = Instant::now();
        match store.join(&id, std::slice::from_ref(&who), &SETTINGS, START).await {
            Ok(_) => report.answered += 1,
            Err(error) if error.is_transient() => report.unavailable += 1,
            Err(error) => panic!("{id}: {error}"),
        }
        report.longest = report.longest.max(started.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    report
}

/// Waits until every line can be joined and a lease can be acquired.
async fn wait_for_recovery(store: &SharedStore) {
    for id in items() {
        eventually(RECOVERY_TIMEOUT, "every line can be joined", || async {
            let joined = store.join(&id, &[user("late")], &SETTINGS, START).await;
            joined.is_ok()
        })
        .await;
    }
    eventually(RECOVERY_TIMEOUT, "a replica leads", || async {
        let lease = Lease::try_acquire(&**store, Duration::from_secs(1), 0).await;
        match lease {
            Ok(Some(lease)) => {
                lease.release().await;
                true
            }
            _ => false,
        }
    })
    .await;
}

/// Waits until some line cannot be joined, so that the fault has taken effect.
async fn wait_for_outage(store: &SharedStore) {
    eventually(RECOVERY_TIMEOUT, "the store is unavailable", || async {
        let mut has_failed = false;
        for id in items() {
            has_failed |= store.join(&id, &[user("late")], &SETTINGS, START).await.is_err();
        }
        has_failed
    })
    .await;
}

/// Waits for the outage to begin, and checks that it ends in time.
async fn recovers_in_time(store: &SharedStore) {
    let began = Instant::now();
    wait_for_outage(store).await;
    wait_for_recovery(store).await;
    assert!(began.elapsed() < RECOVERY_TIMEOUT, "recovered after {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_master_that_dies_or_hangs_is_replaced() {
    let Some(started) = redis_sentinel_or_skip().await else { return };
    let mut topology = Topology::Sentinel(started);
    let store = topology.store().await;
    let Topology::Sentinel(servers) = &mut topology else { unreachable!() };

    let load = JoinLoad::start(&store).await;
    let first = servers.master().await.unwrap();
    let port = first.port();
    first.stop();
    recovers_in_time(&store).await;
    let second = servers.master().await.unwrap();
    assert_ne!(second.port(), port);
    servers.start_again().await.unwrap();

    let hung = servers.master().await.unwrap();
    hung.pause().unwrap();
    let port = hung.port();
    recovers_in_time(&store).await;
    let other = servers.master().await.unwrap().port();
    assert_ne!(other, port, "the hanging master was replaced");
    servers.resume_all();
    load.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_master_that_dies_is_replaced() {
    let Some(started) = redis_cluster_or_skip().await else { return };
    let mut topology = Topology::Cluster(started);
    let store = topology.store().await;
    let Topology::Cluster(cluster) = &mut topology else { unreachable!() };

    let load = JoinLoad::start(&store).await;
    // The master of the lease and the settings, whose address is in the URL of the store.
    let first = cluster.master_of("{p00}").await.unwrap();
    let port = first.port();
    first.stop();
    recovers_in_time(&store).await;
    assert_ne!(cluster.master_of("{p00}").await.unwrap().port(), port);
    load.stop().await;
}

/// Moves all keys of a partition to another master, as when an operator adds a node.
async fn move_partition(cluster: &mut RedisCluster, tag: &str) {
    let (to_port, to): (u16, String) = {
        let to = cluster.another_master(tag).await.unwrap();
        (to.port(), to.command(&["CLUSTER", "MYID"]).await.unwrap())
    };
    let from = cluster.master_of(tag).await.unwrap();
    let slot: u16 = from.command(&["CLUSTER", "KEYSLOT", tag]).await.unwrap();
    let (slot, source): (String, String) =
        (slot.to_string(), from.command(&["CLUSTER", "MYID"]).await.unwrap());
    cluster
        .at(to_port)
        .command::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source])
        .await
        .unwrap();
    let from = cluster.master_of(tag).await.unwrap();
    from.command::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to]).await.unwrap();
    let (port, login) = (to_port.to_string(), from.migrate_login());
    loop {
        let keys: Vec<String> =
            from.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "4"]).await.unwrap();
        if keys.is_empty() {
            break;
        }
        let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "1000"];
        migrate.extend(login);
        migrate.push("KEYS");
        migrate.extend(keys.iter().map(String::as_str));
        from.command::<redis::Value>(&migrate).await.unwrap();
    }
    let from_port = from.port();
    for port in [to_port, from_port] {
        cluster.at(port).command::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &to]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_follow_keys_to_another_node() {
    let Some(started) = redis_cluster_or_skip().await else { return };
    let mut topology = Topology::Cluster(started);
    let store = topology.store().await;
    let Topology::Cluster(cluster) = &mut topology else { unreachable!() };
    let load = JoinLoad::start(&store).await;
    for tag in ["{p00}", "{p01}", "{p02}", "{p03}"] {
        let before = cluster.master_of(tag).await.unwrap().port();
        move_partition(cluster, tag).await;
        let after = cluster.master_of(tag).await.unwrap().port();
        assert_ne!(before, after);
    }
    wait_for_recovery(&store).await;
    for id in items() {
        let waiting = store.counts(std::slice::from_ref(&id)).await.unwrap()[0].waiting;
        assert_eq!(waiting, 2, "{id}: no ticket is lost or duplicated");
    }
    load.stop().await;
}
