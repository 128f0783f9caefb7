//! The same suites, on every way people run Redis.

use daegi_store::RedisStore;
use daegi_testkit::{RedisCluster, redis_cluster_or_loud, redis_sentinel_or_loud};
use tokio::runtime::Runtime;

use crate::support::{PARTITIONS, SETTINGS, Setup, again_at};
use crate::{board, lease, news, rules, specification};

/// Every rule by name, then random histories against the specification.
fn every_suite(runtime: &Runtime, setup: &Setup) {
    let suites = [rules::EVERYWHERE, news::EVERYWHERE, lease::EVERYWHERE, board::EVERYWHERE];
    for rule in suites.into_iter().flatten() {
        runtime.block_on(setup.flush());
        again_at(&setup.url(), *rule);
    }
    specification::agrees_elsewhere(runtime, setup);
}

#[test]
fn everything_holds_under_sentinels() {
    let runtime = Runtime::new().unwrap();
    if let Some(started) = runtime.block_on(redis_sentinel_or_loud()) {
        every_suite(&runtime, &Setup::Sentinel(started));
    }
}

#[test]
fn everything_holds_on_a_cluster() {
    let runtime = Runtime::new().unwrap();
    if let Some(started) = runtime.block_on(redis_cluster_or_loud()) {
        runtime.block_on(a_node_alone_is_refused(&started));
        every_suite(&runtime, &Setup::Cluster(started));
    }
}

async fn a_node_alone_is_refused(cluster: &RedisCluster) {
    let node = cluster.url().replace("redis+cluster://", "redis://");
    let node = node.split(',').next().unwrap();
    let error = RedisStore::open(node, PARTITIONS, SETTINGS).await.unwrap_err();
    assert!(error.is_misconfigured(), "{error}");
    assert!(error.to_string().contains("give redis+cluster://"), "{error}");
}
