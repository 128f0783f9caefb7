//! Masters die, hang and move while people join: nobody is told anything but "away", nobody waits
//! for long, and the store is back by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use daegi_domain::{ItemId, Policy, UserId};
use daegi_store::{Lease, SharedStore};
use daegi_testkit::{RedisCluster, eventually, redis_cluster_or_loud, redis_sentinel_or_loud};
use tokio::task::JoinSet;

use crate::support::{SETTINGS, START, Setup, change, item, user};

/// What a person may have to wait at most.
const LONGEST: Duration = Duration::from_secs(2);

/// When everybody must be served again.
const BACK: Duration = Duration::from_secs(10);

/// One item per partition and more, so that every node has something to do.
fn items() -> Vec<ItemId> {
    (0..12).map(|index| item(&format!("concert-{index}"))).collect()
}

/// People who join again and again while something happens.
struct Crowd {
    enough: Arc<AtomicBool>,
    people: JoinSet<Worst>,
}

#[derive(Debug, Default)]
struct Worst {
    longest: Duration,
    answered: u64,
    away: u64,
}

impl Crowd {
    async fn gather(store: &SharedStore) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let mut people = JoinSet::new();
        for (at, id) in items().into_iter().enumerate() {
            store.put_item(&change(id.as_str(), Policy::default()), START).await.unwrap();
            let who = user(&format!("user-{at}"));
            people.spawn(insist(store.clone(), id, who, enough.clone()));
        }
        Self { enough, people }
    }

    /// Sends everybody home; what they went through must have been bearable.
    async fn judge(self) {
        self.enough.store(true, Ordering::Relaxed);
        for worst in self.people.join_all().await {
            assert!(worst.longest < LONGEST, "{worst:?}");
            assert!(worst.answered > 0, "{worst:?}");
        }
    }
}

async fn insist(store: SharedStore, id: ItemId, who: UserId, enough: Arc<AtomicBool>) -> Worst {
    let mut worst = Worst::default();
    while !enough.load(Ordering::Relaxed) {
        let asked = Instant::now();
        match store.join(&id, std::slice::from_ref(&who), &SETTINGS, START).await {
            Ok(_) => worst.answered += 1,
            Err(error) if error.is_transient() => worst.away += 1,
            Err(error) => panic!("{id}: {error}"),
        }
        worst.longest = worst.longest.max(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    worst
}

/// Every line can be joined, and somebody can lead.
async fn serves_again(store: &SharedStore) {
    for id in items() {
        eventually(BACK, "every line can be joined", || async {
            let joined = store.join(&id, &[user("late")], &SETTINGS, START).await;
            joined.is_ok()
        })
        .await;
    }
    eventually(BACK, "somebody leads", || async {
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

/// Some line cannot be joined: what was done to Redis is felt.
async fn is_felt(store: &SharedStore) {
    eventually(BACK, "the store is away", || async {
        let mut felt = false;
        for id in items() {
            felt |= store.join(&id, &[user("late")], &SETTINGS, START).await.is_err();
        }
        felt
    })
    .await;
}

/// The outage that just began is felt and is over in time.
async fn is_back_in_time(store: &SharedStore) {
    let began = Instant::now();
    is_felt(store).await;
    serves_again(store).await;
    assert!(began.elapsed() < BACK, "back after {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_master_that_dies_or_hangs_is_replaced() {
    let Some(started) = redis_sentinel_or_loud().await else { return };
    let mut setup = Setup::Sentinel(started);
    let store = setup.store().await;
    let Setup::Sentinel(servers) = &mut setup else { unreachable!() };

    let crowd = Crowd::gather(&store).await;
    let first = servers.master().await.unwrap();
    let port = first.port();
    first.stop();
    is_back_in_time(&store).await;
    let second = servers.master().await.unwrap();
    assert_ne!(second.port(), port);
    servers.start_again().await.unwrap();

    let hung = servers.master().await.unwrap();
    hung.pause().unwrap();
    let port = hung.port();
    is_back_in_time(&store).await;
    let other = servers.master().await.unwrap().port();
    assert_ne!(other, port, "the one that hangs was replaced");
    servers.resume_all();
    crowd.judge().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_master_that_dies_is_replaced() {
    let Some(started) = redis_cluster_or_loud().await else { return };
    let mut setup = Setup::Cluster(started);
    let store = setup.store().await;
    let Setup::Cluster(cluster) = &mut setup else { unreachable!() };

    let crowd = Crowd::gather(&store).await;
    // The one that has the lease and the settings, and one of the two the store was told of.
    let first = cluster.master_of("{p00}").await.unwrap();
    let port = first.port();
    first.stop();
    is_back_in_time(&store).await;
    assert_ne!(cluster.master_of("{p00}").await.unwrap().port(), port);
    crowd.judge().await;
}

/// Moves all keys of a partition to another master, as an operator does who adds a node.
async fn move_partition(cluster: &mut RedisCluster, tag: &str) {
    let (to_port, to): (u16, String) = {
        let to = cluster.another_master(tag).await.unwrap();
        (to.port(), to.ask(&["CLUSTER", "MYID"]).await.unwrap())
    };
    let from = cluster.master_of(tag).await.unwrap();
    let slot: u16 = from.ask(&["CLUSTER", "KEYSLOT", tag]).await.unwrap();
    let (slot, source): (String, String) =
        (slot.to_string(), from.ask(&["CLUSTER", "MYID"]).await.unwrap());
    cluster
        .at(to_port)
        .ask::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source])
        .await
        .unwrap();
    let from = cluster.master_of(tag).await.unwrap();
    from.ask::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to]).await.unwrap();
    let port = to_port.to_string();
    loop {
        let keys: Vec<String> = from.ask(&["CLUSTER", "GETKEYSINSLOT", &slot, "4"]).await.unwrap();
        if keys.is_empty() {
            break;
        }
        let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "1000", "KEYS"];
        migrate.extend(keys.iter().map(String::as_str));
        from.ask::<redis::Value>(&migrate).await.unwrap();
    }
    let from_port = from.port();
    for port in [to_port, from_port] {
        cluster.at(port).ask::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &to]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_move_to_another_node_are_followed() {
    let Some(started) = redis_cluster_or_loud().await else { return };
    let mut setup = Setup::Cluster(started);
    let store = setup.store().await;
    let Setup::Cluster(cluster) = &mut setup else { unreachable!() };
    let crowd = Crowd::gather(&store).await;
    for tag in ["{p00}", "{p01}", "{p02}", "{p03}"] {
        let before = cluster.master_of(tag).await.unwrap().port();
        move_partition(cluster, tag).await;
        let after = cluster.master_of(tag).await.unwrap().port();
        assert_ne!(before, after);
    }
    serves_again(&store).await;
    for id in items() {
        let waiting = store.counts(std::slice::from_ref(&id)).await.unwrap()[0].waiting;
        assert_eq!(waiting, 2, "{id}: nobody was lost, nobody is there twice");
    }
    crowd.judge().await;
}
