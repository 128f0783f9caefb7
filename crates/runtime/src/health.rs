//! What a process says about itself: `/livez`, `/readyz`, `/metrics`.
//!
//! A process is made of parts (the api, the scheduler, the store connection …), each with its own
//! opinion; it is ready when every part is and it is not draining. Liveness asks for nothing, so
//! that a store outage does not restart pods that would come back to the same outage.

mod ask;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use tokio_util::sync::CancellationToken;

use crate::http::trouble::Expected;
use crate::problem::Problem;
use crate::shutdown::Shutdown;
use crate::telemetry;

pub(crate) use ask::ask;

/// The version of the text format that Prometheus asks for.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Why each part is not ready; `None` where it is.
type Parts = BTreeMap<&'static str, Option<String>>;

/// The readiness of a process. Clones share the same parts.
#[derive(Debug, Clone)]
pub struct Health {
    parts: Arc<Mutex<Parts>>,
    draining: CancellationToken,
}

/// The hand of one part on the readiness of its process.
#[derive(Debug, Clone)]
pub struct Part {
    name: &'static str,
    health: Health,
}

impl Health {
    /// Not ready, until parts have registered and all of them are. A shutdown that drains turns
    /// it off for good.
    #[must_use]
    pub fn new(shutdown: &Shutdown) -> Self {
        Self { parts: Arc::default(), draining: shutdown.draining().clone() }
    }

    /// Registers a part, which starts as not ready. The same name is the same part.
    #[must_use]
    pub fn part(&self, name: &'static str) -> Part {
        self.parts().entry(name).or_insert_with(|| Some("starting".into()));
        Part { name, health: self.clone() }
    }

    /// Whether people may be sent here.
    ///
    /// # Errors
    /// The reason why not, for the operator who looks at `/readyz`.
    pub fn check(&self) -> Result<(), String> {
        if self.draining.is_cancelled() {
            return Err("shutting down".into());
        }
        let parts = self.parts();
        if parts.is_empty() {
            return Err("starting".into());
        }
        let missing: Vec<_> = parts
            .iter()
            .filter_map(|(name, reason)| Some(format!("{name}: {}", reason.as_ref()?)))
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(missing.join(", ")) }
    }

    /// `GET /livez`, `GET /readyz` and `GET /metrics`, for the internal listener.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/livez", get(async || ([(CACHE_CONTROL, "no-store")], "alive\n")))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(self.clone())
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        // The map is whole after every statement, so a panic elsewhere cannot have torn it.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    /// This part can do its work.
    pub fn set_ready(&self) {
        self.set(None);
    }

    /// This part cannot do its work, and why.
    pub fn set_not_ready(&self, reason: impl Into<String>) {
        self.set(Some(reason.into()));
    }

    /// Logs changes only, because parts repeat themselves.
    fn set(&self, reason: Option<String>) {
        let before = self.health.parts().insert(self.name, reason.clone()).flatten();
        match (before, reason) {
            (Some(_), None) => tracing::info!(part = self.name, "ready"),
            (before, Some(reason)) if before.as_ref() != Some(&reason) => {
                tracing::warn!(part = self.name, reason, "not ready");
            }
            _ => {}
        }
    }
}

async fn readyz(State(health): State<Health>) -> Response {
    match health.check() {
        Ok(()) => ([(CACHE_CONTROL, "no-store")], "ready\n").into_response(),
        Err(reason) => (Extension(Expected), Problem::unavailable(reason)).into_response(),
    }
}

async fn metrics() -> impl IntoResponse {
    ([(CONTENT_TYPE, PROMETHEUS_TEXT)], telemetry::render())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_parts_is_still_starting() {
        let health = Health::new(&Shutdown::new());
        assert_eq!(health.check(), Err("starting".into()));
    }

    #[test]
    fn a_process_is_ready_when_all_its_parts_are() {
        let health = Health::new(&Shutdown::new());
        let (api, scheduler) = (health.part("api"), health.part("scheduler"));
        api.set_ready();
        assert_eq!(health.check(), Err("scheduler: starting".into()));
        scheduler.set_ready();
        assert_eq!(health.check(), Ok(()));
        api.set_not_ready("the store is away");
        assert_eq!(health.check(), Err("api: the store is away".into()));
    }

    #[test]
    fn registering_a_part_again_does_not_forget_what_it_said() {
        let health = Health::new(&Shutdown::new());
        health.part("api").set_ready();
        let _again = health.part("api");
        assert_eq!(health.check(), Ok(()));
    }

    #[test]
    fn draining_turns_readiness_off_while_the_parts_still_work() {
        let shutdown = Shutdown::new();
        let health = Health::new(&shutdown);
        health.part("api").set_ready();
        shutdown.draining().cancel();
        assert_eq!(health.check(), Err("shutting down".into()));
        assert!(!shutdown.token().is_cancelled());
    }
}
