//! What tests need from the world: a real Redis, a wrong one, a real Kafka, free ports, and patience.
//!
//! | module | what lives there |
//! |---|---|
//! | [`cable`] | a cable between two programs, which can be slow, cut, or dead while it looks alive |
//! | [`mod@chance`] | random numbers that can be had again |
//! | [`fleet`] | the processes of daegi, started as they are deployed and ended in every way they can be |
//! | [`gated_store`] | a memory store that sees every call, and can be away |
//! | [`redis_server`] | a real `redis-server` of a test's own, which can be stopped and started again; with sentinels; as a cluster |
//! | [`redis_proxy`] | somebody between a client and a Redis, who can be silent or say no |
//! | [`fake_redis`] | a server that only claims to be a Redis of some version |
//! | [`kafka_broker`] | a real Kafka broker of a test's own, which can be stopped, killed and started again |
//! | [`kafka_reader`] | somebody else who reads a topic |
//! | [`kafka_writer`] | another team's producer, with larger limits than daegi's |
//! | [`patience`] | [`eventually`], so that no test sleeps |
//! | [`port`] | [`free_port`] |
//! | [`process`] | [`Process`], a child that does not outlive its test |
//! | [`tool`] | [`tool_or_loud`], programs of the system |

pub mod cable;
pub mod chance;
mod ci;
pub mod fake_redis;
pub mod fleet;
pub mod gated_store;
pub mod kafka_broker;
pub mod kafka_reader;
pub mod kafka_writer;
pub mod patience;
pub mod port;
pub mod process;
pub mod redis_proxy;
pub mod redis_server;
pub mod tool;

pub use cable::{Cable, Condition};
pub use chance::{chance, seed};
pub use fake_redis::FakeRedis;
pub use fleet::{Fleet, Member};
pub use gated_store::{Gate, Gated};
pub use kafka_broker::{Kafka, kafka_or_loud, shared_kafka_or_loud};
pub use kafka_reader::Reader;
pub use kafka_writer::Writer;
pub use patience::eventually;
pub use port::free_port;
pub use process::Process;
pub use redis_proxy::{Mood, RedisProxy};
pub use redis_server::{
    Redis, RedisCluster, RedisSentinel, durable_redis_or_loud, redis_cluster_or_loud,
    redis_or_loud, redis_sentinel_or_loud,
};
pub use tool::tool_or_loud;
