//! Processes of the fleet, started as they are deployed and ended in every way they can be.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use daegi_domain::{Topic, Topics};
use daegi_testkit::{Process, Redis, eventually, free_port};
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;

use crate::process::signal;
use crate::room::ADMIN_TOKEN;

pub(crate) const TICKET_SECRETS: &str = "1:000102030405060708090a0b0c0d0e0f";
const PASS_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
    -----END PRIVATE KEY-----\n";

/// What all members have in common.
pub(crate) struct Fleet {
    pub(crate) http: Client,
    settings: Vec<(String, String)>,
}

/// One process of the fleet; killed with the test.
pub(crate) struct Member {
    pub(crate) public: String,
    pub(crate) internal: String,
    child: Process,
    http: Client,
}

impl Fleet {
    /// Lines in this Redis, ticks of 50 ms, and no Kafka unless told.
    pub(crate) fn new(redis: &Redis) -> Self {
        let fleet = Self { http: Client::new(), settings: Vec::new() };
        fleet
            .with("DAEGI_STORE", &redis.url())
            .with("DAEGI_ADMIN_TOKEN", ADMIN_TOKEN)
            .with("DAEGI_TICKET_SECRETS", TICKET_SECRETS)
            .with("DAEGI_PASS_KEY", PASS_KEY)
            .with("DAEGI_TICK_MS", "50")
            .with("DAEGI_LEASE_MS", "1000")
    }

    /// The same with another setting.
    pub(crate) fn with(mut self, variable: &str, value: &str) -> Self {
        self.settings.push((variable.to_owned(), value.to_owned()));
        self
    }

    /// The same with Kafka, its topics under these names. The group is theirs, too: others who read
    /// other topics under the same name would take part in each other's rebalancing.
    pub(crate) fn with_kafka(mut self, brokers: &str, topics: &Topics) -> Self {
        for topic in Topic::ALL {
            let event_type = topic.event_type().replace('.', "_").to_uppercase();
            self = self.with(&format!("DAEGI_TOPIC_{event_type}"), topics.name(topic));
        }
        let group = format!("readers of {}", topics.name(Topic::ItemChanged));
        self.with("DAEGI_KAFKA", brokers).with("DAEGI_CONSUMER_GROUP", &group)
    }

    pub(crate) fn start(&self, name: &str) -> Member {
        self.start_with(name, &[])
    }

    pub(crate) fn start_with(&self, name: &str, settings: &[(&str, &str)]) -> Member {
        let address = || format!("127.0.0.1:{}", free_port());
        let (public, internal) = (address(), address());
        let child = Command::new(binary(name))
            .env_clear()
            .envs(self.settings.iter().map(|(variable, value)| (variable, value)))
            .envs(settings.iter().copied())
            .env("DAEGI_PUBLIC_ADDR", &public)
            .env("DAEGI_INTERNAL_ADDR", &internal)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let url = |address| format!("http://{address}");
        let (public, internal) = (url(public), url(internal));
        Member { public, internal, child: child.into(), http: self.http.clone() }
    }

    /// A member that is ready.
    pub(crate) async fn ready(&self, name: &str) -> Member {
        let member = self.start(name);
        member.ready().await;
        member
    }
}

impl Member {
    pub(crate) async fn ready(&self) {
        eventually(Duration::from_secs(60), "a member of the fleet is ready", || async {
            let answer = self.http.get(format!("{}/readyz", self.internal)).send().await;
            answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
        })
        .await;
    }

    /// A call of a scheduler's admin API.
    pub(crate) async fn admin(&self, method: Method, path: &str, body: Value) -> Value {
        let url = format!("{}/internal/admin/v1/{path}", self.internal);
        let request = self.http.request(method, url).bearer_auth(ADMIN_TOKEN);
        let request = if body.is_null() { request } else { request.json(&body) };
        request.send().await.unwrap().json().await.unwrap()
    }

    pub(crate) async fn leads(&self) -> bool {
        self.admin(Method::GET, "leader", Value::Null).await["leading"] == true
    }

    /// Ends it as a power cut does.
    pub(crate) fn kill(mut self) {
        signal(&self.child, "KILL");
        self.child.wait().unwrap();
    }

    /// Ends it as an operator does.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        signal(&self.child, "TERM");
        self.child.wait().unwrap()
    }
}

pub(crate) fn binary(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_daegi")).with_file_name(name);
    assert!(path.exists(), "{name} is not built: run the tests of the whole workspace");
    path
}
