//! The HTTP server of every listener.
//!
//! - [`serve`] is the server loop: limits of connections and bytes ([`Limits`]), timeouts of slow clients, a
//!   graceful shutdown.
//! - [`HttpService`] wraps a router so that every failure is answered with a problem.
//!   [`HttpService::with_fast_path`] answers the most frequent requests without the router.
//! - [`Limits::proxies`] begin their connections with a header of the PROXY protocol.
//! - [`TrustedProxies`] finds the [`Source`] of a request, and [`HttpService::with_filter`] refuses requests before they
//!   cost anything.
//! - [`CorsOrigins`] are the origins whose pages may read responses.
//! - [`bind`] binds an address; its error names the option that sets the address.
//! - [`SwappableService`] is a service that is replaced while it is served: health first, the rest later.
//! - [`Asset`] is a file of a page, embedded in the binary.
//! - [`bearer`] reads the token of a request.
//! - [`JsonBody`], [`QueryParams`] and [`PathParams`] are axum's extractors with problems as
//!   rejections.

mod asset;
mod bearer;
mod body;
mod budget;
mod connection;
mod cors;
mod deadline;
pub(crate) mod error_metrics;
mod extract;
mod fast_path;
mod idle_timeout;
mod intake;
mod lifetime;
mod limits;
mod listener;
mod proxy_protocol;
mod server;
mod service;
mod source;
mod swap;

pub use asset::{Asset, build_hash};
pub use bearer::bearer;
pub use body::MAX_BODY;
pub use budget::FREE_BYTES;
pub use connection::Peer;
pub use cors::{CorsOrigins, InvalidOrigins};
pub use error_metrics::ERRORS;
pub use extract::{JsonBody, PathParams, QueryParams};
pub use fast_path::{FastResponse, RequestHead};
pub use limits::{Limits, REFUSED};
pub use listener::{BindError, bind};
pub use server::serve;
pub use service::{BodyLimit, HttpService, MAX_HEADERS, MAX_URI, REQUEST_DEADLINE};
pub use source::{ForwardedHeader, InvalidNetworks, Source, TrustedProxies};
pub use swap::SwappableService;
