//! Warm-up: exercises the request path before the pod becomes ready.
//!
//! The first join of a process opens connections, loads scripts and faults in code, for which clients
//! should not wait. Therefore the pod joins and polls a reserved line through the same code as
//! clients do, and becomes ready afterwards. Clients cannot name a reserved item. The item is paused, so
//! that no ticket is admitted, and it is purged at the end.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemChange, ItemId, ItemName, NameError, UserId};
use daegi_runtime::health::Component;
use futures_util::future::try_join_all;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};
use crate::tickets::{TicketService, UnverifiedToken};
use crate::timeouts::with_store_timeout;
use crate::wire::Ticket;

/// Users that join; enough for batches to form.
const USERS: usize = 256;
/// Polls of their tickets.
const POLLS: usize = 1000;
/// Passes that are signed and verified.
const PASSES: usize = 50;
/// Delay after a failed attempt, doubled up to the maximum.
const RETRY_BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Warms up, with retries until it succeeds, and then sets the component ready.
pub(crate) async fn run(service: Arc<TicketService>, health: Component, stop: CancellationToken) {
    let id = ItemId::reserved(&format!("warm-up-{:016x}", fastrand::u64(..)));
    let warm = async {
        let mut delay = RETRY_BACKOFF.0;
        while let Err(error) = warm_up(&service, &id).await {
            health.set_not_ready(format!("warming up: {error}"));
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(RETRY_BACKOFF.1);
        }
        health.set_ready();
    };
    if stop.run_until_cancelled(warm).await.is_none() {
        // Interrupted by the shutdown. A failure leaves an item behind that clients cannot name.
        let _ = clean_up(&service, &id).await;
    }
}

async fn warm_up(service: &TicketService, id: &ItemId) -> Result<()> {
    let exercised = exercise_line(service, id).await;
    exercised.and(clean_up(service, id).await)
}

async fn clean_up(service: &TicketService, id: &ItemId) -> Result<()> {
    if let Some(line) = service.lines.get(id) {
        service.lines.evict(&line);
        // Flushed now, so that no mark is written after the purge.
        let _ = line.flush().await;
    }
    with_store_timeout("purge", service.store.purge(id)).await
}

async fn exercise_line(service: &TicketService, id: &ItemId) -> Result<()> {
    open_line(service, id).await?;
    let users = (0..USERS).map(|n| UserId::parse(&format!("warm-up-{n}")));
    let users: Vec<UserId> = users.collect::<std::result::Result<_, _>>()?;
    let joined =
        try_join_all(users.into_iter().map(|user| service.join(id, user, None, None))).await?;
    let tickets: Vec<Ticket> = joined.into_iter().map(|(_, ticket)| ticket).collect();
    for ticket in tickets.iter().cycle().take(POLLS) {
        exercise_poll(service, id, &ticket.token).await?;
    }
    service.warm_up_passes(id, PASSES);
    if let Some(line) = service.lines.get(id) {
        line.flush().await?;
    }
    Ok(())
}

/// Creates the item and pauses it before the first join, so that no ticket is admitted and no event is
/// written.
async fn open_line(service: &TicketService, id: &ItemId) -> Result<()> {
    let change = ItemChange {
        id: id.clone(),
        name: ItemName::parse("warm-up")
            .map_err(|error: NameError| Error::invalid(error.to_string()))?,
        stock: 1,
        enabled: true,
        version: None,
        policy: None,
    };
    let now = service.clock.now_ms();
    with_store_timeout("put_item", service.store.put_item(&change, now)).await?;
    with_store_timeout("set_paused", service.store.set_paused(id, true, now)).await?;
    Ok(())
}

async fn exercise_poll(service: &TicketService, id: &ItemId, token: &str) -> Result<()> {
    let presented = UnverifiedToken { item: id.clone(), token: token.to_owned(), user: None };
    let ticket = match service.poll_cached(presented.clone()) {
        Some(ticket) => ticket,
        None => service.poll(presented, Duration::ZERO).await?,
    };
    std::hint::black_box(ticket.to_json().is_ok());
    Ok(())
}
