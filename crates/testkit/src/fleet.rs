//! Processes of the fleet, started as they are deployed and ended in every way they can be.

mod member;

use std::path::{Path, PathBuf};

use daegi_domain::{Topic, Topics};
use reqwest::Client;

pub use self::member::Member;
use crate::Redis;

/// What opens the admin API of every fleet.
pub const ADMIN_TOKEN: &str = "admin-token-of-the-tests";

/// What every fleet signs its tokens with.
pub const TICKET_SECRETS: &str = "1:000102030405060708090a0b0c0d0e0f";

const PASS_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
    -----END PRIVATE KEY-----\n";

/// What all members have in common.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// Asks members.
    pub http: Client,
    settings: Vec<(String, String)>,
    logs: Option<PathBuf>,
}

impl Fleet {
    /// Lines in this Redis, ticks of 50 ms, and no Kafka unless told.
    #[must_use]
    pub fn new(redis: &Redis) -> Self {
        Self::at(&redis.url())
    }

    /// The same for any store, by its address.
    #[must_use]
    pub fn at(store: &str) -> Self {
        let fleet = Self { http: Client::new(), settings: Vec::new(), logs: None };
        fleet
            .with("DAEGI_STORE", store)
            .with("DAEGI_ADMIN_TOKEN", ADMIN_TOKEN)
            .with("DAEGI_TICKET_SECRETS", TICKET_SECRETS)
            .with("DAEGI_PASS_KEY", PASS_KEY)
            .with("DAEGI_TICK_MS", "50")
            .with("DAEGI_LEASE_MS", "1000")
    }

    /// The same with another setting.
    #[must_use]
    pub fn with(mut self, variable: &str, value: &str) -> Self {
        self.settings.push((variable.to_owned(), value.to_owned()));
        self
    }

    /// The same with Kafka, its topics under these names. The group is theirs, too: others who read
    /// other topics under the same name would take part in each other's rebalancing.
    #[must_use]
    pub fn with_kafka(mut self, brokers: &str, topics: &Topics) -> Self {
        for topic in Topic::ALL {
            let event_type = topic.event_type().replace('.', "_").to_uppercase();
            self = self.with(&format!("DAEGI_TOPIC_{event_type}"), topics.name(topic));
        }
        let group = format!("readers of {}", topics.name(Topic::ItemChanged));
        self.with("DAEGI_KAFKA", brokers).with("DAEGI_CONSUMER_GROUP", &group)
    }

    /// The same, and what members say is kept in this directory, one JSON object per line.
    #[must_use]
    pub fn with_logs(mut self, dir: &Path) -> Self {
        self.logs = Some(dir.to_owned());
        self.with("DAEGI_LOG_FORMAT", "json")
    }

    /// Starts a member.
    ///
    /// # Panics
    /// As [`Fleet::start_with`].
    #[must_use]
    pub fn start(&self, binary: &str) -> Member {
        self.start_with(binary, &[])
    }

    /// Starts a member with settings of its own.
    ///
    /// # Panics
    /// If its binary is not built.
    #[must_use]
    pub fn start_with(&self, binary: &str, settings: &[(&str, &str)]) -> Member {
        let own =
            settings.iter().map(|(variable, value)| (variable.to_string(), value.to_string()));
        let settings = self.settings.iter().cloned().chain(own).collect();
        Member::start(binary, settings, self.logs.as_deref(), self.http.clone())
    }

    /// A member that is ready.
    ///
    /// # Panics
    /// If it is not built, or does not become ready.
    pub async fn ready(&self, binary: &str) -> Member {
        let member = self.start(binary);
        member.ready().await;
        member
    }
}

/// A binary of the workspace, beside the one that runs.
///
/// # Panics
/// If it is not built.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_else(|error| panic!("no path of its own: {error}"));
    let beside = own.ancestors().skip(1).find(|dir| !dir.ends_with("deps"));
    let path = beside.unwrap_or(&own).join(name);
    assert!(path.exists(), "{name} is not built: build the whole workspace");
    path
}
