//! Simulated sales: the forecast, and how well estimates of the wait hold.

#![expect(clippy::unwrap_used, reason = "test helpers panic like tests")]

mod estimates;
mod sales;
