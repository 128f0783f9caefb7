//! The store against real Redis, and against its specification.

mod lease;
mod opening;
mod rules;
mod specification;
mod support;
