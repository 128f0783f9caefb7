//! Kafka, against the embedded broker and, if Java is installed, a real one.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod agreement;
mod broker;
mod consuming;
mod holding;
mod publishing;
mod recording_handler;
mod replay;
mod schemas;
#[cfg(feature = "tls")]
mod secured;
