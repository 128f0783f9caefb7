//! daegi as far as a guard knows it: published keys, verdicts, completions.

use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// What it answers, and what it was asked.
#[derive(Debug, Default)]
pub(crate) struct Word {
    /// None: it is away.
    pub(crate) keys: Option<Value>,
    pub(crate) verdict: Option<Value>,
    pub(crate) keys_asked: u64,
    pub(crate) verdicts_asked: u64,
    pub(crate) completed: Vec<String>,
}

pub(crate) struct Daegi {
    pub(crate) url: String,
    word: Arc<Mutex<Word>>,
    _serving: JoinSet<()>,
}

type Answer = Result<Json<Value>, StatusCode>;

impl Daegi {
    pub(crate) async fn start() -> Self {
        let word = Arc::new(Mutex::new(Word::default()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/.well-known/jwks.json", get(jwks))
            .route("/internal/v1/item/{item}/entry/{what}", post(entry))
            .with_state(Arc::clone(&word));
        let mut serving = JoinSet::new();
        serving.spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { url, word, _serving: serving }
    }

    pub(crate) fn word(&self) -> MutexGuard<'_, Word> {
        self.word.lock().unwrap()
    }
}

async fn jwks(State(word): State<Arc<Mutex<Word>>>) -> Answer {
    let mut word = word.lock().unwrap();
    word.keys_asked += 1;
    word.keys.clone().map(Json).ok_or(StatusCode::SERVICE_UNAVAILABLE)
}

async fn entry(
    State(word): State<Arc<Mutex<Word>>>,
    Path((_, what)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> Answer {
    let mut word = word.lock().unwrap();
    if what == "complete" {
        word.completed.push(body["token"].as_str().unwrap().to_owned());
        return Ok(Json(json!({ "released": true })));
    }
    word.verdicts_asked += 1;
    assert!(body["pass"].is_string(), "{body}");
    word.verdict.clone().map(Json).ok_or(StatusCode::SERVICE_UNAVAILABLE)
}
