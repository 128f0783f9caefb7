//! The waiting room as this pod serves it: one verb per thing a person or a service can ask.
//!
//! | file | verbs |
//! |---|---|
//! | `room/join.rs` | join, leave |
//! | `room/poll.rs` | poll, and waiting for news |
//! | `room/follow.rs` | follow: one ticket's news as they come |
//! | `room/entry.rs` | verify and complete, for the order service |
//! | `room/held.rs` | how many connections a ticket and a pod may hold |
//! | `room/answer.rs` | from what is known to the JSON of a ticket or a line |

mod answer;
mod entry;
mod follow;
mod held;
mod join;
mod poll;

use std::sync::Arc;

use axum::body::Bytes;
use daegi_domain::{ItemId, PassKeys, Ticket, TicketKeys, UserId};
use daegi_runtime::{Clock, Shutdown, Traces};
use daegi_store::SharedStore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{Error, Result};
use crate::lines::Lines;
use crate::meters::Meters;
use crate::service::ApiDeps;

use held::Held;

pub(crate) use entry::Proof;
pub(crate) use follow::{Follower, News};
pub(crate) use held::Kind;
pub(crate) use poll::Face;

/// Everything the verbs need.
pub(crate) struct Room {
    pub(crate) lines: Lines,
    pub(crate) store: SharedStore,
    pub(crate) clock: Clock,
    pub(crate) pass_keys: PassKeys,
    /// The JSON of the public keys; every order service asks for it.
    pub(crate) jwks: Bytes,
    ticket_keys: TicketKeys,
    pub(crate) meters: Arc<Meters>,
    pub(crate) traces: Traces,
    held: Held,
    /// Shutdown waits for what holds a token of it.
    tracker: TaskTracker,
    /// Cancelled when listeners close: nobody is kept waiting then.
    stop: CancellationToken,
}

/// A token as it was presented, not yet believed.
#[derive(Debug, Clone)]
pub(crate) struct Presented {
    /// The item it is presented for.
    pub(crate) item: ItemId,
    /// Its text.
    pub(crate) token: String,
    /// Whom the `user-id` header names, if there is one.
    pub(crate) user: Option<String>,
}

impl Room {
    pub(crate) fn new(deps: ApiDeps, shutdown: &Shutdown) -> Self {
        let meters = Arc::new(Meters::new());
        let lines = Lines::new(
            Arc::clone(&deps.store),
            deps.clock.clone(),
            Arc::clone(&meters),
            deps.limits.cached_lines,
            shutdown,
        );
        Self {
            lines,
            store: deps.store,
            clock: deps.clock,
            jwks: serde_json::json!(deps.pass_keys.jwks()).to_string().into(),
            pass_keys: deps.pass_keys,
            ticket_keys: deps.ticket_keys,
            meters,
            traces: deps.traces,
            held: Held::new(&deps.limits),
            tracker: shutdown.tracker().clone(),
            stop: shutdown.token().clone(),
        }
    }

    /// Who holds a token, if it is genuine.
    pub(crate) fn holder(&self, presented: &Presented) -> Option<UserId> {
        self.believe(presented).ok().map(|ticket| ticket.user)
    }

    /// The ticket behind a token. Needs nothing but the keys, so forgeries and tickets that are too old
    /// cost next to nothing.
    fn believe(&self, presented: &Presented) -> Result<Ticket> {
        let now = self.clock.now_ms();
        let ticket = self.ticket_keys.verify_at(&presented.item, &presented.token, now)?;
        let named = presented.user.as_deref();
        if named.is_some_and(|user| user != ticket.user.as_str()) {
            return Err(Error::OtherUser);
        }
        Ok(ticket)
    }
}
