//! The order service receives every admission, although leaders are killed and the broker stops.

mod orders;
mod sale;

use daegi_testkit::{kafka_or_skip, redis_or_skip, seeded_rng};

use orders::OrderService;
use sale::{Sale, USERS};

/// Admissions per line and tick: the whole sale takes about 20 s.
const FAST_QUOTA: u32 = 8;
/// Quota while the broker is down, so that users still wait when it is back.
const SLOW_QUOTA: u32 = 1;

#[tokio::test(flavor = "multi_thread")]
async fn activated_events_are_complete_and_in_order_although_leaders_are_killed_and_the_broker_stops()
 {
    let (Some(redis), Some(mut kafka)) = (redis_or_skip().await, kafka_or_skip().await) else {
        return;
    };
    let mut rng = seeded_rng("activations");
    let mut sale = Sale::open(&redis, &kafka.bootstrap()).await;
    let joined = sale.join_all().await;
    let orders = OrderService::start(&kafka.bootstrap()).await;
    sale.quota(FAST_QUOTA).await;

    orders.until(rng.usize(1_000..5_000)).await;
    sale.kill_leader().await;

    orders.until(rng.usize(6_000..9_000)).await;
    sale.quota(SLOW_QUOTA).await;
    kafka.stop();
    sale.wait_for_admissions(rng.u64(20..200)).await;
    sale.kill_leader().await;
    sale.wait_for_admissions(rng.u64(20..200)).await;
    kafka.start_again().await.unwrap();
    sale.quota(FAST_QUOTA).await;

    orders.until(orders.count() + rng.usize(1..2_000)).await;
    sale.kill_leader().await;
    assert!(orders.count() < USERS, "the last kill came after the last event");

    orders.until(USERS).await;
    let received = orders.received();
    eprintln!("token.activated: {} repeats", received.repeats);
    assert_eq!(received.violations, Vec::<String>::new());
    assert!(received.numbers == joined, "admitted and joined numbers differ");
    sale.assert_all_enterable().await;
}
