//! Events in and out of Kafka. Knows topics and delivery, nothing of lines or stores.
//!
//! The crate promises:
//!
//! - **Published means confirmed**: [`Publisher::publish`] returns when every record is on all
//!   in-sync replicas, or with an error after which the same records may be published again.
//!   First deliveries of one key are in order either way.
//! - **Read means done**: an offset is stored after the effect. What can never have one becomes a
//!   dead letter, what cannot yet is waited for; nothing is skipped.
//!
//! | module | what lives there |
//! |---|---|
//! | [`event`] | which event goes to which topic, under which key |
//! | [`schema`] | the JSON Schema of each event, kept in `schemas/` |
//! | [`record`] | a message to be published, with CloudEvents headers |
//! | [`producer`] | the publisher |
//! | [`consumer`] | the loop that turns messages into effects, and dead letters |
//! | [`meters`] | the names of its metrics |
//! | [`embedded`] | a broker inside the process, for trying out and for tests |

mod client;
pub mod consumer;
pub mod embedded;
mod error;
pub mod event;
pub mod meters;
pub mod producer;
pub mod record;
pub mod schema;

pub use consumer::{Consumer, Effect, Halt, Incoming, Lag, Missing, Poison, Source, Standing};
pub use embedded::EmbeddedBroker;
pub use error::{Error, Result};
pub use event::Event;
pub use producer::{Handed, Publisher, Stretch};
pub use record::Record;
