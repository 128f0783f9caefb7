//! Protects the endpoints of a service: only users admitted by the waiting room pass, all others are
//! sent to the waiting page.
//!
//! ```no_run
//! use axum::{Router, routing::post};
//! use daegi_guard::{Entry, Guard, ItemId, GuardConfig};
//!
//! # fn shop() -> anyhow::Result<Router> {
//! let guard = Guard::new(GuardConfig {
//!     browser_url: "https://wait.example.com".into(),
//!     internal_url: Some("http://daegi-api-internal:8081".into()),
//!     ..GuardConfig::new("http://daegi-api")
//! })?;
//! let order = async |entry: Entry| format!("thank you, {}", entry.user);
//! let concert = guard.layer(ItemId::parse("concert")?).complete_on_success();
//! Ok(Router::new().route("/orders", post(order)).layer(concert))
//! # }
//! ```
//!
//! A guard verifies passes offline, against daegi's published keys. The guards for Java and Node
//! behave identically; `sdk/vectors` tests all five.
//!
//! The default client has no TLS, which a guard in the same cluster as daegi does not need. For an
//! `https` URL, pass a client with TLS to [`Guard::with_client`].
//!
//! | module | contents |
//! |---|---|
//! | [`guard`] | the [`Guard`]: checks a pass, completes an entry |
//! | [`layer`] | tower layer that protects routes |
//! | [`entry`] | the [`Entry`] that handlers extract |
//! | [`refusal`] | reasons to refuse a request, and the responses |
//! | `pass_source` | finds the pass of a request |
//! | `jwks` | fetches and caches the public keys |
//! | `claims` | decodes and validates a pass |
//! | `health_reports` | reports about the health of this service, for lines with an adaptive pace |
//! | `internal_client` | client of daegi's internal listener |

mod claims;
pub mod entry;
pub mod guard;
mod health_reports;
mod internal_client;
mod jwks;
pub mod layer;
mod pass_source;
pub mod refusal;

pub use daegi_domain::{ItemId, LaneName};
pub use entry::Entry;
pub use guard::{Authorization, Clock, Error, Guard, GuardConfig, OnUnavailable};
pub use layer::GuardLayer;
pub use pass_source::{FoundPass, cookie, find, find_pass};
pub use refusal::Refusal;
/// The version of `reqwest` whose client [`Guard::with_client`] takes.
pub use reqwest;
