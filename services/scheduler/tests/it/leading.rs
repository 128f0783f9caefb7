//! Who leads, with the real lease of the memory store.

use std::sync::Arc;
use std::time::Duration;

use daegi_runtime::health::Health;
use daegi_runtime::{AdminToken, Clock, Shutdown, Traces};
use daegi_scheduler::{Leader, Leadership, Outlet, SchedulerDeps};
use daegi_store::{Epoch, SharedStore};
use daegi_testkit::eventually;

use crate::room::{self, OUTBOX_MAX, item, user};

const SOON: Duration = Duration::from_secs(10);

/// One replica; it must be stopped, and then nothing of it may be left.
struct Replica {
    shutdown: Shutdown,
    health: Health,
    leadership: Arc<Leadership>,
}

impl Replica {
    fn start(store: &SharedStore) -> Self {
        let shutdown = Shutdown::new();
        let health = Health::new(&shutdown);
        let leadership = Arc::new(Leadership::new());
        let deps = SchedulerDeps {
            store: store.clone(),
            admin_token: AdminToken::generate(),
            clock: Clock::system(),
            health: health.part("scheduler"),
            lease: Duration::from_millis(600),
            outbox_max: OUTBOX_MAX,
            outlet: Outlet::Nowhere,
            traces: Traces::default(),
        };
        let leader = Leader::new(deps, leadership.clone());
        shutdown.spawn("leader", leader.run(shutdown.clone()));
        Self { shutdown, health, leadership }
    }

    async fn leads(&self) {
        let look = async || self.leadership.is_leading();
        eventually(SOON, "the replica leads", look).await;
    }

    fn epoch(&self) -> Option<Epoch> {
        self.leadership.standing().term.map(|term| term.epoch)
    }

    async fn stop(self) {
        self.shutdown.now();
        self.shutdown.wait(SOON).await.unwrap();
        assert!(!self.leadership.is_leading());
        assert!(!self.shutdown.has_failed());
    }
}

async fn fast_store() -> SharedStore {
    let store = room::store(1);
    store.set_settings(None, Some(50)).await.unwrap();
    store
}

#[tokio::test]
async fn a_leader_lets_people_in_and_empties_the_outbox() {
    let store = fast_store().await;
    room::put(&*store, "concert", 10, None).await;
    let settings = store.settings().await.unwrap();
    let now = Clock::system().now_ms();
    let users = [user("kim"), user("lee")];
    store.join(&item("concert"), &users, &settings, now).await.unwrap();
    let replica = Replica::start(&store);
    eventually(SOON, "both are inside and told of", async || {
        let counts = store.counts(&[item("concert")]).await.unwrap().remove(0);
        let mut pending = 0;
        for partition in 0..store.partitions() {
            pending += store.outbox_len(partition).await.unwrap();
        }
        (counts.entered, counts.waiting, pending) == (2, 0, 0)
    })
    .await;
    assert!(replica.leadership.standing().last_tick.is_some());
    replica.stop().await;
}

#[tokio::test]
async fn a_replica_is_ready_once_the_store_has_answered() {
    let replica = Replica::start(&room::store(1));
    let look = async || replica.health.check().is_ok();
    eventually(SOON, "ready", look).await;
    replica.stop().await;
}

#[tokio::test]
async fn only_one_of_two_leads_and_the_other_takes_over_when_it_ends() {
    let store = fast_store().await;
    let first = Replica::start(&store);
    first.leads().await;
    let second = Replica::start(&store);
    let ready = async || second.health.check().is_ok();
    eventually(SOON, "the second stands by", ready).await;
    assert!(!second.leadership.is_leading());
    let epoch = first.epoch().unwrap();
    first.stop().await;
    second.leads().await;
    assert!(second.epoch() > Some(epoch));
    second.stop().await;
}

#[tokio::test]
async fn a_leader_that_the_store_refuses_steps_down_and_may_lead_again() {
    let store = fast_store().await;
    room::put(&*store, "concert", 10, None).await;
    let now = Clock::system().now_ms();
    store.set_paused(&item("concert"), true, now).await.unwrap();
    let settings = store.settings().await.unwrap();
    store.join(&item("concert"), &[user("kim")], &settings, now).await.unwrap();
    let replica = Replica::start(&store);
    replica.leads().await;
    let stolen = store.begin_term(0).await.unwrap();
    let again = async || replica.epoch().is_some_and(|epoch| epoch > stolen);
    eventually(SOON, "a new term", again).await;
    let standing = replica.leadership.standing();
    assert_eq!((standing.stale_refusals, standing.hand_overs), (1, 1));
    replica.stop().await;
}

#[tokio::test]
async fn a_long_tick_can_be_shortened_while_it_lasts() {
    let store = room::store(1);
    store.set_settings(None, Some(60_000)).await.unwrap();
    room::put(&*store, "concert", 10, None).await;
    let replica = Replica::start(&store);
    let ticked = async || replica.leadership.standing().last_tick.is_some();
    eventually(SOON, "the first tick", ticked).await;
    let settings = store.set_settings(None, Some(50)).await.unwrap();
    let now = Clock::system().now_ms();
    store.join(&item("concert"), &[user("kim")], &settings, now).await.unwrap();
    eventually(SOON, "the next tick", async || {
        store.counts(&[item("concert")]).await.unwrap()[0].entered == 1
    })
    .await;
    replica.stop().await;
}
