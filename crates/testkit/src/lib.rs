//! What tests run against: real Redis and Kafka servers, proxies that inject faults, the daegi fleet,
//! free ports and seeded randomness. Every server and process ends with its value.
//!
//! | module | what lives there |
//! |---|---|
//! | [`certificates`] | [`CertificateAuthority`], which issues certificates for TLS |
//! | [`child`] | [`ChildProcess`], a process that does not outlive its test |
//! | [`mod@eventually`] | [`eventually()`], which polls a condition, so that no test sleeps |
//! | [`fake_redis`] | a server that answers like a Redis of some version |
//! | [`fault_proxy`] | a TCP proxy that delays, resets or holds back bytes |
//! | [`fleet`] | the processes of daegi, started as they are deployed, and every way to end them |
//! | [`intercepted_store`] | a memory store that reports every call and can fail it |
//! | [`kafka_broker`] | a real Kafka broker that can be stopped, killed and restarted |
//! | [`port`] | [`free_port`] |
//! | [`redis_proxy`] | a proxy in front of Redis that can stay silent or reply with errors |
//! | [`redis_server`] | a real `redis-server` that can be stopped and restarted: alone, with sentinels, as a cluster |
//! | [`mod@seeded_rng`] | random numbers that a printed seed reproduces |
//! | [`skip`] | what happens if a program is not installed |
//! | [`topic_reader`] | reads a topic from its start, independently of daegi |
//! | [`topic_writer`] | a producer with larger limits than daegi's, as another team may run it |

pub mod certificates;
pub mod child;
pub mod eventually;
pub mod fake_redis;
pub mod fault_proxy;
pub mod fleet;
pub mod intercepted_store;
pub mod kafka_broker;
pub mod port;
pub mod redis_proxy;
pub mod redis_server;
pub mod seeded_rng;
pub mod skip;
pub mod topic_reader;
pub mod topic_writer;

pub use certificates::{Certificate, CertificateAuthority};
pub use child::ChildProcess;
pub use eventually::eventually;
pub use fake_redis::FakeRedis;
pub use fault_proxy::{FaultProxy, LinkFault};
pub use fleet::{Fleet, FleetProcess};
pub use intercepted_store::{InterceptedStore, StoreInterceptor};
pub use kafka_broker::{Kafka, KafkaLogin, kafka_or_skip, shared_kafka_or_skip};
pub use port::free_port;
pub use redis_proxy::{ProxyMode, RedisProxy};
pub use redis_server::{
    REDIS_PASSWORD, Redis, RedisAccess, RedisCluster, RedisSentinel, durable_redis_or_skip,
    plain_redis_or_skip, redis_cluster_or_skip, redis_or_skip, redis_sentinel_or_skip,
    secured_redis_or_skip,
};
pub use seeded_rng::{seeded_rng, test_seed};
pub use skip::tool_or_skip;
pub use topic_reader::TopicReader;
pub use topic_writer::TopicWriter;
