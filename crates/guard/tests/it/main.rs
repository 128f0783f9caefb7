//! The guard from outside: the vectors that all guards share, and routes behind the layer.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod layer;
mod stub_daegi;
mod vectors;
