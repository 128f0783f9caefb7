//! The whole waiting room over HTTP, as people, services and operators use it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod activations;
mod catalogue;
mod compose;
mod demo;
mod events;
mod fail_over;
mod fleet;
mod leadership;
mod line;
mod member;
mod outage;
mod people;
mod poison;
mod process;
mod recovery;
mod replay;
mod replicas;
mod restart;
mod room;
mod sale;
mod tokens;
mod traces;
