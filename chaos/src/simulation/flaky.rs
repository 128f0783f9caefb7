//! The memory store, as a network shows it: late, or not at all, or carried out and not answered.

use std::sync::Arc;

use daegi_store::{Error, Result};
use daegi_testkit::{Gate, Gated};

use super::world::World;

/// A way to the store of a world.
pub(super) type Flaky = Gated<Network>;

/// What calls go through.
#[derive(Debug, Clone)]
pub(super) struct Network(Arc<World>);

/// Opens a way to the store.
pub(super) fn way_to(world: &Arc<World>) -> Flaky {
    Gated { store: world.store.clone(), gate: Network(world.clone()) }
}

impl Gate for Network {
    /// A call waits for its turn, and may not arrive.
    async fn before(&self, _call: &'static str) -> Result<()> {
        self.0.pause().await;
        self.fails("not reached, says the simulation")
    }

    fn after(&self, _call: &'static str) -> Result<()> {
        self.fails("no answer, says the simulation")
    }
}

impl Network {
    fn fails(&self, how: &str) -> Result<()> {
        if self.0.fails(0.05) { Err(Error::Unavailable(how.into())) } else { Ok(()) }
    }
}
