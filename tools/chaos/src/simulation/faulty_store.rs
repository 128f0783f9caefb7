//! The memory store behind a faulty network: calls are late, lost, or executed without a reply.

use std::sync::Arc;

use daegi_store::{Error, Result};
use daegi_testkit::{InterceptedStore, StoreInterceptor};

use super::state::SimState;

/// The store as one task sees it.
pub(super) type FaultyStore = InterceptedStore<FaultyNetwork>;

/// Injects the faults of the network.
#[derive(Debug, Clone)]
pub(super) struct FaultyNetwork(Arc<SimState>);

/// Connects to the store through the network.
pub(super) fn connect(state: &Arc<SimState>) -> FaultyStore {
    InterceptedStore { store: state.store.clone(), interceptor: FaultyNetwork(state.clone()) }
}

impl StoreInterceptor for FaultyNetwork {
    /// Delays the call; it may be lost.
    async fn before(&self, _call: &'static str) -> Result<()> {
        self.0.pause().await;
        self.fails("simulated: request lost")
    }

    fn after(&self, _call: &'static str) -> Result<()> {
        self.fails("simulated: reply lost")
    }
}

impl FaultyNetwork {
    fn fails(&self, how: &str) -> Result<()> {
        if self.0.fails(0.05) { Err(Error::Unavailable(how.into())) } else { Ok(()) }
    }
}
