//! The admin API, as operators and the console use it. Every replica serves it, leader or not:
//! all it changes lives in the store.
//!
//! The token is asked for before anything else, so that without it every path under
//! `/internal/admin`, existing or not, looks the same.

mod audit;
mod auth;
mod body;
mod counts;
mod error;
mod items;
mod leader;
mod lines;
mod overview;
mod picture;
mod policy;
mod processes;
mod query;
mod recovery;
mod settings;
mod sign_in;
mod view;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::{get, patch, post};
use daegi_runtime::{AdminToken, Clock, Code, Problem};
use daegi_store::SharedStore;
use tokio_util::task::TaskTracker;

use crate::{Leadership, Lookout, console};
use error::AdminError;

/// How long an operator waits for the store before being told that it is away.
const PATIENCE: Duration = Duration::from_millis(900);

/// What the admin API works with.
#[derive(Debug)]
pub struct Admin {
    store: SharedStore,
    token: AdminToken,
    clock: Clock,
    leadership: Arc<Leadership>,
    lookout: Arc<Lookout>,
    pictures: picture::Pictures,
    sign_ins: sign_in::SignIns,
    tasks: TaskTracker,
}

type Answer<T> = Result<T, AdminError>;

impl Admin {
    /// An API over this store, which the token opens. It tells what `leadership` knows about who
    /// leads and what `lookout` has seen of the lines. What it begins for later is on `tasks`.
    #[must_use]
    pub fn new(
        store: SharedStore,
        token: AdminToken,
        clock: Clock,
        leadership: Arc<Leadership>,
        lookout: Arc<Lookout>,
        tasks: TaskTracker,
    ) -> Self {
        let pictures = picture::Pictures::default();
        let sign_ins = sign_in::SignIns::new();
        Self { store, token, clock, leadership, lookout, pictures, sign_ins, tasks }
    }

    /// The console, and all calls under `/internal/admin`.
    ///
    /// The calls are a service behind the door, not routes beside it: axum adds `Allow` to a 405
    /// outside of a route's layers, and the fallbacks of whatever router this is merged into
    /// would answer for paths in here. Either would tell a stranger which calls there are.
    pub fn router(self) -> Router {
        let admin = Arc::new(self);
        let calls = Router::new()
            .nest("/v1/waiting-queue", queue_calls())
            .nest("/v1/waiting-item", item_calls())
            .route("/v1/recovery/declare-loss", post(recovery::declare_loss))
            .route("/v1/leader", get(leader::show))
            .route("/v1/overview", get(overview::show))
            .route("/v1/audit", get(audit::show))
            .route("/v1/openapi.json", get(describe))
            .fallback(unknown_route)
            .method_not_allowed_fallback(wrong_method)
            .with_state(admin.clone());
        let door = from_fn_with_state(admin, auth::require_token);
        let behind_door = Router::new().fallback_service(calls).layer(door);
        console::router().nest_service("/internal/admin", behind_door)
    }
}

fn queue_calls() -> Router<Arc<Admin>> {
    let quota = get(settings::quota).put(settings::set_quota);
    let tick = get(settings::tick).put(settings::set_tick);
    Router::new()
        .route("/token-count-to-move", quota)
        .route("/tick-ms", tick)
        .route("/token-count", get(counts::show))
}

fn item_calls() -> Router<Arc<Admin>> {
    let one = get(items::one).put(items::replace).delete(items::remove);
    Router::new()
        .route("/", get(items::list).post(items::create))
        .route("/{itemId}", one)
        .route("/{itemId}/line", get(lines::now))
        .route("/{itemId}/history", get(lines::history))
        .route("/{itemId}/manually", post(items::manually))
        .route("/{itemId}/policy", patch(policy::patch))
        .route("/{itemId}/pause", post(items::pause))
        .route("/{itemId}/resume", post(items::resume))
        .route("/{itemId}/reset", post(items::reset))
}

/// Asks the store, but not for longer than an operator waits.
async fn ask<T>(call: impl Future<Output = daegi_store::Result<T>>) -> Answer<T> {
    within(PATIENCE, call).await
}

async fn within<T>(
    patience: Duration,
    call: impl Future<Output = daegi_store::Result<T>>,
) -> Answer<T> {
    match tokio::time::timeout(patience, call).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(AdminError::Slow),
    }
}

/// What there is, for programs. A test calls everything in it and compares the answers' fields.
async fn describe() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], include_str!("admin/openapi.json"))
}

async fn unknown_route() -> Problem {
    Problem::new(Code::NotFound, "there is no such admin call")
}

async fn wrong_method(method: Method) -> Problem {
    let detail = format!("this admin call does not answer {method}");
    Problem::new(Code::MethodNotAllowed, detail)
}
