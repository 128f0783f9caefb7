//! Stub of the endpoints that a guard calls: public keys, online checks, completions.

use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// What the stub returns, and the calls it received.
#[derive(Debug, Default)]
pub(crate) struct StubState {
    /// `None`: responds with 503.
    pub(crate) keys: Option<Value>,
    pub(crate) verdict: Option<Value>,
    pub(crate) key_fetches: u64,
    pub(crate) online_checks: u64,
    pub(crate) completed: Vec<String>,
}

pub(crate) struct StubDaegi {
    pub(crate) url: String,
    state: Arc<Mutex<StubState>>,
    _serving: JoinSet<()>,
}

type StubReply = Result<Json<Value>, StatusCode>;

impl StubDaegi {
    pub(crate) async fn start() -> Self {
        let state = Arc::new(Mutex::new(StubState::default()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/.well-known/jwks.json", get(jwks))
            .route("/internal/v1/item/{item}/entry/{what}", post(entry))
            .with_state(Arc::clone(&state));
        let mut serving = JoinSet::new();
        serving.spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { url, state, _serving: serving }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, StubState> {
        self.state.lock().unwrap()
    }
}

async fn jwks(State(state): State<Arc<Mutex<StubState>>>) -> StubReply {
    let mut state = state.lock().unwrap();
    state.key_fetches += 1;
    state.keys.clone().map(Json).ok_or(StatusCode::SERVICE_UNAVAILABLE)
}

async fn entry(
    State(state): State<Arc<Mutex<StubState>>>,
    Path((_, operation)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> StubReply {
    let mut state = state.lock().unwrap();
    if operation == "complete" {
        state.completed.push(body["token"].as_str().unwrap().to_owned());
        return Ok(Json(json!({ "released": true })));
    }
    state.online_checks += 1;
    assert!(body["pass"].is_string(), "{body}");
    state.verdict.clone().map(Json).ok_or(StatusCode::SERVICE_UNAVAILABLE)
}
