//! Health of a process: `/livez`, `/readyz`, `/metrics`.
//!
//! A process has components (the api, the scheduler, the store connection …). It is ready when all
//! of them are and it is not draining. Liveness depends on nothing, so that a store outage does not
//! restart pods, which would not help.

mod probe;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use tokio_util::sync::CancellationToken;

use crate::http::error_metrics::ExpectedError;
use crate::problem::Problem;
use crate::shutdown::Shutdown;
use crate::telemetry;

pub(crate) use probe::probe;

/// Content type of the Prometheus text format.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Why each component is not ready; `None` if it is.
type Components = BTreeMap<&'static str, Option<String>>;

/// The readiness of a process. Clones share the same components.
#[derive(Debug, Clone)]
pub struct Health {
    components: Arc<Mutex<Components>>,
    draining: CancellationToken,
}

/// Sets the readiness of one component.
#[derive(Debug, Clone)]
pub struct Component {
    name: &'static str,
    health: Health,
}

impl Health {
    /// Creates the readiness of a process without components. The process is not ready until at
    /// least one component is registered and all are ready, and is never ready again once
    /// `shutdown` drains.
    #[must_use]
    pub fn new(shutdown: &Shutdown) -> Self {
        Self { components: Arc::default(), draining: shutdown.draining().clone() }
    }

    /// Registers a component, which starts as not ready. The same name returns the same component.
    #[must_use]
    pub fn component(&self, name: &'static str) -> Component {
        self.components().entry(name).or_insert_with(|| Some("starting".into()));
        Component { name, health: self.clone() }
    }

    /// Returns whether the process is ready for traffic.
    ///
    /// # Errors
    /// The reason why not, as shown by `/readyz`.
    pub fn check(&self) -> Result<(), String> {
        if self.draining.is_cancelled() {
            return Err("shutting down".into());
        }
        let components = self.components();
        if components.is_empty() {
            return Err("starting".into());
        }
        let missing: Vec<_> = components
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

    fn components(&self) -> MutexGuard<'_, Components> {
        // The map is consistent after every statement, so a panic elsewhere leaves it valid.
        self.components.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Component {
    /// Marks this component as ready.
    pub fn set_ready(&self) {
        self.set(None);
    }

    /// Marks this component as not ready, with the reason.
    pub fn set_not_ready(&self, reason: impl Into<String>) {
        self.set(Some(reason.into()));
    }

    /// Logs changes only, because components repeat their state.
    fn set(&self, reason: Option<String>) {
        let before = self.health.components().insert(self.name, reason.clone()).flatten();
        match (before, reason) {
            (Some(_), None) => tracing::info!(component = self.name, "component ready"),
            (before, Some(reason)) if before.as_ref() != Some(&reason) => {
                tracing::warn!(component = self.name, reason, "component not ready");
            }
            _ => {}
        }
    }
}

async fn readyz(State(health): State<Health>) -> Response {
    match health.check() {
        Ok(()) => ([(CACHE_CONTROL, "no-store")], "ready\n").into_response(),
        Err(reason) => (Extension(ExpectedError), Problem::unavailable(reason)).into_response(),
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
        let (api, scheduler) = (health.component("api"), health.component("scheduler"));
        api.set_ready();
        assert_eq!(health.check(), Err("scheduler: starting".into()));
        scheduler.set_ready();
        assert_eq!(health.check(), Ok(()));
        api.set_not_ready("the store is unavailable");
        assert_eq!(health.check(), Err("api: the store is unavailable".into()));
    }

    #[test]
    fn registering_a_part_again_does_not_forget_what_it_said() {
        let health = Health::new(&Shutdown::new());
        health.component("api").set_ready();
        let _again = health.component("api");
        assert_eq!(health.check(), Ok(()));
    }

    #[test]
    fn draining_turns_readiness_off_while_the_parts_still_work() {
        let shutdown = Shutdown::new();
        let health = Health::new(&shutdown);
        health.component("api").set_ready();
        shutdown.draining().cancel();
        assert_eq!(health.check(), Err("shutting down".into()));
        assert!(!shutdown.token().is_cancelled());
    }
}
