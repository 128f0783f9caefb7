//! The scheduler on the memory store, with a clock and ticks moved by hand.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod admin;
mod leading;
mod relaying;
mod room;
mod seeds;
mod ticks;
