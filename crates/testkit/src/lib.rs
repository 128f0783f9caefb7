//! What tests need from the world: a real Redis, a wrong one, free ports, and patience.
//!
//! | module | what lives there |
//! |---|---|
//! | [`redis_server`] | a real `redis-server` of a test's own, which can be stopped and started again |
//! | [`fake_redis`] | a server that only claims to be a Redis of some version |
//! | [`patience`] | [`eventually`], so that no test sleeps |
//! | [`port`] | [`free_port`] |

pub mod fake_redis;
pub mod patience;
pub mod port;
pub mod redis_server;

pub use fake_redis::FakeRedis;
pub use patience::eventually;
pub use port::free_port;
pub use redis_server::{Redis, redis_or_loud};
