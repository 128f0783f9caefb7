//! What tests need from the world: a real Redis, a wrong one, a real Kafka, free ports, and patience.
//!
//! | module | what lives there |
//! |---|---|
//! | [`redis_server`] | a real `redis-server` of a test's own, which can be stopped and started again |
//! | [`fake_redis`] | a server that only claims to be a Redis of some version |
//! | [`kafka_broker`] | a real Kafka broker of a test's own, which can be stopped, killed and started again |
//! | [`patience`] | [`eventually`], so that no test sleeps |
//! | [`port`] | [`free_port`] |
//! | [`process`] | [`Process`], a child that does not outlive its test |

mod ci;
pub mod fake_redis;
pub mod kafka_broker;
pub mod patience;
pub mod port;
pub mod process;
pub mod redis_server;

pub use fake_redis::FakeRedis;
pub use kafka_broker::{Kafka, kafka_or_loud};
pub use patience::eventually;
pub use port::free_port;
pub use process::Process;
pub use redis_server::{Redis, redis_or_loud};
