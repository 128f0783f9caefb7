//! Leader election with the lease of the memory store.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::TicketKeys;
use daegi_runtime::health::Health;
use daegi_runtime::{AdminToken, Clock, Shutdown, Tracer};
use daegi_scheduler::{DiscardSink, LeaderLoop, Leadership, SchedulerDeps};
use daegi_store::{Epoch, SharedStore};
use daegi_testkit::eventually;

use crate::beacon;
use crate::harness::{self, OUTBOX_MAX, item, user};

const TEST_TIMEOUT: Duration = Duration::from_secs(10);

/// One replica; `stop` asserts that all its tasks end.
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
            health: health.component("scheduler"),
            lease: Duration::from_millis(600),
            outbox_max: OUTBOX_MAX,
            history: Duration::from_secs(86_400),
            ticket_keys: TicketKeys::generate(),
            beacons: beacon::from_relays(&[]),
            blocklist: None,
            sink: Arc::new(DiscardSink),
            tracer: Tracer::default(),
        };
        let leader = LeaderLoop::new(deps, leadership.clone());
        shutdown.spawn("leader", leader.run(shutdown.clone()));
        Self { shutdown, health, leadership }
    }

    async fn wait_until_leading(&self) {
        let condition = async || self.leadership.is_leading();
        eventually(TEST_TIMEOUT, "the replica leads", condition).await;
    }

    fn epoch(&self) -> Option<Epoch> {
        self.leadership.status().term.map(|term| term.epoch)
    }

    async fn stop(self) {
        self.shutdown.stop_now();
        self.shutdown.wait(TEST_TIMEOUT).await.unwrap();
        assert!(!self.leadership.is_leading());
        assert!(!self.shutdown.has_failed());
    }
}

async fn fast_store() -> SharedStore {
    let store = harness::store(1);
    store.set_settings(None, Some(50)).await.unwrap();
    store
}

#[tokio::test]
async fn a_leader_admits_tickets_and_empties_the_outbox() {
    let store = fast_store().await;
    harness::put(&*store, "concert", 10, None).await;
    let settings = store.settings().await.unwrap();
    let now = Clock::system().now_ms();
    let users = [user("kim"), user("lee")];
    store.join(&item("concert"), &users, &settings, now).await.unwrap();
    let replica = Replica::start(&store);
    eventually(TEST_TIMEOUT, "both are admitted and published", async || {
        let counts = store.counts(&[item("concert")]).await.unwrap().remove(0);
        let mut pending = 0;
        for partition in 0..store.partitions() {
            pending += store.outbox_len(partition).await.unwrap();
        }
        (counts.entered, counts.waiting, pending) == (2, 0, 0)
    })
    .await;
    assert!(replica.leadership.status().last_tick.is_some());
    replica.stop().await;
}

#[tokio::test]
async fn a_replica_is_ready_once_the_store_has_replied() {
    let replica = Replica::start(&harness::store(1));
    let condition = async || replica.health.check().is_ok();
    eventually(TEST_TIMEOUT, "ready", condition).await;
    replica.stop().await;
}

#[tokio::test]
async fn only_one_of_two_leads_and_the_other_takes_over_when_it_ends() {
    let store = fast_store().await;
    let first = Replica::start(&store);
    first.wait_until_leading().await;
    let second = Replica::start(&store);
    let ready = async || second.health.check().is_ok();
    eventually(TEST_TIMEOUT, "the second stands by", ready).await;
    assert!(!second.leadership.is_leading());
    let epoch = first.epoch().unwrap();
    first.stop().await;
    second.wait_until_leading().await;
    assert!(second.epoch() > Some(epoch));
    second.stop().await;
}

#[tokio::test]
async fn a_fenced_leader_steps_down_and_may_lead_again() {
    let store = fast_store().await;
    harness::put(&*store, "concert", 10, None).await;
    let now = Clock::system().now_ms();
    store.set_paused(&item("concert"), true, now).await.unwrap();
    let settings = store.settings().await.unwrap();
    store.join(&item("concert"), &[user("kim")], &settings, now).await.unwrap();
    let replica = Replica::start(&store);
    replica.wait_until_leading().await;
    let stolen = store.begin_term(0).await.unwrap();
    let again = async || replica.epoch().is_some_and(|epoch| epoch > stolen);
    eventually(TEST_TIMEOUT, "a new term", again).await;
    let status = replica.leadership.status();
    assert_eq!((status.stale_refusals, status.hand_overs), (1, 1));
    replica.stop().await;
}

#[tokio::test]
async fn a_long_tick_can_be_shortened_while_it_lasts() {
    let store = harness::store(1);
    store.set_settings(None, Some(60_000)).await.unwrap();
    harness::put(&*store, "concert", 10, None).await;
    let replica = Replica::start(&store);
    let has_ticked = async || replica.leadership.status().last_tick.is_some();
    eventually(TEST_TIMEOUT, "the first tick", has_ticked).await;
    let settings = store.set_settings(None, Some(50)).await.unwrap();
    let now = Clock::system().now_ms();
    store.join(&item("concert"), &[user("kim")], &settings, now).await.unwrap();
    eventually(TEST_TIMEOUT, "the next tick", async || {
        store.counts(&[item("concert")]).await.unwrap()[0].entered == 1
    })
    .await;
    replica.stop().await;
}
