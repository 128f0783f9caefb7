//! At most one leader at a time, and a former leader cannot change anything.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{Lane, Policy};
use daegi_store::{
    AdmissionStore, Error, ItemStore, Lease, RedisStore, SharedStore, Store, TicketStore,
};
use daegi_testkit::{FaultProxy, LinkFault, eventually};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::{PARTITIONS, SETTINGS, START, both, change, item, users};

const TTL: Duration = Duration::from_secs(30);

#[tokio::test]
async fn only_one_replica_leads_and_a_release_hands_over_immediately() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let first = Lease::try_acquire(&*store, TTL, 0).await.unwrap().expect(name);
        assert!(Lease::try_acquire(&*store, TTL, 0).await.unwrap().is_none(), "{name}");
        first.release().await;
        let second = Lease::try_acquire(&*store, TTL, 0).await.unwrap().expect(name);
        assert_eq!(second.epoch().0, 2, "{name}: every term has its epoch");
    }
}

#[tokio::test]
async fn a_stale_leader_cannot_admit() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        store.put_item(&change("concert", Policy::default()), START).await.unwrap();
        store.join(&item("concert"), &users(5), &SETTINGS, START).await.unwrap();
        let old = store.begin_term(0).await.unwrap();
        let new = store.begin_term(0).await.unwrap();
        let refused = store.admit(old, &item("concert"), 5, 0, 100, START).await.unwrap_err();
        assert!(matches!(refused, Error::StaleEpoch(1)), "{name}: {refused}");
        assert!(
            store.expire(old, &item("concert"), Lane::STANDARD, START).await.is_err(),
            "{name}"
        );
        assert!(
            store
                .sweep(old, &item("concert"), Lane::STANDARD, daegi_domain::Number(0), START)
                .await
                .is_err()
        );
        let admission = store.admit(new, &item("concert"), 5, 0, 100, START).await.unwrap();
        assert_eq!(admission.admitted, 5, "{name}: nothing had happened before");
    }
}

#[tokio::test]
async fn a_lease_that_cannot_be_renewed_is_lost() {
    let Some(mut server) = daegi_testkit::redis_or_skip().await else {
        return;
    };
    let store: SharedStore =
        Arc::new(RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap());
    let lease = Lease::try_acquire(&*store, Duration::from_millis(600), 0).await.unwrap().unwrap();
    let (lost, tasks) = (lease.lost(), TaskTracker::new());
    tasks.spawn(lease.hold(CancellationToken::new()));
    server.stop();
    tokio::time::timeout(Duration::from_secs(10), lost.cancelled()).await.expect("lease lost");
}

#[tokio::test]
async fn a_held_lease_outlives_its_ttl_and_ends_at_shutdown() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let ttl = Duration::from_millis(300);
        let lease = Lease::try_acquire(&*store, ttl, 0).await.unwrap().expect(name);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let lost = lease.lost();
        tasks.spawn(lease.hold(stop.clone()));
        let took_over = tokio::time::timeout(ttl * 3, async {
            while Lease::try_acquire(&*store, ttl, 0).await.unwrap().is_none() {
                tokio::task::yield_now().await;
            }
        });
        assert!(took_over.await.is_err(), "{name}: no other replica takes over from a live leader");
        assert!(!lost.is_cancelled(), "{name}");
        stop.cancel();
        tasks.close();
        tasks.wait().await;
        assert!(lost.is_cancelled(), "{name}");
        assert!(Lease::try_acquire(&*store, ttl, 0).await.unwrap().is_some(), "{name}");
    }
}

/// Tests that run again on Sentinel and Cluster.
pub(crate) const ALL_TOPOLOGIES: &[fn()] = &[
    only_one_replica_leads_and_a_release_hands_over_immediately,
    a_stale_leader_cannot_admit,
    a_held_lease_outlives_its_ttl_and_ends_at_shutdown,
];

