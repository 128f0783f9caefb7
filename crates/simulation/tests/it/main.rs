//! Simulated sales: the forecast, and how well estimates of the wait hold.

mod estimates;
mod sales;
