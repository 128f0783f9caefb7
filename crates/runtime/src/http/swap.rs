//! A service that is replaced while it is served.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use axum::Router;
use axum::routing::any;

use super::service::HttpService;
use crate::Problem;

/// The service of a listener. It can be replaced without closing connections, so that a process
/// answers health checks while it still waits for its store.
#[derive(Debug, Clone)]
pub struct SwappableService(Arc<ArcSwap<HttpService>>);

impl SwappableService {
    /// Creates a service that returns 503 for every request until it is replaced.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::unavailable_except(Router::new())
    }

    /// Creates a service that returns 503 for every request except those to routes of `router`,
    /// such as health. Unknown routes return 503 and not 404, because they may exist after the
    /// replacement.
    #[must_use]
    pub fn unavailable_except(router: Router) -> Self {
        let starting = async || Problem::unavailable("the waiting room is starting, try again");
        HttpService::new(router.route("/", any(starting)).route("/{*any}", any(starting))).into()
    }

    /// Serves `service` from the next request on.
    pub fn replace(&self, service: HttpService) {
        self.0.store(Arc::new(service));
    }

    pub(super) fn current(&self) -> Guard<Arc<HttpService>> {
        self.0.load()
    }
}

impl From<HttpService> for SwappableService {
    fn from(first: HttpService) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(first)))
    }
}
