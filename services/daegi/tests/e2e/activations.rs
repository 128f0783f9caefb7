//! Everybody who was let in is told to the order service, whatever dies on the way.

mod orders;
mod sale;

use daegi_testkit::{kafka_or_skip, redis_or_skip, seeded_rng};

use orders::OrderService;
use sale::{EVERYBODY, Sale};

/// So many of each line are let in per tick: the whole sale takes some twenty seconds.
const BRISK: u32 = 8;
/// While the broker is away, so that people still wait when it is back, however long that takes.
const SLOW: u32 = 1;

#[tokio::test(flavor = "multi_thread")]
async fn activations_are_complete_and_in_order_though_leaders_are_killed_and_the_broker_stops() {
    let (Some(redis), Some(mut kafka)) = (redis_or_skip().await, kafka_or_skip().await) else {
        return;
    };
    let mut chance = seeded_rng("activations");
    let mut sale = Sale::open(&redis, &kafka.bootstrap()).await;
    let history = sale.everybody_joins().await;
    let orders = OrderService::listen(&kafka.bootstrap()).await;
    sale.quota(BRISK).await;

    orders.until(chance.usize(1_000..5_000)).await;
    sale.kill_leader().await;

    orders.until(chance.usize(6_000..9_000)).await;
    sale.quota(SLOW).await;
    kafka.stop();
    sale.let_in(chance.u64(20..200)).await;
    sale.kill_leader().await;
    sale.let_in(chance.u64(20..200)).await;
    kafka.start_again().await.unwrap();
    sale.quota(BRISK).await;

    orders.until(orders.count() + chance.usize(1..2_000)).await;
    sale.kill_leader().await;
    assert!(orders.count() < EVERYBODY, "the last kill came too late to matter");

    orders.until(EVERYBODY).await;
    let told = orders.told();
    eprintln!("activations: {} repeats", told.repeats);
    assert_eq!(told.wrong, Vec::<String>::new());
    assert!(told.numbers == history, "who was told of and who joined are not the same");
    sale.everybody_may_enter().await;
}
