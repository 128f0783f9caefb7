use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::Request;
use tower::ServiceExt;

use crate::Problem;

/// A router that can be replaced while it is served, without a connection being cut. A service
/// answers for its health from the first moment this way, while it still waits for its store.
#[derive(Debug, Clone)]
pub struct Replaceable(Arc<ArcSwap<Router>>);

impl Replaceable {
    /// Serves this until it is replaced.
    #[must_use]
    pub fn new(first: Router) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(first)))
    }

    /// Tells everybody to come back until it is replaced.
    #[must_use]
    pub fn starting() -> Self {
        let starting = async || Problem::unavailable("the waiting room is starting, try again");
        Self::new(Router::new().fallback(starting))
    }

    /// Serves this from the next request on.
    pub fn replace(&self, router: Router) {
        self.0.store(Arc::new(router));
    }

    /// What to hand to [`super::serve`].
    pub fn router(&self) -> Router {
        let current = self.clone();
        Router::new().fallback(move |request: Request| {
            let router = Router::clone(&current.0.load());
            router.oneshot(request)
        })
    }
}
