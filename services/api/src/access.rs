//! The block and allow list as this pod enforces it.
//!
//! The pod reads the revision of the list once per second, and the list if the revision differs, so that a change is in
//! force on all pods within 2 s. Requests are compared with the list in memory. While the store is unavailable,
//! the last list stays in force.
//!
//! | file | contents |
//! |---|---|
//! | `access/client.rs` | who sends a request: address and user agent |
//! | `access/endings.rs` | ends the tickets of blocked users |
//! | `access/events.rs` | what happened to whom, for the answer to a complaint; written to the store in batches |

mod client;
mod endings;
mod events;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use daegi_domain::{
    AccessEventKind, AccessList, AccessRule, Decision, ItemId, Requester, Ticket, UserId, rfc3339,
};
use daegi_runtime::outage::OutageLog;
use daegi_runtime::problem::BlockedNotice;
use daegi_runtime::{Clock, Shutdown};
use daegi_store::SharedStore;
use metrics::{counter, gauge};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

pub(crate) use self::client::Client;
use self::endings::Endings;
use self::events::EventLog;
use crate::error::{Error, Result};
use crate::metrics::{ACCESS_RULES, BLOCKED};
use crate::timeouts::with_store_timeout;

/// How often the revision is read and events are written.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of reading the whole list, in many calls.
const LOAD_TIMEOUT: Duration = Duration::from_secs(5);
/// The name of this work in logs.
const COMPONENT: &str = "access list";

/// The list of this pod.
pub(crate) struct AccessControl {
    store: SharedStore,
    clock: Clock,
    loaded: ArcSwap<LoadedList>,
    /// Signals another list.
    changes: watch::Sender<()>,
    endings: Endings,
    events: EventLog,
}

/// The list as it was read.
#[derive(Default)]
struct LoadedList {
    /// `None` until the list was read.
    revision: Option<u64>,
    rules: AccessList,
    contact_url: Option<String>,
}

/// Requests that are refused with `BLOCKED`, for the label `call`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BlockedCall {
    Join,
    Ticket,
    Page,
    Verify,
}

impl BlockedCall {
    /// Values of the label, in the order of the variants.
    pub(crate) const LABELS: [&'static str; 4] = ["join", "ticket", "page", "verify"];
}

impl AccessControl {
    /// Creates an empty list and starts the tasks that read it and end tickets.
    pub(crate) fn start(store: SharedStore, clock: Clock, shutdown: &Shutdown) -> Arc<Self> {
        let (endings, queue) = endings::channel();
        let access = Arc::new(Self {
            store,
            clock,
            loaded: ArcSwap::default(),
            changes: watch::Sender::new(()),
            endings,
            events: EventLog::new(),
        });
        let (refreshing, stop) = (Arc::clone(&access), shutdown.token().clone());
        shutdown.spawn("access list", async move { refreshing.refresh_until(stop).await });
        shutdown.spawn_until_stopped("blocked tickets", Arc::clone(&access).end_tickets(queue));
        access
    }

    async fn refresh_until(&self, stop: CancellationToken) {
        let (mut ticks, mut outage) = (interval(REFRESH_INTERVAL), OutageLog::new(COMPONENT));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            match self.refresh().await.and(self.write_events().await) {
                Ok(()) => outage.recovered(),
                Err(error) => {
                    outage.failed(&error);
                }
            }
        }
        // `with_store_timeout` counts a failure.
        let _ = self.write_events().await;
    }

    /// Reads the list if it changed.
    pub(crate) async fn refresh(&self) -> Result<()> {
        let revision = with_store_timeout("access_revision", self.store.access_revision()).await?;
        if self.loaded.load().revision == Some(revision) {
            return Ok(());
        }
        let read = timeout(LOAD_TIMEOUT, self.store.access_rules());
        let read = read.await.map_err(|_| Error::StoreTimeout)?.map_err(Error::Store)?;
        if read.unreadable > 0 {
            let (component, rules) = (COMPONENT, read.unreadable);
            tracing::warn!(component, rules, "rules of a newer version ignored, upgrade this pod");
        }
        gauge!(ACCESS_RULES).set(read.rules.len() as f64);
        let rules = AccessList::new(read.rules)
            .map_err(|error| Error::AccessList(error.to_string().into()))?;
        let (revision, contact_url) = (Some(read.revision), read.contact_url);
        self.loaded.store(Arc::new(LoadedList { revision, rules, contact_url }));
        self.changes.send_replace(());
        Ok(())
    }

