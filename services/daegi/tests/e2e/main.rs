//! The whole waiting room over HTTP, as people, services and operators use it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod demo;
mod events;
mod fleet;
mod line;
mod outage;
mod people;
mod process;
mod room;
mod sale;
mod tokens;
