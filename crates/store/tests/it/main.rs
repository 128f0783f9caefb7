//! The store against real Redis, and against its specification.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod board;
mod expiry;
mod fail_over;
mod full;
mod gates;
mod generations;
mod lease;
mod limits;
mod news;
mod opening;
mod outage;
mod recovery;
mod rules;
mod scripts;
mod setups;
mod specification;
mod support;
