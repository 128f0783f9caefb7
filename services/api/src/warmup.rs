//! Warm-up: exercises the request path before the pod becomes ready.
//!
//! The first join of a process opens connections, loads scripts and faults in code, for which clients
//! should not wait. Therefore the pod joins and polls a reserved line through the same code as
//! clients do, and becomes ready afterwards. Clients cannot name a reserved item. The item is paused, so
//! that no ticket is admitted, and it is purged at the end.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use daegi_domain::{ItemChange, ItemId, ItemName, NameError, UserId};
use daegi_runtime::health::Component;
use daegi_runtime::outage::{Backoff, OutageLog};
use daegi_store::ItemStore;
use futures_util::future::try_join_all;
use tokio_util::sync::CancellationToken;

use crate::access::Client;
use crate::error::{Error, Result};
use crate::lines::LineKey;
use crate::signals::JoinSignals;
use crate::tickets::JoinRequest;
use crate::tickets::{TicketService, UnverifiedToken};
use crate::timeouts::with_store_timeout;
use crate::wire::Ticket;

/// Users that join; enough for batches to form.
const USERS: usize = 256;
/// Polls of their tickets.
const POLLS: usize = 1000;
/// Passes that are signed and verified.
const PASSES: usize = 50;
/// The first and the longest delay after a failed attempt.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The warm-up of a pod.
pub(crate) struct WarmUp {
    service: Arc<TicketService>,
    items: Arc<dyn ItemStore>,
    /// The reserved item.
    id: ItemId,
}

impl WarmUp {
    pub(crate) fn new(service: Arc<TicketService>, items: Arc<dyn ItemStore>) -> Self {
        let id = ItemId::reserved(&format!("warm-up-{:016x}", fastrand::u64(..)));
        Self { service, items, id }
    }

    /// Warms up, with retries until it succeeds, and then sets the component ready.
    pub(crate) async fn run(self, health: Component, stop: CancellationToken) {
        let warm = async {
            let mut backoff = Backoff::new(RETRY_DELAYS.0, RETRY_DELAYS.1);
            let mut outage = OutageLog::new("warm-up");
            while let Err(error) = self.warm_up().await {
                outage.failed(&error);
                health.set_not_ready(format!("warming up: {error}"));
                tokio::time::sleep(backoff.next_delay()).await;
            }
            outage.recovered();
            health.set_ready();
        };
        if stop.run_until_cancelled(warm).await.is_none() {
            // Interrupted by the shutdown. A failure leaves an item behind that clients cannot name.
            let _ = self.clean_up().await;
        }
    }

    async fn warm_up(&self) -> Result<()> {
        // A pod that has not read the block list would admit blocked users.
        self.service.access.refresh().await?;
        let exercised = self.exercise_line().await;
        exercised.and(self.clean_up().await)
    }

    async fn clean_up(&self) -> Result<()> {
        if let Some(line) = self.service.lines.get(&LineKey::standard(&self.id)) {
            self.service.lines.evict(&line);
            // Flushed now, so that no mark is written after the purge.
            let _ = line.flush().await;
        }
        with_store_timeout("purge", self.items.purge(&self.id)).await
    }

    async fn exercise_line(&self) -> Result<()> {
        self.open_line().await?;
        let users = (0..USERS).map(|n| UserId::parse(&format!("warm-up-{n}")));
        let users: Vec<UserId> = users.collect::<std::result::Result<_, _>>()?;
        let client = &Client::default();
        let signals = JoinSignals::default();
        let visit = self.service.visits.classify(&HeaderMap::new());
        let join = |user| JoinRequest {
            user,
            lane: None,
            token: None,
            code: None,
            solution: None,
            client,
            signals,
            visit,
        };
        let joins = users.into_iter().map(|user| self.service.join(&self.id, join(user), None));
        let tickets: Vec<Ticket> =
            try_join_all(joins).await?.into_iter().map(|(_, ticket)| ticket).collect();
        for ticket in tickets.iter().cycle().take(POLLS) {
            self.exercise_poll(&ticket.token).await?;
        }
        self.service.warm_up_passes(&self.id, PASSES);
        if let Some(line) = self.service.lines.get(&LineKey::standard(&self.id)) {
            line.flush().await?;
        }
        Ok(())
    }

    /// Creates the item and pauses it before the first join, so that no ticket is admitted and no event
    /// is written.
    async fn open_line(&self) -> Result<()> {
        let change = ItemChange {
            id: self.id.clone(),
            name: ItemName::parse("warm-up")
                .map_err(|error: NameError| Error::invalid(error.to_string()))?,
            stock: 1,
            enabled: true,
            version: None,
            policy: None,
        };
        let now = self.service.clock.now_ms();
        with_store_timeout("put_item", self.items.put_item(&change, now)).await?;
        with_store_timeout("set_paused", self.items.set_paused(&self.id, true, now)).await?;
        Ok(())
    }

    async fn exercise_poll(&self, token: &str) -> Result<()> {
        let (item, token) = (self.id.clone(), token.to_owned());
        let presented = UnverifiedToken { item, token, user: None, client: Client::default() };
        let ticket = match self.service.poll_cached(presented.clone()) {
            Some(ticket) => ticket,
            None => self.service.poll(presented, Duration::ZERO).await?,
        };
        std::hint::black_box(ticket.to_json().is_ok());
        Ok(())
    }
}
