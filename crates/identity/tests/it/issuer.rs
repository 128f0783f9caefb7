//! An issuer that publishes the key sets of the vectors, and counts how often they are fetched.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use daegi_runtime::Shutdown;
use daegi_runtime::config::{IdentityConfig, JwksLocation};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::RwLock;

#[derive(Clone)]
pub(crate) struct Issuer {
    published: Arc<RwLock<String>>,
    is_down: Arc<AtomicBool>,
    fetches: Arc<AtomicU32>,
    pub(crate) config: IdentityConfig,
    vectors: Arc<Value>,
}

impl Issuer {
    /// Starts an issuer with this key set.
    pub(crate) async fn start(keys: &str, shutdown: &Shutdown) -> Self {
        let text = include_str!("../../../../sdk/vectors/identity.json");
        let vectors: Value = serde_json::from_str(text).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let field = |name: &str| vectors[name].as_str().unwrap().to_owned();
        let config = IdentityConfig {
            jwks: JwksLocation::Url(format!("http://{address}/jwks").parse().unwrap()),
            issuer: field("issuer"),
            audience: field("audience"),
            claim: "sub".into(),
        };
        let issuer = Self {
            published: Arc::default(),
            is_down: Arc::default(),
            fetches: Arc::default(),
            config,
            vectors: Arc::new(vectors),
        };
        issuer.publish(keys).await;
        let router = Router::new().route("/jwks", get(serve)).with_state(issuer.clone());
        let stop = shutdown.token().clone().cancelled_owned();
        shutdown.spawn("issuer", async move {
            axum::serve(listener, router).with_graceful_shutdown(stop).await.unwrap();
        });
        issuer
    }

    pub(crate) async fn publish(&self, keys: &str) {
        *self.published.write().await = self.vectors["keySets"][keys].to_string();
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    pub(crate) fn fetches(&self) -> u32 {
        self.fetches.load(Ordering::SeqCst)
    }

    /// Returns the assertion and the time of a case of the vectors.
    pub(crate) fn case(&self, name: &str) -> (String, u64) {
        let cases = self.vectors["cases"].as_array().unwrap();
        let case = cases.iter().find(|case| case["name"] == name).unwrap();
        (case["assertion"].as_str().unwrap().to_owned(), case["nowMs"].as_u64().unwrap())
    }
}

async fn serve(State(issuer): State<Issuer>) -> (StatusCode, String) {
    issuer.fetches.fetch_add(1, Ordering::SeqCst);
    if issuer.is_down.load(Ordering::SeqCst) {
        return (StatusCode::BAD_GATEWAY, String::new());
    }
    (StatusCode::OK, issuer.published.read().await.clone())
}
