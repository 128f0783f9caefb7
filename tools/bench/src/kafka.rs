//! The rate of the relay with a real Redis and a real broker: from the outbox to the topic, until all events are confirmed and
//! acknowledged.
//!
//! The rate is an order of magnitude: broker, Redis and relay share the cores of one machine, and the rate of a broker alone
//! varies by a factor of six within a day.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use daegi_domain::{
    ItemChange, ItemId, ItemName, Millis, Settings, TicketKeys, Topic, TopicName, Topics, UserId,
};
use daegi_kafka::Publisher;
use daegi_runtime::Clock;
use daegi_scheduler::{KafkaSink, Relay};
use daegi_store::{Epoch, RedisStore, SharedStore, Store};
use daegi_testkit::{Kafka, Redis};
use futures_util::{StreamExt, TryStreamExt, stream};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;

use crate::measurement::{Measurement, Target, median};
use crate::report::{self, progress};

/// The default of a fleet.
const STORE_PARTITIONS: u16 = 16;
const TOPIC_PARTITIONS: i32 = 4;
/// Unused: no scheduler ticks.
const SETTINGS: Settings = Settings { token_count_to_move: 10, tick_ms: 1_000 };
const JOIN_BATCH_SIZE: usize = 500;
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Lines filled at the same time.
const MAX_CONCURRENT: usize = 4;
/// A stock, quota and outbox limit that is never reached.
const UNLIMITED: u32 = 10_000_000;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Events per round.
    #[arg(long, default_value_t = 200_000)]
    events: usize,
    /// Rounds that count. One more before them warms up.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

pub(crate) async fn run(options: Options) -> anyhow::Result<()> {
    progress("starting Redis and Kafka");
    let (redis, kafka) = (Redis::start().await?, Kafka::start().await?);
    let mut measurements = Vec::new();
    for lines in [24, 1] {
        let mut rates = Vec::new();
        for round in 0..=options.rounds {
            let topic = create_topic(&kafka, &format!("bench-{lines}-{round}")).await?;
            let store = empty_store(&redis).await?;
            let events = options.events / lines * lines;
            fill_outbox(&store, lines, options.events / lines).await?;
            let rate = events as f64 / publish(&store, &kafka, &topic).await?.as_secs_f64();
            progress(&format!("relay, {lines} lines, round {round}: {rate:.0}/s"));
            if round > 0 {
                rates.push(rate);
            }
        }
        let (name, value) = (format!("relay, {lines} lines"), median(rates.clone()));
        measurements.push(Measurement::new(&name, value, "/s", Target::None).with_rounds(rates));
    }
    report::print(&measurements);
    Ok(())
}

async fn create_topic(kafka: &Kafka, name: &str) -> anyhow::Result<TopicName> {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", kafka.bootstrap()).create()?;
    let topic = NewTopic::new(name, TOPIC_PARTITIONS, TopicReplication::Fixed(1));
    for created in admin.create_topics([&topic], &AdminOptions::new()).await? {
        created.map_err(|(name, code)| anyhow::anyhow!("topic {name}: {code}"))?;
    }
    Ok(TopicName::parse(name)?)
}

async fn empty_store(redis: &Redis) -> anyhow::Result<SharedStore> {
    let mut connection = redis.connection().await?;
    redis::cmd("FLUSHALL").arg("ASYNC").query_async::<()>(&mut connection).await?;
    Ok(Arc::new(RedisStore::open(&redis.url(), STORE_PARTITIONS, SETTINGS).await?))
}

/// Runs the relay until the outbox is empty. Events leave it only after the broker has confirmed them.
async fn publish(
    store: &SharedStore,
    kafka: &Kafka,
    topic: &TopicName,
) -> anyhow::Result<Duration> {
    let topics = Topics::with_names([(Topic::TokenActivated, topic.clone())])?;
    let publisher = Publisher::new(&kafka.bootstrap())?;
    let sink = KafkaSink::shared(publisher, topics, TicketKeys::generate())?;
    let relay = Relay::new(store.clone(), sink);
    let started = Instant::now();
    let emptied = async {
        for partition in 0..store.partitions() {
            while store.outbox_len(partition).await? > 0 {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        anyhow::Ok(started.elapsed())
    };
    tokio::select! {
        () = relay.run() => bail!("the relay stopped"),
        took = emptied => took,
    }
}

async fn fill_outbox(
    store: &SharedStore,
    lines: usize,
    users_per_line: usize,
) -> anyhow::Result<()> {
    let (epoch, now) = (store.begin_term(0).await?, Clock::system().now_ms());
    let fills = (0..lines).map(|line| admit_line(&**store, epoch, line, users_per_line, now));
    stream::iter(fills).buffer_unordered(MAX_CONCURRENT).try_collect::<()>().await
}

/// Joins and admits so many users of one line.
async fn admit_line(
    store: &dyn Store,
    epoch: Epoch,
    line: usize,
    users: usize,
    now: Millis,
) -> anyhow::Result<()> {
    let id = ItemId::parse(&format!("concert-{line:02}"))?;
    let name = ItemName::parse("A concert")?;
    let change =
        ItemChange { id, name, stock: UNLIMITED, enabled: true, version: None, policy: None };
    store.put_item(&change, now).await?;
    let (id, settings) = (&change.id, store.settings().await?);
    let ids: Result<Vec<_>, _> =
        (0..users).map(|user| UserId::parse(&format!("user-{user:07}"))).collect();
    for batch in ids?.chunks(JOIN_BATCH_SIZE) {
        store.join(id, batch, &settings, now).await?;
    }
    let mut admitted = 0;
    while admitted < users {
        match store.admit(epoch, id, UNLIMITED, 0, u64::from(UNLIMITED), now).await?.admitted {
            0 => bail!("{admitted} of {users} users admitted"),
            more => admitted += more as usize,
        }
    }
    Ok(())
}
