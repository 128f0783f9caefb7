//! The api through its routers, on a memory store whose clock and health are in the test's hand.

#![expect(clippy::unwrap_used, reason = "a harness that cannot be built is a failed test")]

mod bad_input;
mod crowd;
mod entry;
mod harness;
mod held;
mod item_life;
mod join;
mod live;
mod long_poll;
mod outage;
mod poll;
mod probe;
mod process;
mod reading;
mod recovery;
mod redis;
mod socket;
mod strangers;
mod stream;
mod tokens;
mod wait_page;
mod warmup;
