//! The first requests, before people come.
//!
//! The first join of a process opens connections, loads scripts and faults in code; people should
//! not wait for that. So the pod stands in a line of its own, through the same code as people do,
//! and only then says that it is ready. The line is reserved: nobody can see, join or name it,
//! its item is paused so that nobody in it is let in, and afterwards no trace of it is left.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemChange, ItemId, ItemName, NameError, UserId};
use daegi_runtime::health::Part;
use futures_util::future::try_join_all;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};
use crate::patience::in_time;
use crate::room::{Presented, Room};
use crate::wire::Ticket;

/// How many people stand in the line; enough for batches to form.
const PEOPLE: usize = 256;
/// How often they ask.
const POLLS: usize = 1000;
/// How many passes are signed and checked.
const PASSES: usize = 50;
/// The rest after an attempt that failed, doubled up to the longest one.
const REST: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Warms up, however often it takes, then turns the part ready.
pub(crate) async fn until_warm(room: Arc<Room>, health: Part, stop: CancellationToken) {
    let id = ItemId::reserved(&format!("warm-up-{:016x}", fastrand::u64(..)));
    let warm = async {
        let mut rest = REST.0;
        while let Err(error) = warm_up(&room, &id).await {
            health.set_not_ready(format!("warming up: {error}"));
            tokio::time::sleep(rest).await;
            rest = (rest * 2).min(REST.1);
        }
        health.set_ready();
    };
    if stop.run_until_cancelled(warm).await.is_none() {
        // Stopped in the middle. If the store does not answer, there is nothing more to do.
        let _ = clean_up(&room, &id).await;
    }
}

async fn warm_up(room: &Room, id: &ItemId) -> Result<()> {
    let rehearsed = rehearse(room, id).await;
    rehearsed.and(clean_up(room, id).await)
}

async fn clean_up(room: &Room, id: &ItemId) -> Result<()> {
    if let Some(line) = room.lines.known(id) {
        room.lines.forget(&line);
        // What is flushed now cannot arrive after the purge and leave a trace.
        let _ = line.flush().await;
    }
    in_time("purge", room.store.purge(id)).await
}

async fn rehearse(room: &Room, id: &ItemId) -> Result<()> {
    open_line(room, id).await?;
    let people = (0..PEOPLE).map(|n| UserId::parse(&format!("warm-up-{n}")));
    let people: Vec<UserId> = people.collect::<std::result::Result<_, _>>()?;
    let joined =
        try_join_all(people.into_iter().map(|user| room.join(id, user, None, None))).await?;
    let tickets: Vec<Ticket> = joined.into_iter().map(|(_, ticket)| ticket).collect();
    for ticket in tickets.iter().cycle().take(POLLS) {
        rehearse_poll(room, id, &ticket.token).await?;
    }
    room.rehearse_passes(id, PASSES);
    if let Some(line) = room.lines.known(id) {
        line.flush().await?;
    }
    Ok(())
}

/// Paused before anybody joins: the leader lets nobody in, and no event is ever written.
async fn open_line(room: &Room, id: &ItemId) -> Result<()> {
    let change = ItemChange {
        id: id.clone(),
        name: ItemName::parse("warm-up")
            .map_err(|error: NameError| Error::invalid(error.to_string()))?,
        stock: 1,
        enabled: true,
        version: None,
        policy: None,
    };
    let now = room.clock.now_ms();
    in_time("put_item", room.store.put_item(&change, now)).await?;
    in_time("set_paused", room.store.set_paused(id, true, now)).await?;
    Ok(())
}

async fn rehearse_poll(room: &Room, id: &ItemId, token: &str) -> Result<()> {
    let presented = Presented { item: id.clone(), token: token.to_owned(), user: None };
    let ticket = match room.poll_at_once(presented.clone()) {
        Some(ticket) => ticket,
        None => room.poll(presented, Duration::ZERO).await?,
    };
    std::hint::black_box(ticket.to_json().is_ok());
    Ok(())
}