#[tokio::test]
async fn an_epoch_is_never_issued_twice_even_if_the_counter_is_lost() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let open = || async { RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap() };
    let (leader, standby, stranger) = (open().await, open().await, open().await);
    for _ in 0..7 {
        leader.begin_term(0).await.unwrap();
    }
    standby.ping().await.unwrap();
    // A fail-over loses the counter and one fence: a standby that has seen the epoch continues above it.
    for key in ["daegi:{p00}:epoch", "daegi:{p02}:fence"] {
        server.command::<()>(&["DEL", key]).await.unwrap();
    }
    assert_eq!(standby.begin_term(0).await.unwrap().0, 8);
    // A process that has not seen the epoch finds it in the remaining fences.
    server.command::<()>(&["SET", "daegi:{p00}:epoch", "3"]).await.unwrap();
    let epoch = stranger.begin_term(0).await.unwrap();
    assert_eq!(epoch.0, 9);
    stranger.put_item(&change("concert", Policy::default()), START).await.unwrap();
    stranger.expire(epoch, &item("concert"), Lane::STANDARD, START).await.expect("it leads");
    assert!(
        leader
            .expire(daegi_store::Epoch(7), &item("concert"), Lane::STANDARD, START)
            .await
            .is_err()
    );
}

/// A renewal without a reply is repeated as long as the lease lasts.
#[tokio::test]
async fn an_outage_shorter_than_the_lease_does_not_end_the_term() {
    let Some(server) = daegi_testkit::redis_or_skip().await else {
        return;
    };
    let proxy = FaultProxy::start(server.port()).await.unwrap();
    let store =
        RedisStore::open(server.config_at(proxy.port()), PARTITIONS, SETTINGS).await.unwrap();
    let ttl = Duration::from_secs(3);
    let lease = Lease::try_acquire(&store, ttl, 0).await.unwrap().unwrap();
    let (lost, stop, tasks) = (lease.lost(), CancellationToken::new(), TaskTracker::new());
    tasks.spawn(lease.hold(stop.clone()));
    proxy.set_fault(LinkFault::HoldReplies);
    let hiccup = tokio::time::timeout(ttl.mul_f64(0.6), lost.cancelled()).await;
    assert!(hiccup.is_err(), "it runs out later");
    proxy.set_fault(LinkFault::None);
    assert!(tokio::time::timeout(ttl, lost.cancelled()).await.is_err(), "it was renewed");
    stop.cancel();
    tasks.close();
    tasks.wait().await;
}

/// The network delays the leader's call until the next term has begun.
#[tokio::test]
async fn a_delayed_call_of_a_former_leader_changes_nothing() {
    let Some(server) = daegi_testkit::redis_or_skip().await else {
        return;
    };
    let proxy = FaultProxy::start(server.port()).await.unwrap();
    let former = server.config_at(proxy.port());
    let former = RedisStore::open(former, PARTITIONS, SETTINGS).await.unwrap();
    let next = RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap();
    next.put_item(&change("concert", Policy::default()), START).await.unwrap();
    next.join(&item("concert"), &users(5), &SETTINGS, START).await.unwrap();

    let old = former.begin_term(START).await.unwrap();
    proxy.set_fault(LinkFault::HoldAll);
    let unheard = former.admit(old, &item("concert"), 5, 0, 100, START).await.unwrap_err();
    assert!(matches!(unheard, Error::Unavailable(_)), "{unheard}");
    let new = next.begin_term(START).await.unwrap();
    proxy.set_fault(LinkFault::None);
    eventually(Duration::from_secs(10), "the late call is refused", async || {
        let errors: String = server.command(&["INFO", "errorstats"]).await.unwrap();
        errors.contains("errorstat_STALE:count=1")
    })
    .await;
    assert_eq!(next.counts(&[item("concert")]).await.unwrap()[0].entered, 0);
    assert_eq!(next.admit(new, &item("concert"), 5, 0, 100, START).await.unwrap().admitted, 5);
}