    async fn write_events(&self) -> Result<()> {
        self.events.write(&*self.store).await
    }

    /// Returns whether there are no rules, so that a request needs no decision.
    pub(crate) fn is_empty(&self) -> bool {
        self.loaded.load().rules.is_empty()
    }

    /// Subscribes to changes of the list.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Decides about a request for an item. Reserved items have no rules.
    pub(crate) fn decision(
        &self,
        item: &ItemId,
        user: Option<&UserId>,
        client: &Client,
    ) -> Decision {
        let loaded = self.loaded.load();
        if loaded.rules.is_empty() || item.is_reserved() {
            return Decision::Neutral;
        }
        let (address, user_agent) = (client.address, client.user_agent.as_deref());
        let requester = Requester { user, address, user_agent };
        loaded.rules.decision(item, requester, self.clock.now_ms())
    }

    /// Returns whether an allow rule exempts a request from challenges and limits.
    pub(crate) fn exempts(&self, item: &ItemId, user: Option<&UserId>, client: &Client) -> bool {
        matches!(self.decision(item, user, client), Decision::Allowed(_))
    }

    /// Returns whether a rule blocks the user or the client of a ticket.
    pub(crate) fn blocks(&self, ticket: &Ticket, client: &Client) -> bool {
        let decision = self.decision(&ticket.item, Some(&ticket.user), client);
        matches!(decision, Decision::Blocked(_))
    }

    /// Refuses a request for a ticket if a rule blocks it, and ends the ticket in the background.
    ///
    /// # Errors
    /// [`Error::Blocked`].
    pub(crate) fn require_ticket(
        &self,
        ticket: &Ticket,
        client: &Client,
        call: BlockedCall,
    ) -> Result<()> {
        match self.decision(&ticket.item, Some(&ticket.user), client) {
            Decision::Blocked(rule) => {
                self.endings.push(ticket, &rule);
                Err(self.refusal(&rule, call))
            }
            Decision::Neutral | Decision::Allowed(_) => Ok(()),
        }
    }

    /// Refuses the waiting page of a user without a ticket, whose address or user agent is blocked.
    ///
    /// # Errors
    /// [`Error::Blocked`].
    pub(crate) fn require_page(&self, item: &ItemId, client: &Client) -> Result<()> {
        match self.decision(item, None, client) {
            Decision::Blocked(rule) => Err(self.refusal(&rule, BlockedCall::Page)),
            Decision::Neutral | Decision::Allowed(_) => Ok(()),
        }
    }

    /// Decides about a join. Ends the ticket that the user presents if a rule blocks the join. Returns whether an
    /// allow rule exempts it from challenges and limits.
    ///
    /// # Errors
    /// [`Error::Blocked`].
    pub(crate) fn require_join(
        &self,
        item: &ItemId,
        user: &UserId,
        presented: Option<&Ticket>,
        client: &Client,
    ) -> Result<bool> {
        match self.decision(item, Some(user), client) {
            Decision::Blocked(rule) => {
                match presented {
                    Some(ticket) => self.endings.push(ticket, &rule),
                    None => {
                        let now = self.clock.now_ms();
                        self.events.push(AccessEventKind::JoinRefused, &rule, user, item, now);
                    }
                }
                Err(self.refusal(&rule, BlockedCall::Join))
            }
            Decision::Allowed(_) => Ok(true),
            Decision::Neutral => Ok(false),
        }
    }

    /// Returns the refusal of a request that a rule blocks, and counts it.
    pub(crate) fn refusal(&self, rule: &AccessRule, call: BlockedCall) -> Error {
        counter!(BLOCKED, "call" => BlockedCall::LABELS[call as usize]).increment(1);
        Error::Blocked(Box::new(self.notice(rule)))
    }

    /// Returns what the user reads about a rule.
    pub(crate) fn notice(&self, rule: &AccessRule) -> BlockedNotice {
        BlockedNotice {
            reason: rule.shown_reason().to_owned(),
            rule: rule.id().to_string(),
            until: rule.expires_at.map(rfc3339),
            contact_url: self.loaded.load().contact_url.clone(),
        }
    }
}
