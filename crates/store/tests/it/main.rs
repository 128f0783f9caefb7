//! Tests of both stores: rule by rule, and the Redis store against the memory store as its specification.

#![expect(clippy::unwrap_used, reason = "test helpers panic like tests")]

mod access;
mod admin;
mod expiry;
mod fail_over;
mod full;
mod gates;
mod generations;
mod history;
mod item_updates;
mod lanes;
mod lease;
mod limits;
mod line_rules;
mod model;
mod opening;
mod outage;
mod recovery;
mod rules;
mod scripts;
mod secured;
mod signals;
mod support;
mod topologies;
