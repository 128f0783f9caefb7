//! One process of the fleet.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::Value;

use super::{ADMIN_TOKEN, binary};
use crate::child::signal;
use crate::{ChildProcess, eventually, free_port};

/// One process of the fleet. Killed with the test; restarted, it keeps its addresses.
#[derive(Debug)]
pub struct FleetProcess {
    /// The public address, `http://…`.
    pub public: String,
    /// The internal address, `http://…`.
    pub internal: String,
    binary: PathBuf,
    settings: Vec<(String, String)>,
    log: Option<PathBuf>,
    child: Option<ChildProcess>,
    http: Client,
}

impl FleetProcess {
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
        let mut process = Self {
            public: url(public),
            internal: url(internal),
            binary: binary(name),
            settings,
            log: logs.map(|dir| dir.join(format!("{name}-{internal}.log"))),
            child: None,
            http,
        };
        process.start_again();
        process
    }

    /// Starts it on the same addresses, if it does not run.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_again(&mut self) {
        if self.child.is_some() {
            return;
        }
        let settings = self.settings.iter().map(|(variable, value)| (variable, value));
        let mut command = Command::new(&self.binary);
        command.env_clear().envs(settings).stdout(self.stdio()).stderr(self.stdio());
        let child = command.spawn();
        let child = child.unwrap_or_else(|error| panic!("{}: {error}", self.binary.display()));
        self.child = Some(child.into());
    }

    /// Returns the log file for stdout and stderr, or null.
    fn stdio(&self) -> Stdio {
        let append = |path| OpenOptions::new().create(true).append(true).open(path);
        let log: Option<File> = self.log.as_ref().and_then(|path| append(path).ok());
        log.map_or_else(Stdio::null, Stdio::from)
    }

    /// Returns the path of the log.
    #[must_use]
    pub fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// Waits until it is ready.
    ///
    /// # Panics
    /// If that takes longer than 60 s.
    pub async fn wait_ready(&self) {
        eventually(Duration::from_secs(60), "the process is ready", || self.is_ready()).await;
    }

    /// Returns whether `/readyz` succeeds.
    pub async fn is_ready(&self) -> bool {
        let answer = self.http.get(format!("{}/readyz", self.internal)).send().await;
        answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
    }

    /// Calls a scheduler's admin API.
    ///
    /// # Panics
    /// If it does not respond.
    pub async fn admin(&self, method: Method, path: &str, body: Value) -> Value {
        let answer = self.try_admin(method, path, body).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Calls a scheduler's admin API, which may be unavailable.
    ///
    /// # Errors
    /// If it does not respond with JSON.
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

    /// Returns whether it is the leader.
    ///
    /// # Panics
    /// If it does not respond.
    pub async fn is_leader(&self) -> bool {
        self.admin(Method::GET, "leader", Value::Null).await["leading"] == true
    }

    /// Returns the sum of a metric over its labels.
    ///
    /// # Panics
    /// If it does not respond.
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

    /// Stops it with SIGSTOP until [`FleetProcess::resume`].
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Continues it with SIGCONT.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        if let Some(child) = &self.child {
            signal(child, name);
        }
    }

    /// Returns the process id, if it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(|child| child.id())
    }

    /// Returns whether it was started and not ended.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// Kills it with SIGKILL, as a power cut does; it can be restarted.
    pub fn sigkill(&mut self) {
        // Dropping the child kills it and waits for its end.
        self.child = None;
    }

    /// Kills it with SIGKILL and drops it.
    pub fn kill(mut self) {
        self.sigkill();
    }

    /// Ends it with SIGTERM and waits for its end.
    ///
    /// # Panics
    /// If it does not run.
    pub fn terminate(mut self) -> ExitStatus {
        let ended = self.stop();
        ended.unwrap_or_else(|| panic!("it does not run"))
    }

    /// Ends it with SIGTERM and waits; it can be restarted. Returns `None` if it did not run.
    pub fn stop(&mut self) -> Option<ExitStatus> {
        self.sigterm();
        self.wait()
    }

    /// Sends SIGTERM and does not wait for its end.
    pub fn sigterm(&self) {
        self.signal("TERM");
    }

    /// Waits for its end. Returns `None` if it did not run.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        self.child.take()?.wait().ok()
    }
}
