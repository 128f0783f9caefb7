//! The store against real Redis, and against its specification.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod lease;
mod news;
mod opening;
mod rules;
mod scripts;
mod specification;
mod support;
