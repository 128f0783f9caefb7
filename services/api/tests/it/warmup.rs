use std::time::Duration;

use daegi_store::Store;
use tokio::time::sleep;

use crate::harness::World;
use crate::probe::Mood;

#[tokio::test(start_paused = true)]
async fn the_warm_up_goes_through_everything_and_leaves_no_trace() {
    let world = World::cold();
    assert!(world.health.check().is_err(), "not ready before");
    world.is_ready().await;
    for call in ["put_item", "join", "snapshot", "mark_seen", "purge"] {
        assert!(world.store.calls(call) > 0, "{call}");
    }
    assert!(world.store.items().await.unwrap().is_empty());
    assert!(world.store.active_lines().await.unwrap().is_empty());
    for partition in 0..world.store.partitions() {
        assert_eq!(world.store.outbox_len(partition).await.unwrap(), 0);
    }
    let marks = world.store.calls("mark_seen");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(world.store.calls("mark_seen"), marks, "nothing arrives after the purge");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn readiness_waits_for_the_store() {
    let world = World::cold();
    world.store.set_mood(Mood::Refusing);
    sleep(Duration::from_secs(10)).await;
    let reason = world.health.check().unwrap_err();
    assert!(reason.contains("warming up"), "{reason}");
    world.store.set_mood(Mood::Up);
    world.is_ready().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_before_it_is_warm_stops() {
    let world = World::cold();
    world.store.set_mood(Mood::Hanging);
    sleep(Duration::from_secs(1)).await;
    world.end().await;
}
