//! The suites again on Sentinel and Cluster.

use daegi_store::RedisStore;
use daegi_testkit::{RedisCluster, redis_cluster_or_skip, redis_sentinel_or_skip};
use tokio::runtime::Runtime;

use crate::support::{PARTITIONS, SETTINGS, Topology, run_again_at};
use crate::{access, admin, history, item_updates, lease, model, rules};

/// Every rule by name, then random histories against the model.
fn every_suite(runtime: &Runtime, topology: &Topology) {
    let suites = [
        rules::ALL_TOPOLOGIES,
        item_updates::ALL_TOPOLOGIES,
        lease::ALL_TOPOLOGIES,
        admin::ALL_TOPOLOGIES,
        access::ALL_TOPOLOGIES,
        history::ALL_TOPOLOGIES,
    ];
    for rule in suites.into_iter().flatten() {
        runtime.block_on(topology.flush());
        run_again_at(topology.config(), *rule);
    }
    model::agrees_on_other_topology(runtime, topology);
}

#[test]
fn all_suites_pass_under_sentinel() {
    let runtime = Runtime::new().unwrap();
    if let Some(started) = runtime.block_on(redis_sentinel_or_skip()) {
        every_suite(&runtime, &Topology::Sentinel(started));
    }
}

#[test]
fn all_suites_pass_on_a_cluster() {
    let runtime = Runtime::new().unwrap();
    if let Some(started) = runtime.block_on(redis_cluster_or_skip()) {
        runtime.block_on(a_single_cluster_node_is_refused(&started));
        every_suite(&runtime, &Topology::Cluster(started));
    }
}

async fn a_single_cluster_node_is_refused(cluster: &RedisCluster) {
    let mut node = cluster.config();
    node.url = node.url.replace("+cluster://", "://").split(',').next().unwrap().to_owned();
    let error = RedisStore::open(node, PARTITIONS, SETTINGS).await.unwrap_err();
    assert!(error.is_misconfigured(), "{error}");
    assert!(error.to_string().contains("give redis+cluster://"), "{error}");
}
