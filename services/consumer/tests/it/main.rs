//! From a topic to the store through the embedded broker, and the consumer as a process.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod control;
mod ended_tickets;
mod harness;
mod items;
mod orders;
mod poison;
mod process;
