//! End-to-end tests: all services over HTTP, as users, other services and operators call them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod admission_events;
mod beacon;
mod compose;
mod demo;
mod events;
mod fail_over;
mod fleet;
mod harness;
mod lanes;
mod leadership;
mod line;
mod openings;
mod outage;
mod poison;
mod poll_cost;
mod process;
mod processes;
mod product_service;
mod recovery;
mod replay;
mod replicas;
mod restart;
mod sale;
mod settings_recovery;
mod tokens;
mod traces;
mod verify;
mod visitors;
