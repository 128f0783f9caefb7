//! A replica of the scheduler: begins a term at random, ticks and relays until the store rejects its epoch. There is no lease, so every
//! overlap of terms that a lease could allow occurs. Its clock differs from those of the others.

use std::sync::Arc;

use daegi_scheduler::{Relay, Ticker};
use daegi_store::{Error, SharedStore};

use super::faulty_store::connect_leader;
use super::state::SimState;
use crate::history::Millis;

/// Maximum number of turns between two terms.
const MAX_STANDBY_TURNS: usize = 150;

const OUTBOX_MAX: u64 = 8;

pub(super) async fn run(state: Arc<SimState>) {
    let store: SharedStore = Arc::new(connect_leader(&state));
    let (ahead, behind) = state.leader_skew();
    let now = || state.now() + ahead - behind;
    loop {
        state.turns(state.pick(MAX_STANDBY_TURNS)).await;
        if let Ok(epoch) = store.begin_term(now()).await {
            let mut ticker = Ticker::new(store.clone(), epoch, OUTBOX_MAX);
            if let Some(keys) = SimState::ticket_keys() {
                ticker = ticker.with_ticket_keys(keys);
            }
            let relay = Relay::new(store.clone(), state.sink());
            // A rejected epoch ends tick and relay.
            futures_util::future::select(
                std::pin::pin!(ticks(&state, ticker, now)),
                std::pin::pin!(relays(&state, relay)),
            )
            .await;
        }
    }
}

async fn ticks(state: &SimState, mut ticker: Ticker, now: impl Fn() -> Millis) {
    while !matches!(ticker.tick(now()).await, Err(Error::StaleEpoch(_))) {
        state.turns(state.pick(5)).await;
    }
}

async fn relays(state: &SimState, relay: Relay) {
    loop {
        // Events that were not published are published in the next round.
        let _ = relay.publish_all().await;
        state.turns(state.pick(5)).await;
    }
}
