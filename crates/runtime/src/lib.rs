//! Configuration, HTTP, health, telemetry and shutdown of every daegi process.
//!
//! The crate guarantees:
//!
//! - **One configuration**, parsed once from an injectable source. An invalid value is reported in one
//!   line that names the option and never a secret, with exit code 64.
//! - **Every error response is a problem** (RFC 9457): unknown routes, wrong methods, panics, oversized
//!   requests and invalid bodies all return `application/problem+json`.
//! - **An orderly shutdown**: not ready, then listeners close, then requests in flight finish until a
//!   deadline. A process with a failed component exits.
//!
//! | module | what lives there |
//! |---|---|
//! | [`process`] | the life of a process from `main` to its exit code |
//! | [`config`] | options, environment, secrets, and what each role requires |
//! | [`rlimit`] | the limit of open file descriptors |
//! | [`telemetry`] | logs on stderr, metrics for Prometheus |
//! | [`spans`] | spans of tickets for OpenTelemetry, off by default |
//! | [`clock`] | unix milliseconds of the system, or set by a test |
//! | [`problem`] | error codes, their status and their response |
//! | [`http`] | the server loop, the service around every router, extractors that reject with problems |
//! | [`health`] | `/livez`, `/readyz`, `/metrics` |
//! | [`rate_limit`] | how often something may happen per key, in a fixed amount of memory |
//! | [`openapi`] | routes with their documentation, and the OpenAPI document |
//! | [`outage`] | logging and backoff of failing operations |
//! | [`shutdown`] | the two steps of a shutdown, and the tasks it waits for |

pub mod clock;
pub mod config;
pub mod health;
pub mod http;
pub mod openapi;
pub mod outage;
pub mod problem;
pub mod process;
pub mod rate_limit;
pub mod rlimit;
pub mod shutdown;
pub mod spans;
pub mod telemetry;

pub use clock::Clock;
pub use config::{AdminToken, Config, ConfigError, KafkaConfig, Role, Secrets, StoreConfig};
pub use health::Health;
pub use problem::{Code, Problem};
pub use shutdown::Shutdown;
pub use spans::Tracer;
