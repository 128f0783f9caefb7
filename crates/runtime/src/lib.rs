//! What every daegi process shares, so that a service is only its own domain.
//!
//! The crate promises:
//!
//! - **One configuration**, parsed once from an injectable source. A bad value is one clear line
//!   that names the option and never a secret, and exit 64.
//! - **Every error is a problem** (RFC 9457): unknown routes, wrong methods, panics, oversized
//!   requests and bodies that do not fit all answer `application/problem+json`.
//! - **An orderly end**: not ready, then listeners close, then what is in flight finishes until a
//!   deadline. A process with a dead part does not look alive.
//!
//! | module | what lives there |
//! |---|---|
//! | [`process`] | the life of a process from `main` to its exit code |
//! | [`config`] | options, environment, secrets, and what each role cannot do without |
//! | [`descriptors`] | how many connections a process may have open |
//! | [`telemetry`] | logs on stderr, metrics for Prometheus |
//! | [`traces`] | spans of tickets for OpenTelemetry, off unless asked for |
//! | [`clock`] | unix milliseconds from the system, or from a test's hand |
//! | [`problem`] | error codes with their status, and the response they become |
//! | [`http`] | the server loop, the guard around every router, extractors that answer problems |
//! | [`health`] | `/livez`, `/readyz`, `/metrics` |
//! | [`shutdown`] | the two steps of ending, and the tasks that ending waits for |

pub mod clock;
pub mod config;
pub mod descriptors;
pub mod health;
pub mod http;
pub mod problem;
pub mod process;
pub mod shutdown;
pub mod telemetry;
pub mod traces;

pub use clock::Clock;
pub use config::{AdminToken, Config, ConfigError, KafkaConfig, Role, Secrets, StoreConfig};
pub use health::Health;
pub use problem::{Code, Problem};
pub use shutdown::Shutdown;
pub use traces::Traces;
