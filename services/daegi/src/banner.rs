//! The text printed at the start: addresses, and example commands that need only a shell and curl.

use std::fmt;
use std::net::SocketAddr;

use daegi_domain::{ItemId, Topic, Topics};
use daegi_runtime::{Config, StoreConfig};
use tokio::net::TcpListener;

use crate::Listeners;

/// The banner of one process.
#[derive(Debug)]
pub struct Banner {
    store: String,
    public: String,
    internal: String,
    /// The generated admin token, or the name of its variable.
    bearer: String,
    /// `None` if Kafka is off.
    brokers: Option<String>,
    topics: Topics,
    generated: Vec<&'static str>,
    /// Whether lines outlive this process.
    store_is_durable: bool,
    /// The item of the example commands.
    pub item: Option<ItemId>,
    /// The order service of the demo; `None` without `--demo`.
    pub orders_url: Option<String>,
}

impl Banner {
    /// Creates the banner. `item` is set later, when the store is open.
    #[must_use]
    pub fn new(config: &Config, listeners: &Listeners) -> Self {
        let secrets = &config.secrets;
        let bearer = if secrets.generated.contains(&"admin-token") {
            secrets.admin_token.reveal().to_owned()
        } else {
            "$DAEGI_ADMIN_TOKEN".to_owned()
        };
        Self {
            store: config.store.redacted(),
            public: url(listeners.public.as_ref(), config.public_addr),
            internal: url(Some(&listeners.internal), config.internal_addr),
            bearer,
            brokers: config.kafka.brokers().map(ToOwned::to_owned),
            topics: config.topics.clone(),
            generated: secrets.generated.clone(),
            store_is_durable: config.store != StoreConfig::Memory,
            item: None,
            orders_url: None,
        }
    }

    fn events(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(brokers) = &self.brokers else { return Ok(()) };
        let topic = self.topics.name(Topic::TokenActivated);
        writeln!(f, "\n  read the admissions as the order service:\n")?;
        writeln!(f, "kcat -b {brokers} -C -t {topic} -f '%h %s\\n'")
    }

    fn secrets(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.generated.contains(&"admin-token") {
            writeln!(f, "  admin token   {}  (generated for this run)", self.bearer)?;
        }
        if !self.store_is_durable {
            writeln!(
                f,
                "\n  a restart deletes all items, lines, tickets and changes, because the store is the"
            )?;
            writeln!(f, "  memory of this process. Set --store=redis://host:port to keep them.")?;
        }
        if self.store_is_durable && !self.generated.is_empty() {
            let secrets = self.generated.join(", ");
            writeln!(
                f,
                "\n  warning: this run generated {secrets}: the next start rejects its tokens,"
            )?;
            writeln!(
                f,
                "  but the lines in {} remain. Configure the secrets to keep both.",
                self.store
            )?;
        }
        Ok(())
    }

    fn addresses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, public, internal, .. } = self;
        writeln!(f, "\n  daegi: a virtual waiting room, every role in one process\n")?;
        writeln!(f, "  users         {public}  (API: {public}/docs)")?;
        writeln!(f, "  operators     {internal}  (not for the internet)")?;
        if let Some(orders_url) = &self.orders_url {
            writeln!(f, "  orders        {orders_url}/orders  (the order service of the demo)")?;
        }
        writeln!(f, "  store         {store}")?;
        writeln!(f, "  kafka         {}", self.brokers.as_deref().unwrap_or("off"))?;
        self.secrets(f)?;
        self.pages(f)
    }

    /// Pages to open in a browser. A generated admin token is in the fragment of the URL, so that one click signs in.
    fn pages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { public, internal, bearer, .. } = self;
        let is_generated = self.generated.contains(&"admin-token");
        let token = if is_generated { format!("#token={bearer}") } else { String::new() };
        writeln!(f, "\n  open in a browser:\n")?;
        if self.orders_url.is_some() {
            writeln!(f, "  the shop                 {public}/shop")?;
        }
        writeln!(f, "  the waiting page         {public}/wait/{}", self.item())?;
        writeln!(f, "  the operator's console   {internal}/admin/{token}")
    }

    fn join_and_poll_example(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line();
        writeln!(f, "\n  join the line and keep the token:\n")?;
        writeln!(f, "TOKEN=$(curl -s -X POST -H 'user-id: kim' {line} \\")?;
        writeln!(f, r#"  | sed 's/.*"token":"\([^"]*\)".*/\1/'); echo "$TOKEN""#)?;
        writeln!(f, "\n  poll the ticket; the answer has a pass once the status is ENTERABLE:\n")?;
        writeln!(f, "curl -s \"{line}/$TOKEN\"")
    }

    fn verify(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n  verify the entry as the order service:\n")?;
        writeln!(
            f,
            "curl -s -H 'content-type: application/json' -d \"{{\\\"token\\\":\\\"$TOKEN\\\"}}\" \\"
        )?;
        writeln!(f, "  {}/internal/v1/item/{}/entry/verify", self.internal, self.item())
    }

    fn quota_example(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { internal, bearer, .. } = self;
        writeln!(f, "\n  admit three tickets per tick; 0 pauses all lines:\n")?;
        writeln!(f, "curl -s -X PUT -H \"authorization: Bearer {bearer}\" \\")?;
        writeln!(
            f,
            "  '{internal}/internal/admin/v1/waiting-queue/token-count-to-move?tokenCountToMove=3'\n"
        )
    }

    /// How to join the line of the demo, and what the demo shows.
    fn demo(&self, f: &mut fmt::Formatter<'_>, orders_url: &str) -> fmt::Result {
        let item = self.item();
        self.join_and_poll_example(f)?;
        writeln!(f, "\n  order with the pass; a repeated request returns the same order:\n")?;
        writeln!(f, "PASS=$(curl -s \"{}/$TOKEN\" \\", self.line())?;
        writeln!(f, r#"  | sed 's/.*"pass":"\([^"]*\)".*/\1/')"#)?;
        writeln!(f, "curl -s -H \"authorization: Bearer $PASS\" \\")?;
        writeln!(f, "  -H 'content-type: application/json' -d '{{\"itemId\":\"{item}\"}}' \\")?;
        writeln!(f, "  {orders_url}/orders")?;
        writeln!(
            f,
            "\n  the demo: a product service puts \"{item}\" on sale and simulated visitors"
        )?;
        writeln!(
            f,
            "  join. daegi admits twenty at a time, and an order service sells to users with a pass.\n"
        )
    }

    fn line(&self) -> String {
        format!("{}/api/v1/item/{}/waiting-queue", self.public, self.item())
    }

    fn item(&self) -> &str {
        self.item.as_ref().map_or("demo", ItemId::as_str)
    }
}

impl fmt::Display for Banner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.addresses(f)?;
        if let Some(orders_url) = &self.orders_url {
            return self.demo(f, orders_url);
        }
        self.join_and_poll_example(f)?;
        self.verify(f)?;
        self.events(f)?;
        self.quota_example(f)
    }
}

/// The URL of a listener on this machine. An unspecified address becomes `localhost`, and port 0 the bound port.
pub(crate) fn url(listener: Option<&TcpListener>, configured: SocketAddr) -> String {
    let bound = listener.and_then(|listener| listener.local_addr().ok());
    let address = bound.unwrap_or(configured);
    if address.ip().is_unspecified() {
        format!("http://localhost:{}", address.port())
    } else {
        format!("http://{address}")
    }
}
