//! The listeners of a process and what they serve.

use std::fmt;
use std::pin::Pin;

use daegi_runtime::http::{BindError, HttpService, Limits, SwappableService, bind, serve};
use daegi_runtime::{Config, Health, Shutdown};
use tokio::net::TcpListener;

/// The bound listeners of a process.
#[derive(Debug)]
pub struct Listeners {
    /// For users; only processes with the api have it.
    pub public: Option<TcpListener>,
    /// For services, operators, health and metrics.
    pub internal: TcpListener,
    /// Whether the internal listener will serve more than health. If not, other paths get 404 and not 503
    /// while the store is opened.
    pub has_other_routes: bool,
}

/// What the listeners serve. The internal one must include the routes of [`Health`].
#[derive(Debug)]
pub struct Services {
    /// For users, if there is a public listener.
    pub public: Option<HttpService>,
    /// For services, operators, health and metrics.
    pub internal: HttpService,
}

/// Serves the listeners. What they serve can be replaced without closing a connection.
pub struct Server {
    public: SwappableService,
    internal: SwappableService,
    serving: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Listeners {
    /// Binds both addresses of the configuration.
    ///
    /// # Errors
    /// If one of them cannot be bound.
    pub async fn bind(config: &Config) -> Result<Self, BindError> {
        let public = bind(config.public_addr, "public-addr").await?;
        Ok(Self { public: Some(public), ..Self::bind_internal(config).await? })
    }

    /// Binds the internal address of the configuration.
    ///
    /// # Errors
    /// If it cannot be bound.
    pub async fn bind_internal(config: &Config) -> Result<Self, BindError> {
        let internal = bind(config.internal_addr, "internal-addr").await?;
        Ok(Self { public: None, internal, has_other_routes: true })
    }

    /// Binds the internal address of a process that serves only health.
    ///
    /// # Errors
    /// If it cannot be bound.
    pub async fn bind_health(config: &Config) -> Result<Self, BindError> {
        Ok(Self { has_other_routes: false, ..Self::bind_internal(config).await? })
    }

    /// Serves health until [`Server::replace`]. Other paths get 503, or 404 on an internal listener
    /// that will serve only health.
    pub(crate) fn serve(self, health: &Health, config: &Config, shutdown: Shutdown) -> Server {
        let (limits, public_limits) = (Limits::from(config), Limits::public(config));
        let public = SwappableService::unavailable();
        let internal = if self.has_other_routes {
            SwappableService::unavailable_except(health.router())
        } else {
            HttpService::new(health.router()).into()
        };
        let (first_public, first_internal) = (public.clone(), internal.clone());
        let serving = async move {
            let internal = serve(self.internal, first_internal, limits, shutdown.clone());
            match self.public {
                Some(listener) => {
                    let public = serve(listener, first_public, public_limits, shutdown);
                    tokio::join!(internal, public);
                }
                None => internal.await,
            }
        };
        Server { public, internal, serving: Box::pin(serving) }
    }
}

impl Server {
    /// Serves `services` from the next request on.
    pub fn replace(&self, services: Services) {
        if let Some(public) = services.public {
            self.public.replace(public);
        }
        self.internal.replace(services.internal);
    }

    /// Serves until the shutdown.
    pub async fn run(&mut self) {
        self.serving.as_mut().await;
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}
