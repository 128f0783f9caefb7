//! The api of the waiting room: users join, poll their exact position and leave; services verify
//! entries.
//!
//! The crate guarantees:
//!
//! - **A poll costs the store nothing.** A pod answers from its cached copy of the line, which it
//!   refreshes four times per second while waiting tickets are polled, once for all of them.
//! - **Requests without a waiting ticket cost the store next to nothing.** Public views of lines,
//!   unknown items and ended tickets are answered from bounded caches.
//! - **Concurrent requests share store calls.** Joins that arrive during a call form the next batch, and
//!   so do requests for the state of tickets.
//! - **A store outage is reported, not passed on as latency.** Within a second the response is 503 with
//!   `Retry-After`. When the store is back, the api recovers by itself.
//! - **The specification cannot drift.** Router, OpenAPI document and docs page are generated from one
//!   list of operations.
//!
//! | module | contents |
//! |---|---|
//! | `app` | [`start`] and [`run`]: composition |
//! | `routes` | the operations: routers, OpenAPI document and docs page are built from them |
//! | `endpoints` | HTTP handlers |
//! | `tickets` | the use cases: join, poll, leave, verify, complete |
//! | `lines` | cached lines, batches and marks |
//! | `wire` | the JSON of the contract |
//! | `gate` | decides for a proxy whether a request has a valid pass |
//! | `warmup` | requests that the pod makes before it becomes ready |
//! | `access` | the block and allow list |
//! | `signals` | signals that tickets belong to programs |
//! | `visits` | counts of visits, without what identifies a user |
//! | `rate_limits` | how often sources, users and tickets may send requests |
//! | `waiting_page` | the HTML of the waiting page |
//! | `error`, `timeouts`, `metrics` | errors and their statuses, timeouts of store calls, metrics |

mod access;
mod app;
mod endpoints;
mod error;
mod gate;
mod lines;
mod metrics;
mod rate_limits;
mod routes;
mod signals;
mod tickets;
mod timeouts;
mod visits;
mod waiting_page;
mod warmup;
mod wire;

pub use app::{Api, ApiDeps, ApiLimits, COMPONENT, run, start};
pub use daegi_bootstrap::Listeners;
pub use error::Error;
pub use routes::document as openapi_document;
pub use visits::VisitOptions;
