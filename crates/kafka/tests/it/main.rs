//! Kafka, against the embedded broker.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod consuming;
mod publishing;
mod reader;
mod schemas;
