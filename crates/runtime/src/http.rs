//! HTTP as every listener of the project does it.
//!
//! - [`serve`] is the server loop: bounded connections and bytes ([`Limits`]), slow clients cut off, a
//!   graceful end.
//! - [`guarded`] wraps a router so that whatever goes wrong is answered with a problem.
//!   [`Guarded::with_shortcut`] answers what nearly everybody asks without the router.
//! - [`bind`] takes a port, or says which option chooses another.
//! - [`Replaceable`] is a router that changes while it is served: health first, the rest later.
//! - [`Asset`] is a file of a page, embedded in the binary.
//! - [`JsonBody`], [`QueryParams`] and [`PathParams`] are axum's extractors with problems as
//!   rejections.

mod alarm;
mod asset;
mod body;
mod budget;
mod client;
mod extract;
mod guard;
mod idle;
mod intake;
mod limits;
mod listen;
mod replaceable;
mod server;
mod shortcut;
pub(crate) mod trouble;

pub use asset::{Asset, version_of};
pub use body::MAX_BODY;
pub use budget::FREE_BYTES;
pub use client::Peer;
pub use extract::{JsonBody, PathParams, QueryParams};
pub use guard::{BodyLimit, Guarded, MAX_HEADERS, MAX_URI, REQUEST_DEADLINE, guarded};
pub use limits::{Limits, REFUSED};
pub use listen::{ListenError, bind};
pub use replaceable::Replaceable;
pub use server::serve;
pub use shortcut::{Head, Taken};
pub use trouble::ERRORS;
