//! One process of the fleet.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::Value;

use super::{ADMIN_TOKEN, binary};
use crate::process::signal;
use crate::{Process, eventually, free_port};

/// One process of the fleet; killed with the test. Started again, it has its old addresses.
#[derive(Debug)]
pub struct Member {
    /// Where people ask it, `http://…`.
    pub public: String,
    /// Where operators and services ask it, `http://…`.
    pub internal: String,
    binary: PathBuf,
    settings: Vec<(String, String)>,
    log: Option<PathBuf>,
    child: Option<Process>,
    http: Client,
}

impl Member {
    pub(super) fn start(
        name: &str,
        mut settings: Vec<(String, String)>,
        logs: Option<&Path>,
        http: Client,
    ) -> Self {
        let (public, internal) = (free_port(), free_port());
        for (variable, port) in [("DAEGI_PUBLIC_ADDR", public), ("DAEGI_INTERNAL_ADDR", internal)] {
            settings.push((variable.to_owned(), format!("127.0.0.1:{port}")));
        }
        let url = |port| format!("http://127.0.0.1:{port}");
        let mut member = Self {
            public: url(public),
            internal: url(internal),
            binary: binary(name),
            settings,
            log: logs.map(|dir| dir.join(format!("{name}-{internal}.log"))),
            child: None,
            http,
        };
        member.start_again();
        member
    }

    /// Starts it on its old addresses, if it does not run.
    ///
    /// # Panics
    /// If it cannot be started at all.
    pub fn start_again(&mut self) {
        if self.child.is_some() {
            return;
        }
        let settings = self.settings.iter().map(|(variable, value)| (variable, value));
        let mut command = Command::new(&self.binary);
        command.env_clear().envs(settings).stdout(self.mouth()).stderr(self.mouth());
        let child = command.spawn();
        let child = child.unwrap_or_else(|error| panic!("{}: {error}", self.binary.display()));
        self.child = Some(child.into());
    }

    /// What it says is for its log, if there is one.
    fn mouth(&self) -> Stdio {
        let append = |path| OpenOptions::new().create(true).append(true).open(path);
        let log: Option<File> = self.log.as_ref().and_then(|path| append(path).ok());
        log.map_or_else(Stdio::null, Stdio::from)
    }

    /// Where what it says is kept.
    #[must_use]
    pub fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// Waits until it is ready.
    ///
    /// # Panics
    /// If that takes very long.
    pub async fn ready(&self) {
        eventually(Duration::from_secs(60), "a member of the fleet is ready", || self.is_ready())
            .await;
    }

    /// Whether it says that it is ready.
    pub async fn is_ready(&self) -> bool {
        let answer = self.http.get(format!("{}/readyz", self.internal)).send().await;
        answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
    }

    /// A call of a scheduler's admin API.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn admin(&self, method: Method, path: &str, body: Value) -> Value {
        let answer = self.try_admin(method, path, body).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A call of a scheduler's admin API, which may be away.
    ///
    /// # Errors
    /// If it does not answer, or not in JSON.
    pub async fn try_admin(
        &self,
        method: Method,
        path: &str,
        body: Value,
    ) -> reqwest::Result<Value> {
        let url = format!("{}/internal/admin/v1/{path}", self.internal);
        let request = self.http.request(method, url).bearer_auth(ADMIN_TOKEN);
        let request = if body.is_null() { request } else { request.json(&body) };
        request.send().await?.json().await
    }

    /// Whether it is the scheduler that leads.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn leads(&self) -> bool {
        self.admin(Method::GET, "leader", Value::Null).await["leading"] == true
    }

    /// The sum of a metric over its labels.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn metric(&self, name: &str) -> f64 {
        let answer = self.http.get(format!("{}/metrics", self.internal)).send().await;
        let text = answer.unwrap_or_else(|error| panic!("metrics: {error}")).text().await;
        let text = text.unwrap_or_else(|error| panic!("metrics: {error}"));
        let of_name = |line: &&str| line.split(['{', ' ']).next() == Some(name);
        text.lines()
            .filter(of_name)
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// Makes it neither answer nor end, until [`Member::resume`].
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        if let Some(child) = &self.child {
            signal(child, name);
        }
    }

    /// The id of its process, if it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(|child| child.id())
    }

    /// Whether it was started and not ended.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.child.is_some()
    }

    /// Ends it as a power cut does; it can be started again.
    pub fn cut_power(&mut self) {
        // Dropping it kills it and waits for its end.
        self.child = None;
    }

    /// Ends it as a power cut does.
    pub fn kill(mut self) {
        self.cut_power();
    }

    /// Ends it as an operator does.
    ///
    /// # Panics
    /// If it does not run.
    pub fn terminate(mut self) -> ExitStatus {
        let ended = self.stop();
        ended.unwrap_or_else(|| panic!("it does not run"))
    }

    /// Ends it as an operator does; it can be started again. None if it did not run.
    pub fn stop(&mut self) -> Option<ExitStatus> {
        self.tell_to_stop();
        self.wait()
    }

    /// Tells it to stop, as an operator does, and does not wait for its end.
    pub fn tell_to_stop(&self) {
        self.signal("TERM");
    }

    /// Waits for its end. None if it did not run.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        self.child.take()?.wait().ok()
    }
}
