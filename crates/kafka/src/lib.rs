//! Publishes and consumes events over Kafka. The crate handles topics and delivery; it contains no
//! rules of lines and no store.
//!
//! The crate guarantees:
//!
//! - **Published means confirmed**: [`Publisher::publish`] returns when every record is on all
//!   in-sync replicas, or with an error after which the same records may be published again.
//!   First deliveries of one key are in order either way.
//! - **Consumed means applied**: an offset is stored after the effect. A message that can never be
//!   applied goes to the dead-letter topic, one that cannot be applied yet is retried; none is skipped.
//!
//! | module | what lives there |
//! |---|---|
//! | `brokers` | [`Brokers`]: addresses, and properties such as certificates and passwords |
//! | [`event`] | which event goes to which topic, under which key |
//! | [`schema`] | the JSON Schema of each event, committed in `schemas/` |
//! | [`record`] | a message to publish, with CloudEvents headers |
//! | [`publisher`] | the publisher and its delivery guarantees |
//! | [`consumer`] | the consumer loop, replays and dead letters |
//! | [`topic_metadata`] | how many partitions a topic has |
//! | [`metrics`] | the names of its metrics |
//! | [`embedded`] | a broker inside the process, for trials and tests |

mod brokers;
mod client;
pub mod consumer;
pub mod embedded;
mod error;
pub mod event;
pub mod metrics;
pub mod publisher;
pub mod record;
pub mod schema;
pub mod topic_metadata;

pub use brokers::{Brokers, PropertiesError};
pub use consumer::{
    Consumer, ConsumerConfig, InboundMessage, LagHandle, MessageHandler, PartialFailure, Poison,
    ReplayProgress, RetryLater,
};
pub use embedded::EmbeddedBroker;
pub use error::{Error, Result};
pub use event::Event;
pub use publisher::{PendingDelivery, PublishSession, Publisher};
pub use record::Record;
pub use topic_metadata::TopicMetadata;
