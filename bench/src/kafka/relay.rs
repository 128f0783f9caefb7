//! The relay: from the outbox in Redis to the topic, everything confirmed and removed.

use std::time::{Duration, Instant};

use anyhow::bail;
use daegi_domain::{ItemChange, ItemId, ItemName, Millis, TicketKeys, Topic, UserId};
use daegi_kafka::Publisher;
use daegi_runtime::Clock;
use daegi_scheduler::{Outlet, Relay};
use daegi_store::{Epoch, SharedStore, Store};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{bare, message};
use crate::duel::Round;
use crate::stage::{Stage, renamed};

/// How many people join in one call.
const TOGETHER: usize = 500;

/// How often the outbox is asked whether it is empty.
const GLANCE: Duration = Duration::from_millis(5);

/// How many lines are filled at once.
const ABREAST: usize = 4;

/// More than anybody lets in here.
const PLENTY: u32 = 10_000_000;

/// Who was let in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Admissions {
    /// People of several lines, over most partitions.
    ManyLines,
    /// All of one line: one partition of the store and one of the topic carry everything.
    OneLine,
}

impl Admissions {
    fn lines(self) -> usize {
        match self {
            Self::ManyLines => 24,
            Self::OneLine => 1,
        }
    }
}

/// The relay on a full outbox, then a bare producer with the very bytes the relay wrote.
pub(crate) async fn round(
    stage: &Stage,
    admissions: Admissions,
    people: usize,
) -> anyhow::Result<Round> {
    let store = stage.store().await?;
    let people = fill(&store, admissions.lines(), people).await?;
    let (topic, same) = (stage.topic().await?, stage.topic().await?);
    let daegi = relay(&store, stage, &topic).await?;
    let messages = message::read(&stage.brokers(), &topic, people).await?;
    let bare = bare::publish(&stage.brokers(), &same, &messages).await?;
    stage.remove(&[&topic, &same]).await?;
    Ok(Round { load: message::load(&messages), daegi, bare })
}

async fn relay(store: &SharedStore, stage: &Stage, topic: &str) -> anyhow::Result<Duration> {
    let publisher = Publisher::new(&stage.brokers())?;
    let topics = renamed(Topic::TokenActivated, topic)?;
    let relay = Relay::new(store.clone(), Outlet::kafka(publisher, topics, TicketKeys::generate()));
    let started = Instant::now();
    tokio::select! {
        () = relay.run() => bail!("the relay ended by itself"),
        empty = emptied(&**store) => empty?,
    }
    Ok(started.elapsed())
}

/// Ends when nothing is left. Events leave the outbox only after they were confirmed.
async fn emptied(store: &dyn Store) -> anyhow::Result<()> {
    for partition in 0..store.partitions() {
        while store.outbox_len(partition).await? > 0 {
            tokio::time::sleep(GLANCE).await;
        }
    }
    Ok(())
}

/// Lets so many people in, the way the leader does, and says how many it were.
async fn fill(store: &SharedStore, lines: usize, people: usize) -> anyhow::Result<usize> {
    let (epoch, now) = (store.begin_term(0).await?, Clock::system().now_ms());
    let each = people.div_ceil(lines);
    let fills = (0..lines).map(|line| fill_line(&**store, epoch, line, each, now));
    stream::iter(fills).buffer_unordered(ABREAST).try_collect::<()>().await?;
    Ok(each * lines)
}

async fn fill_line(
    store: &dyn Store,
    epoch: Epoch,
    line: usize,
    people: usize,
    now: Millis,
) -> anyhow::Result<()> {
    let id = ItemId::parse(&format!("concert-{line:02}"))?;
    let name = ItemName::parse("A concert")?;
    let change = ItemChange { id, name, stock: PLENTY, enabled: true, version: None, policy: None };
    store.put_item(&change, now).await?;
    let (id, settings) = (&change.id, store.settings().await?);
    let users: Result<Vec<_>, _> =
        (0..people).map(|person| UserId::parse(&format!("person-{person:07}"))).collect();
    for together in users?.chunks(TOGETHER) {
        store.join(id, together, &settings, now).await?;
    }
    let mut admitted = 0;
    while admitted < people {
        match store.admit(epoch, id, PLENTY, 0, u64::from(PLENTY), now).await?.admitted {
            0 => bail!("{admitted} of {people} were let in"),
            more => admitted += more as usize,
        }
    }
    Ok(())
}
