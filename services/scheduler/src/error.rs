use std::io;
use std::net::SocketAddr;

use crate::SeedError;

/// Why a scheduler cannot start. Once it runs, it waits for whatever it misses.
/// Sources are not repeated in messages: whoever prints one prints its chain.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] daegi_store::Error),
    /// The seed file cannot be used.
    #[error("--seed-items (DAEGI_SEED_ITEMS)")]
    Seed(#[from] SeedError),
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}, see --internal-addr (DAEGI_INTERNAL_ADDR)")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}
