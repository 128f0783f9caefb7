use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::Request;
use daegi_runtime::http::{Limits, guarded, serve};
use daegi_runtime::{Config, Health, Problem, Shutdown};
use tokio::net::TcpListener;
use tower::ServiceExt;

use super::{Api, StartError};

/// The two doors of the process, bound before anything else so that a taken port is told first.
#[derive(Debug)]
pub struct Listeners {
    /// For people.
    pub public: TcpListener,
    /// For services, health and metrics.
    pub internal: TcpListener,
}

/// What is behind the doors. Before the store is there that is health, and "come back" for
/// everybody else; then the api, without a connection being cut in between.
pub(super) struct Behind {
    public: Replaceable,
    internal: Replaceable,
}

/// A router that can be replaced while it is served.
#[derive(Clone)]
struct Replaceable(Arc<ArcSwap<Router>>);

impl Listeners {
    /// Binds both addresses of the configuration.
    ///
    /// # Errors
    /// If one of them cannot be listened on.
    pub async fn bind(config: &Config) -> Result<Self, StartError> {
        Ok(Self {
            public: bind(config.public_addr).await?,
            internal: bind(config.internal_addr).await?,
        })
    }

    /// Serves what is behind the doors, until the shutdown.
    pub(super) async fn serve(self, behind: &Behind, limits: Limits, shutdown: Shutdown) {
        let (public, internal) = (behind.public.router(), behind.internal.router());
        tokio::join!(
            serve(self.public, public, limits.clone(), shutdown.clone()),
            serve(self.internal, internal, limits, shutdown),
        );
    }
}

impl Behind {
    pub(super) fn waiting(health: &Health) -> Self {
        let away = async || Problem::unavailable("the waiting room is starting, try again");
        Self {
            public: Replaceable::new(Router::new().fallback(away)),
            internal: Replaceable::new(guarded(health.router())),
        }
    }

    pub(super) fn open(&self, api: Api, health: &Health) {
        self.public.replace(guarded(api.public));
        self.internal.replace(guarded(api.internal.merge(health.router())));
    }
}

impl Replaceable {
    fn new(first: Router) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(first)))
    }

    fn replace(&self, router: Router) {
        self.0.store(Arc::new(router));
    }

    fn router(&self) -> Router {
        let current = self.clone();
        Router::new().fallback(move |request: Request| {
            let router = Router::clone(&current.0.load());
            router.oneshot(request)
        })
    }
}

async fn bind(addr: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(addr).await.map_err(|error| StartError::Bind(addr, error))
}
