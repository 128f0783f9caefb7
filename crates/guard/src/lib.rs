//! What a service puts in front of its endpoints: only people whom the waiting room let in get
//! through, the others are sent to the waiting page.
//!
//! ```no_run
//! use axum::{Router, routing::post};
//! use daegi_guard::{Entry, Guard, ItemId, Setup};
//!
//! # fn shop() -> anyhow::Result<Router> {
//! let guard = Guard::new(Setup {
//!     pages: "https://wait.example.com".into(),
//!     internal: Some("http://daegi-api-internal:8081".into()),
//!     ..Setup::of("http://daegi-api")
//! })?;
//! let order = async |entry: Entry| format!("thank you, {}", entry.user);
//! let concert = guard.protect(ItemId::parse("concert")?).completing();
//! Ok(Router::new().route("/orders", post(order)).layer(concert))
//! # }
//! ```
//!
//! A pass is checked here, against daegi's published keys, without asking anybody. The guards for
//! Java and Node do the same; `sdk/vectors` keeps all three in step.
//!
//! A guard has no TLS of its own, and inside a cluster, as here, needs none. One that reaches daegi
//! by an `https` address is given a client that can: [`Guard::with_client`].
//!
//! | module | what lives there |
//! |---|---|
//! | [`guard`] | the [`Guard`]: checks a pass, completes an entry |
//! | [`layer`] | the tower layer that protects routes |
//! | [`entry`] | the [`Entry`] that handlers get |
//! | [`refusal`] | why somebody is not let in, and what they are answered |
//! | `carrier` | where in a request the pass is |
//! | `keys` | the published keys, kept and fetched anew |
//! | `claims` | what a pass says, and whether it counts |
//! | `internal` | daegi's internal listener |

mod carrier;
mod claims;
pub mod entry;
pub mod guard;
mod internal;
mod keys;
pub mod layer;
pub mod refusal;

pub use carrier::find as find_pass;
pub use daegi_domain::ItemId;
pub use entry::Entry;
pub use guard::{Admission, Clock, Error, Guard, Setup, WhenAway};
pub use layer::Protect;
pub use refusal::Refusal;
/// What [`Guard::with_client`] takes a client of.
pub use reqwest;
