//! Kafka, against the embedded broker and, where it can be had, a real one.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod agreement;
mod broker;
mod catching_up;
mod consuming;
mod holding;
mod notes;
mod publishing;
mod schemas;
