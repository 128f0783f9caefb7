//! Simulated sales: what a sale would do with other settings, and whether estimates of the wait hold.
//!
//! The crate guarantees:
//!
//! - **The product's own rules**: joins, admissions, expiry, missed turns and lanes are those of
//!   [`daegi_store::MemoryStore`], in the order of the leader's round; estimates are those of pods.
//! - **A controlled clock**: nothing waits, so that an hour of a sale takes a second or less.
//! - **Deterministic**: a sale with the same seed has the same outcome.
//! - **Bounded**: [`Limits`] restrict the arrivals and the time that a run may take.
//!
//! | module | what lives there |
//! |---|---|
//! | [`sale`] | the settings of a sale and the behaviour of its visitors |
//! | [`arrivals`] | when visitors arrive: invented, or recorded per minute |
//! | `engine` | one run on the memory store |
//! | [`looks`] | what visitors saw as their wait, scored against what happened |
//! | [`forecast`] | the outcome |

pub mod arrivals;
mod engine;
pub mod forecast;
pub mod looks;
pub mod sale;

pub use arrivals::{Arrivals, Shape};
pub use engine::simulate;
pub use forecast::{Forecast, PerMinute, Waits};
pub use looks::EstimateScore;
pub use sale::{Limits, Pause, Sale, Visitors};

/// Why a sale cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A field of the sale.
    #[error("{0}")]
    Invalid(String),
    /// The run took longer than allowed.
    #[error("the simulation took longer than {0} s: use fewer arrivals or fewer hours")]
    TooLong(u64),
    /// The memory store failed, which it does not.
    #[error("the memory store failed: {0}")]
    Store(#[from] daegi_store::Error),
}
