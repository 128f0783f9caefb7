use std::time::Duration;

use daegi_store::{ItemStore, OutboxStore, Store};
use tokio::time::sleep;

use crate::harness::Harness;
use crate::spy_store::StoreMode;

#[tokio::test(start_paused = true)]
async fn the_warm_up_exercises_all_calls_and_leaves_no_trace() {
    let harness = Harness::cold();
    assert!(harness.health.check().is_err(), "not ready before");
    harness.wait_until_ready().await;
    for call in ["put_item", "join", "snapshot", "mark_seen", "purge"] {
        assert!(harness.store.calls(call) > 0, "{call}");
    }
    assert!(harness.store.items().await.unwrap().is_empty());
    assert!(harness.store.active_lines().await.unwrap().is_empty());
    for partition in 0..harness.store.partitions() {
        assert_eq!(harness.store.outbox_len(partition).await.unwrap(), 0);
    }
    let marks = harness.store.calls("mark_seen");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(harness.store.calls("mark_seen"), marks, "nothing arrives after the purge");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn readiness_waits_for_the_store() {
    let harness = Harness::cold();
    harness.store.set_mode(StoreMode::Refusing);
    sleep(Duration::from_secs(10)).await;
    let reason = harness.health.check().unwrap_err();
    assert!(reason.contains("warming up"), "{reason}");
    harness.store.set_mode(StoreMode::Up);
    harness.wait_until_ready().await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_can_stop_during_the_warm_up() {
    let harness = Harness::cold();
    harness.store.set_mode(StoreMode::Hanging);
    sleep(Duration::from_secs(1)).await;
    harness.end().await;
}
