use daegi_runtime::http::{Limits, ListenError, Replaceable, bind, serve};
use daegi_runtime::{Config, Health, Shutdown};
use tokio::net::TcpListener;

use super::Api;

/// The two doors of the process, bound before anything else so that a taken port is told first.
#[derive(Debug)]
pub struct Listeners {
    /// For people.
    pub public: TcpListener,
    /// For services, health and metrics.
    pub internal: TcpListener,
}

/// What is behind the doors. Before the store is there that is health, and "come back" for
/// everybody else; then the service, without a connection being cut in between.
#[derive(Debug)]
pub struct Behind {
    public: Replaceable,
    internal: Replaceable,
}

impl Listeners {
    /// Binds both addresses of the configuration.
    ///
    /// # Errors
    /// If one of them cannot be listened on.
    pub async fn bind(config: &Config) -> Result<Self, ListenError> {
        Ok(Self {
            public: bind(config.public_addr, "public-addr").await?,
            internal: bind(config.internal_addr, "internal-addr").await?,
        })
    }

    /// Serves what is behind the doors, until the shutdown.
    pub async fn serve(self, behind: &Behind, limits: Limits, shutdown: Shutdown) {
        let (public, internal) = (behind.public.clone(), behind.internal.clone());
        tokio::join!(
            serve(self.public, public, limits.clone(), shutdown.clone()),
            serve(self.internal, internal, limits, shutdown),
        );
    }
}

impl Behind {
    /// Nothing but health yet.
    #[must_use]
    pub fn starting(health: &Health) -> Self {
        let internal = Replaceable::starting_with(health.router());
        Self { public: Replaceable::starting(), internal }
    }

    /// Opens for everybody; health stays.
    pub fn open(&self, mut api: Api, health: &Health) {
        api.internal = api.internal.merge(health.router());
        let (public, internal) = api.guarded();
        self.public.replace(public);
        self.internal.replace(internal);
    }
}
