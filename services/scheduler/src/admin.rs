//! The admin API, used by operators and the console. Every replica serves it, leader or not,
//! because all it changes is in the store.
//!
//! The token is checked before the router, so that without it every path under `/internal/admin`
//! gets the same response, whether it exists or not.

mod access;
mod audit;
mod auth;
mod beacon;
mod counts;
mod error;
mod forecast;
mod invitations;
mod items;
mod leader;
mod lines;
mod minutes;
mod operators;
mod overview;
mod overview_cache;
mod pace;
mod period;
mod policy;
mod processes;
mod recovery;
mod requests;
mod routes;
mod settings;
mod sign_in;
mod simulate;
mod view;
mod visitors;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use daegi_domain::TicketKeys;
use daegi_runtime::{AdminToken, Clock, Code, Problem, openapi};
use daegi_store::SharedStore;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::{Leadership, LineMonitor, console};
use error::AdminError;

pub(crate) use audit::audit_text;

/// The name of the admin API in logs.
const COMPONENT: &str = "admin";

/// Timeout of the store calls of one admin call.
const STORE_TIMEOUT: Duration = Duration::from_millis(900);

/// The state of the admin API.
#[derive(Debug)]
pub struct AdminState {
    store: SharedStore,
    token: AdminToken,
    ticket_keys: TicketKeys,
    clock: Clock,
    leadership: Arc<Leadership>,
    monitor: Arc<LineMonitor>,
    overview_cache: overview_cache::OverviewCache,
    sign_ins: sign_in::SignIns,
    /// Held while a simulation runs.
    simulations: Arc<tokio::sync::Mutex<()>>,
    operator_cache: auth::OperatorCache,
    tasks: TaskTracker,
}

type AdminResult<T> = Result<T, AdminError>;

impl AdminState {
    /// The admin API of this store. It reads the leader from `leadership` and samples from
    /// `monitor`; background loads run on `tasks`. `ticket_keys` sign invitation codes.
    #[must_use]
    pub fn new(
        store: SharedStore,
        token: AdminToken,
        ticket_keys: TicketKeys,
        clock: Clock,
        leadership: Arc<Leadership>,
        monitor: Arc<LineMonitor>,
        tasks: TaskTracker,
    ) -> Self {
        let overview_cache = overview_cache::OverviewCache::default();
        let sign_ins = sign_in::SignIns::new();
        Self {
            store,
            token,
            ticket_keys,
            clock,
            leadership,
            monitor,
            overview_cache,
            sign_ins,
            simulations: Arc::default(),
            operator_cache: auth::OperatorCache::default(),
            tasks,
        }
    }

    /// Returns the router of the console, of the docs page and of all calls under `/internal/admin`.
    ///
    /// The calls are a nested service behind the token check, not routes: axum adds `Allow` to a
    /// 405 outside of a route's layers, and the fallbacks of the router that this is merged into
    /// would answer for paths in here. Either would reveal which calls exist.
    pub fn router(self) -> Router {
        let admin = Arc::new(self);
        let calls = openapi::router("/v1", routes::groups())
            .route("/v1/openapi.json", get(describe))
            .fallback(unknown_route)
            .method_not_allowed_fallback(wrong_method)
            .with_state(admin.clone());
        let authenticate = from_fn_with_state(admin, auth::authorize);
        let protected = Router::new().fallback_service(calls).layer(authenticate);
        console::router()
            .route("/admin/docs", get(docs))
            .route("/admin/docs.css", get(openapi::serve_style))
            .nest_service("/internal/admin", protected)
    }
}

/// Calls the store with a timeout of [`STORE_TIMEOUT`].
async fn store_call<T>(call: impl Future<Output = daegi_store::Result<T>>) -> AdminResult<T> {
    with_timeout(STORE_TIMEOUT, call).await
}

async fn with_timeout<T>(
    timeout: Duration,
    call: impl Future<Output = daegi_store::Result<T>>,
) -> AdminResult<T> {
    match tokio::time::timeout(timeout, call).await {
        Ok(reply) => Ok(reply?),
        Err(_) => Err(AdminError::StoreTimeout),
    }
}

/// The OpenAPI document of the admin API.
static DOCUMENT: LazyLock<Value> = LazyLock::new(routes::document);

async fn describe() -> Json<&'static Value> {
    Json(&DOCUMENT)
}

/// `GET /admin/docs`: needs no token, like the console, because the page is the same for every
/// installation and contains none of its data.
async fn docs() -> Response {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        let url = format!("{}/openapi.json", routes::BASE);
        openapi::render_page(&DOCUMENT, &routes::groups(), &url)
    });
    openapi::serve_page(&PAGE)
}

async fn unknown_route() -> Problem {
    Problem::new(Code::NotFound, "there is no such admin call")
}

async fn wrong_method(method: Method) -> Problem {
    let detail = format!("this admin call does not answer {method}");
    Problem::new(Code::MethodNotAllowed, detail)
}
