//! The scheduler on the memory store, with a manual clock and stepped ticks.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod access_keeper;
mod admin;
mod beacon;
mod forecast;
mod harness;
mod leader;
mod openings;
mod pace;
mod relay;
mod seeds;
mod ticks;
