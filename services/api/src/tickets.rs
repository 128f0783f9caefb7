//! The use cases of a pod: what a client or a service can request for a ticket.
//!
//! | file | contents |
//! |---|---|
//! | `tickets/join.rs` | join, leave, complete |
//! | `tickets/identity.rs` | who joins: as the client says, or as a signed identity proves |
//! | `tickets/challenge.rs` | challenges at the join |
//! | `tickets/challenge/pressure.rs` | how much harder the challenges of a busy source are |
//! | `tickets/challenge/widget.rs` | verification of widgets at their provider |
//! | `tickets/poll.rs` | poll and long poll; the state of a ticket as clients see it |
//! | `tickets/subscription.rs` | streams: the events of one ticket |
//! | `tickets/entry.rs` | verify, for order services |
//! | `tickets/handover.rs` | handing a ticket over to another device |
//! | `tickets/origin.rs` | reports of guards about origins |
//! | `tickets/draw.rs` | the public record of a draw |
//! | `tickets/connections.rs` | how many connections a ticket and a pod may hold |

mod challenge;
mod connections;
mod draw;
mod entry;
mod handover;
mod identity;
mod join;
mod origin;
mod poll;
mod subscription;

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use daegi_domain::{ItemId, PassKeys, TicketKeys};
use daegi_identity::{IdentityVerifier, RefreshTimes};
use daegi_runtime::http::{RequestHead, TrustedProxies};
use daegi_runtime::{Clock, Shutdown, Tracer};
use daegi_store::{OpeningStore, TicketStore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::challenge::{ProofOfWork, Widget};
use self::connections::ConnectionLimiter;
use self::origin::OriginReports;
use crate::access::{AccessControl, Client};
use crate::app::ApiDeps;
use crate::gate::Gate;
use crate::lines::LineRegistry;
use crate::metrics::Metrics;
use crate::rate_limits::RateLimits;
use crate::signals::SignalTracker;
use crate::visits::Visits;

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
    proof_of_work: ProofOfWork,
    pub(crate) widget: Widget,
    pub(crate) keeps_lines: bool,
    /// Verifies signed identities; `None` if clients name their user.
    identity: Option<IdentityVerifier>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) tracer: Tracer,
    pub(crate) rate_limits: RateLimits,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) signals: Arc<SignalTracker>,
    proxies: TrustedProxies,
    pub(crate) visits: Arc<Visits>,
    origin_reports: Arc<OriginReports>,
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
    /// Who sent it.
    pub(crate) client: Client,
}

impl TicketService {
    pub(crate) fn new(deps: ApiDeps, shutdown: &Shutdown) -> Self {
        let metrics = Arc::new(Metrics::new());
        let access = AccessControl::start(deps.store.clone(), deps.clock.clone(), shutdown);
        let signals = SignalTracker::start(deps.store.clone(), deps.clock.clone(), shutdown);
        let origin_reports = Arc::new(OriginReports::new());
        let flushes = Arc::clone(&origin_reports).run(deps.store.clone(), deps.clock.clone());
        shutdown.spawn_until_stopped("origin reports", flushes);
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
            proof_of_work: ProofOfWork::new(&deps.limits),
            widget: Widget::new(deps.widget),
            keeps_lines: deps.keeps_lines,
            identity: deps
                .identity
                .map(|config| IdentityVerifier::start(&config, RefreshTimes::default(), shutdown)),
            metrics,
            tracer: deps.tracer,
            origin_reports,
            access,
            signals,
            rate_limits: RateLimits::new(deps.trusted_proxies.clone(), deps.rates),
            proxies: deps.trusted_proxies,
            visits: Arc::new(Visits::new(deps.visits)),
            connections: ConnectionLimiter::new(&deps.limits),
            tracker: shutdown.tracker().clone(),
            stop: shutdown.token().clone(),
        }
    }

    /// Returns who sends a request: the address of the client, also behind trusted proxies, and its user agent.
    pub(crate) fn client(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Client {
        Client::new(peer.map(|peer| self.proxies.client(peer, headers)), headers)
    }

    /// Refuses a request of the public listener whose source or ticket is over a limit, unless an allow rule for its
    /// address or its user agent exempts it. The user is not known yet.
    pub(crate) fn refuse(&self, head: RequestHead<'_>) -> Option<Response> {
        let refused = self.rate_limits.refuse(head, |item| self.is_challenged(item))?;
        let item = item_in(head.uri.path()).filter(|_| !self.access.is_empty());
        let is_exempt = item.is_some_and(|item| {
            self.access.exempts(&item, None, &self.client(head.peer, head.headers))
        });
        (!is_exempt).then_some(refused)
    }
}

/// Returns the item of a path of the public listener.
fn item_in(path: &str) -> Option<ItemId> {
    let rest = path.strip_prefix("/api/v1/item/").or_else(|| path.strip_prefix("/wait/"))?;
    ItemId::parse(rest.split('/').next()?).ok()
}
