//! The api through its routers, on a memory store whose clock and availability the tests control.

#![expect(clippy::unwrap_used, reason = "a harness that cannot be built is a failed test")]

mod bad_input;
mod batching;
mod block_list;
mod caches;
mod challenge;
mod connections;
mod cors;
mod docs;
mod entry;
mod gate;
mod harness;
mod identity;
mod item_life;
mod join;
mod lanes;
mod long_poll;
mod openings;
mod origin;
mod outage;
mod poll;
mod process;
mod rate_limits;
mod recovery;
mod redis;
mod signals;
mod socket;
mod spy_store;
mod sse_client;
mod streams;
mod tokens;
mod visits;
mod waiting_page;
mod warmup;
mod widget;
