//! Processes of the fleet, started as they are deployed, and every way to end them.

mod process;

use std::path::{Path, PathBuf};

use daegi_domain::{Topic, Topics};
use daegi_store::RedisConfig;
use reqwest::Client;

pub use self::process::FleetProcess;
use crate::Redis;

/// The admin token of every fleet.
pub const ADMIN_TOKEN: &str = "admin-token-of-the-tests";

/// The ticket secrets of every fleet.
pub const TICKET_SECRETS: &str = "1:000102030405060708090a0b0c0d0e0f";

const PASS_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
    -----END PRIVATE KEY-----\n";

/// The environment that all processes share.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The HTTP client.
    pub http: Client,
    settings: Vec<(String, String)>,
    logs: Option<PathBuf>,
}

impl Fleet {
    /// A fleet on this Redis, with ticks of 50 ms and without Kafka.
    #[must_use]
    pub fn new(redis: &Redis) -> Self {
        Self::with_store(redis.config())
    }

    /// A fleet on any store.
    #[must_use]
    pub fn with_store(store: impl Into<RedisConfig>) -> Self {
        let RedisConfig { url, files } = store.into();
        let path = |path: &Option<PathBuf>| {
            path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
        };
        let fleet = Self { http: Client::new(), settings: Vec::new(), logs: None };
        fleet
            .env("DAEGI_STORE", &url)
            .env("DAEGI_REDIS_CA", &path(&files.ca))
            .env("DAEGI_REDIS_CERT", &path(&files.cert))
            .env("DAEGI_REDIS_KEY", &path(&files.key))
            .env("DAEGI_REDIS_PASSWORD_FILE", &path(&files.password))
            .env("DAEGI_ADMIN_TOKEN", ADMIN_TOKEN)
            .env("DAEGI_TICKET_SECRETS", TICKET_SECRETS)
            .env("DAEGI_PASS_KEY", PASS_KEY)
            .env("DAEGI_TICK_MS", "50")
            .env("DAEGI_LEASE_MS", "1000")
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, variable: &str, value: &str) -> Self {
        self.settings.push((variable.to_owned(), value.to_owned()));
        self
    }

    /// Adds Kafka with these topic names. The consumer group is derived from them, because
    /// consumers of other topics in the same group would take part in its rebalances.
    #[must_use]
    pub fn with_kafka(mut self, brokers: &str, topics: &Topics) -> Self {
        for topic in Topic::ALL {
            let event_type = topic.event_type().replace('.', "_").to_uppercase();
            self = self.env(&format!("DAEGI_TOPIC_{event_type}"), topics.name(topic));
        }
        let group = format!("group of {}", topics.name(Topic::ItemChanged));
        self.env("DAEGI_KAFKA", brokers).env("DAEGI_CONSUMER_GROUP", &group)
    }

    /// Writes the logs of the processes to this directory, one JSON object per line.
    #[must_use]
    pub fn with_logs(mut self, dir: &Path) -> Self {
        self.logs = Some(dir.to_owned());
        self.env("DAEGI_LOG_FORMAT", "json")
    }

    /// Starts a process.
    ///
    /// # Panics
    /// As [`Fleet::start_with`].
    #[must_use]
    pub fn start(&self, binary: &str) -> FleetProcess {
        self.start_with(binary, &[])
    }

    /// Starts a process with additional variables.
    ///
    /// # Panics
    /// If its binary is not built.
    #[must_use]
    pub fn start_with(&self, binary: &str, settings: &[(&str, &str)]) -> FleetProcess {
        let additional =
            settings.iter().map(|(variable, value)| (variable.to_string(), value.to_string()));
        let settings = self.settings.iter().cloned().chain(additional).collect();
        FleetProcess::start(binary, settings, self.logs.as_deref(), self.http.clone())
    }

    /// Starts a process and waits until it is ready.
    ///
    /// # Panics
    /// If its binary is not built, or it does not become ready.
    pub async fn start_ready(&self, binary: &str) -> FleetProcess {
        let process = self.start(binary);
        process.wait_ready().await;
        process
    }
}

/// Returns the path of a binary of the workspace, beside the current one.
///
/// # Panics
/// If it is not built.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    let own =
        std::env::current_exe().unwrap_or_else(|error| panic!("no path of this binary: {error}"));
    let beside = own.ancestors().skip(1).find(|dir| !dir.ends_with("deps"));
    let path = beside.unwrap_or(&own).join(name);
    assert!(path.exists(), "{name} is not built: build the whole workspace");
    path
}
