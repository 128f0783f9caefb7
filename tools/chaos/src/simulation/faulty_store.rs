//! The memory store behind a faulty network: calls are late, lost, or executed without a reply.

use std::sync::Arc;

use daegi_store::{Error, Result};
use daegi_testkit::{InterceptedStore, StoreInterceptor};

use super::state::SimState;

/// The store as one task sees it.
pub(super) type FaultyStore = InterceptedStore<FaultyNetwork>;

/// Injects the faults of the network.
#[derive(Debug, Clone)]
pub(super) struct FaultyNetwork {
    state: Arc<SimState>,
    /// Whether the client is a leader, which may die at a call.
    is_leader: bool,
}

/// Connects to the store through the network.
pub(super) fn connect(state: &Arc<SimState>) -> FaultyStore {
    let interceptor = FaultyNetwork { state: state.clone(), is_leader: false };
    InterceptedStore { store: state.store.clone(), interceptor }
}

/// Connects a leader.
pub(super) fn connect_leader(state: &Arc<SimState>) -> FaultyStore {
    let interceptor = FaultyNetwork { state: state.clone(), is_leader: true };
    InterceptedStore { store: state.store.clone(), interceptor }
}

impl StoreInterceptor for FaultyNetwork {
    /// Delays the call; it may be lost.
    async fn before(&self, call: &'static str) -> Result<()> {
        self.state.pause().await;
        if self.is_leader && self.state.leader_dies(call, false) {
            // The task is dropped after this turn.
            std::future::pending::<()>().await;
        }
        self.fails("simulated: request lost")
    }

    /// A leader that dies here does not send another call, because it is dropped after this turn.
    fn after(&self, call: &'static str) -> Result<()> {
        if self.is_leader {
            self.state.leader_dies(call, true);
        }
        self.fails("simulated: reply lost")
    }
}

impl FaultyNetwork {
    fn fails(&self, how: &str) -> Result<()> {
        if self.state.fails(0.05) { Err(Error::Unavailable(how.into())) } else { Ok(()) }
    }
}
