//! The use cases of a pod: what a client or a service can request for a ticket.
//!
//! | file | contents |
//! |---|---|
//! | `tickets/join.rs` | join, leave, complete |
//! | `tickets/identity.rs` | who joins: as the client says, or as a signed identity proves |
//! | `tickets/challenge.rs` | challenges at the join |
//! | `tickets/poll.rs` | poll and long poll; the state of a ticket as clients see it |
//! | `tickets/subscription.rs` | streams: the events of one ticket |
//! | `tickets/entry.rs` | verify, for order services |
//! | `tickets/draw.rs` | the public record of a draw |
//! | `tickets/connections.rs` | how many connections a ticket and a pod may hold |

mod challenge;
mod connections;
mod draw;
mod entry;
mod identity;
mod join;
mod poll;
mod subscription;

use std::sync::Arc;

use axum::body::Bytes;
use daegi_domain::{ItemId, PassKeys, TicketKeys};
use daegi_identity::{IdentityVerifier, RefreshTimes};
use daegi_runtime::{Clock, Shutdown, Tracer};
use daegi_store::{OpeningStore, TicketStore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connections::ConnectionLimiter;
use crate::app::ApiDeps;
use crate::gate::Gate;
use crate::lines::LineRegistry;
use crate::metrics::Metrics;
use crate::rate_limits::RateLimits;

pub(crate) use self::connections::Transport;
pub(crate) use self::entry::Credential;
pub(crate) use self::identity::ClaimedUser;
pub(crate) use self::join::JoinRequest;
pub(crate) use self::poll::ItemSummary;
pub(crate) use self::subscription::{StreamEvent, Subscription};

/// The dependencies of all use cases.
pub(crate) struct TicketService {
    pub(crate) lines: LineRegistry,
    pub(crate) store: Arc<dyn TicketStore>,
    openings: Arc<dyn OpeningStore>,
    trees: draw::TreeCache,
    pub(crate) clock: Clock,
    pub(crate) pass_keys: PassKeys,
    /// The JSON of the public keys, which services fetch to verify passes offline.
    pub(crate) jwks: Bytes,
    /// Checks requests for proxies.
    pub(crate) gate: Gate,
    ticket_keys: TicketKeys,
    challenge_bits: u8,
    /// Verifies signed identities; `None` if clients name their user.
    identity: Option<IdentityVerifier>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) tracer: Tracer,
    pub(crate) rate_limits: RateLimits,
    connections: ConnectionLimiter,
    /// Shutdown waits for the holders of its tokens.
    tracker: TaskTracker,
    /// Cancelled when listeners close; long polls and streams end then.
    stop: CancellationToken,
}

/// A token as the client sent it.
#[derive(Debug, Clone)]
pub(crate) struct UnverifiedToken {
    /// The item of the request.
    pub(crate) item: ItemId,
    pub(crate) token: String,
    /// The value of the `user-id` header, if present.
    pub(crate) user: Option<String>,
}

impl TicketService {
    pub(crate) fn new(deps: ApiDeps, shutdown: &Shutdown) -> Self {
        let metrics = Arc::new(Metrics::new());
        let lines = LineRegistry::new(
            deps.store.clone(),
            deps.clock.clone(),
            Arc::clone(&metrics),
            deps.limits.cached_lines,
            shutdown,
        );
        let jwks = serde_json::json!(deps.pass_keys.jwks()).to_string();
        Self {
            lines,
            openings: deps.store.clone(),
            trees: draw::TreeCache::default(),
            store: deps.store,
            gate: Gate::new(&jwks, deps.public_url, deps.clock.clone()),
            clock: deps.clock,
            jwks: jwks.into(),
            pass_keys: deps.pass_keys,
            ticket_keys: deps.ticket_keys,
            challenge_bits: deps.limits.challenge_bits,
            identity: deps
                .identity
                .map(|config| IdentityVerifier::start(&config, RefreshTimes::default(), shutdown)),
            metrics,
            tracer: deps.tracer,
            rate_limits: RateLimits::new(deps.trusted_proxies, deps.rates),
            connections: ConnectionLimiter::new(&deps.limits),
            tracker: shutdown.tracker().clone(),
            stop: shutdown.token().clone(),
        }
    }
}
