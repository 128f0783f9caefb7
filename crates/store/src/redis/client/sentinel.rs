//! The master that sentinels report.

use std::collections::HashMap;
use std::time::Duration;

use ::redis::{ErrorKind, RedisError, cmd};
use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};

use super::call_error::{CallError, ErrorClass, classify, describe};
use super::endpoint::connection;
use super::url::{Credentials, NodeAddr};
use crate::Error;

/// Timeout of `SENTINEL MASTER`: 250 ms, so that an unavailable sentinel does not use up the time of a
/// call.
const TOPOLOGY_TIMEOUT: Duration = Duration::from_millis(250);

/// The sentinels of one service.
#[derive(Debug)]
pub(super) struct Sentinels {
    nodes: Vec<NodeAddr>,
    service: String,
    credentials: Credentials,
}

/// The report of one sentinel: the master, and the epoch of the last fail-over it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MasterReport {
    epoch: u64,
    master: NodeAddr,
}

impl Sentinels {
    pub(super) fn new(nodes: Vec<NodeAddr>, service: String, credentials: Credentials) -> Self {
        Self { nodes, service, credentials }
    }

    pub(super) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Returns the master. Queries all sentinels and takes the report with the latest fail-over, because
    /// a partitioned sentinel still reports the previous master.
    pub(super) async fn master(&self, deadline: Instant) -> Result<NodeAddr, CallError> {
        let deadline = deadline.min(Instant::now() + TOPOLOGY_TIMEOUT);
        let replies = join_all(self.nodes.iter().map(|node| self.query(node, deadline))).await;
        let (reports, errors): (Vec<_>, Vec<_>) = replies.into_iter().partition(Result::is_ok);
        if let Some(report) = reports.into_iter().flatten().max_by_key(|report| report.epoch) {
            return Ok(report.master);
        }
        let errors: Vec<_> = errors.into_iter().filter_map(Result::err).collect();
        if let Some(CallError::Reply(error)) = errors.iter().find(|error| error.is_reply()) {
            let reason = format!("no sentinel knows the service {}: {error}", self.service);
            return Err(CallError::Config(Error::InvalidUrl(reason.into())));
        }
        let first = errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        Err(CallError::unavailable(self, format!("no sentinel replies{first}")))
    }

    /// Returns the report of one sentinel.
    async fn query(&self, node: &NodeAddr, deadline: Instant) -> Result<MasterReport, CallError> {
        let credentials = self.credentials.without_database();
        let mut reply = self.query_as(node, &credentials, deadline).await?;
        // Sentinels have the password of the servers or none: retry without credentials.
        let refused = |error: &RedisError| error.kind() == ErrorKind::AuthenticationFailed;
        if credentials.has_login() && reply.as_ref().is_err_and(refused) {
            let without_login = self.query_as(node, &credentials.without_login(), deadline).await?;
            // A sentinel with passwords refuses both; the first error names the cause.
            reply = if without_login.is_ok() { without_login } else { reply };
        }
        match reply {
            Ok(fields) => {
                master_report(&fields).ok_or_else(|| CallError::unavailable(node, "no address"))
            }
            Err(error) if classify(&error) == ErrorClass::Reply => Err(CallError::Reply(error)),
            Err(error) => Err(CallError::unavailable(node, describe(&error))),
        }
    }

    async fn query_as(
        &self,
        node: &NodeAddr,
        credentials: &Credentials,
        deadline: Instant,
    ) -> Result<Result<HashMap<String, String>, RedisError>, CallError> {
        let client = credentials.client(node).await?;
        let query = async {
            let mut connection = connection(&client, deadline).await?;
            let mut master = cmd("SENTINEL");
            master.arg("MASTER").arg(&self.service).query_async(&mut connection).await
        };
        let reply = timeout_at(deadline, query).await;
        reply.map_err(|_| CallError::unavailable(node, "no reply in time"))
    }
}

fn master_report(fields: &HashMap<String, String>) -> Option<MasterReport> {
    let port = fields.get("port")?.parse().ok()?;
    let epoch = fields.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
    Some(MasterReport { epoch, master: NodeAddr::new(fields.get("ip")?, port) })
}

impl std::fmt::Display for Sentinels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "service {}", self.service)
    }
}
