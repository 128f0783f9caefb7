use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use axum::Router;
use axum::routing::any;

use super::guard::{Guarded, guarded};
use crate::Problem;

/// What a listener serves; it can be replaced without a connection being cut. A service answers
/// for its health from the first moment this way, while it still waits for its store.
#[derive(Debug, Clone)]
pub struct Replaceable(Arc<ArcSwap<Guarded>>);

impl Replaceable {
    /// Tells everybody to come back until it is replaced.
    #[must_use]
    pub fn starting() -> Self {
        Self::starting_with(Router::new())
    }

    /// The same, except for what is there already: health, for example. A route that is not there yet
    /// is not one that does not exist.
    #[must_use]
    pub fn starting_with(router: Router) -> Self {
        let starting = async || Problem::unavailable("the waiting room is starting, try again");
        guarded(router.route("/", any(starting)).route("/{*any}", any(starting))).into()
    }

    /// Serves this from the next request on.
    pub fn replace(&self, service: Guarded) {
        self.0.store(Arc::new(service));
    }

    pub(super) fn current(&self) -> Guard<Arc<Guarded>> {
        self.0.load()
    }
}

impl From<Guarded> for Replaceable {
    fn from(first: Guarded) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(first)))
    }
}
