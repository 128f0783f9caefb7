//! A replica of the scheduler: begins a term whenever it thinks it should, ticks and relays until
//! the store refuses it. There is no lease here: whatever a lease lets happen, happens.

use std::sync::Arc;

use daegi_scheduler::{Relay, Ticker};
use daegi_store::{Error, SharedStore};

use super::flaky::way_to;
use super::world::World;

/// So many turns a replica stands by after a term, at most.
const STANDS_BY: usize = 150;

const OUTBOX_MAX: u64 = 8;

pub(super) async fn live(world: Arc<World>) {
    let store: SharedStore = Arc::new(way_to(&world));
    loop {
        world.turns(world.pick(STANDS_BY)).await;
        if let Ok(epoch) = store.begin_term(world.now()).await {
            let ticker = Ticker::new(store.clone(), epoch, OUTBOX_MAX);
            let relay = Relay::new(store.clone(), world.ear());
            // A refusal ends both, wherever the relay is.
            futures_util::future::select(
                std::pin::pin!(ticks(&world, ticker)),
                std::pin::pin!(relays(&world, relay)),
            )
            .await;
        }
    }
}

async fn ticks(world: &World, mut ticker: Ticker) {
    while !matches!(ticker.tick(world.now()).await, Err(Error::StaleEpoch(_))) {
        world.turns(world.pick(5)).await;
    }
}

async fn relays(world: &World, relay: Relay) {
    loop {
        // What could not be told is told in the next round.
        let _ = relay.step().await;
        world.turns(world.pick(5)).await;
    }
}
