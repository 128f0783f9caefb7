//! From a topic to the store, through the embedded broker; and the process itself.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod ends;
mod items;
mod orders;
mod pod;
mod poison;
mod process;
