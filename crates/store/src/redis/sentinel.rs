//! Who the master is, as the sentinels have it.

use std::collections::HashMap;
use std::time::Duration;

use ::redis::{Client, ErrorKind, RedisError, cmd};
use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};

use super::address::{Login, Node};
use super::connect::connection;
use super::failure::{Failure, Verdict, verdict};
use crate::Error;

/// How long a sentinel may take; one that is away must not use up the time of a call.
const ASK_WITHIN: Duration = Duration::from_millis(250);

/// The sentinels of one service.
#[derive(Debug)]
pub(super) struct Sentinels {
    nodes: Vec<Node>,
    service: String,
    login: Login,
}

/// What one sentinel says: the master, and the count of fail-overs it knows of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct View {
    epoch: u64,
    master: Node,
}

impl Sentinels {
    pub(super) fn new(nodes: Vec<Node>, service: String, login: Login) -> Self {
        Self { nodes, service, login }
    }

    pub(super) fn login(&self) -> &Login {
        &self.login
    }

    /// The master. All sentinels are asked, and the one that knows of the latest fail-over is
    /// believed: one that was cut off still tells of the master before.
    pub(super) async fn master(&self, deadline: Instant) -> Result<Node, Failure> {
        let deadline = deadline.min(Instant::now() + ASK_WITHIN);
        let answers = join_all(self.nodes.iter().map(|node| self.ask(node, deadline))).await;
        let (views, refusals): (Vec<_>, Vec<_>) =
            answers.into_iter().flatten().partition(Result::is_ok);
        if let Some(view) = views.into_iter().flatten().max_by_key(|view| view.epoch) {
            return Ok(view.master);
        }
        match refusals.into_iter().find_map(Result::err) {
            Some(error) => {
                let told = format!("no sentinel knows the service {}: {error}", self.service);
                Err(Failure::Wrong(Error::Address(told.into())))
            }
            None => Err(Failure::away(self, "no sentinel answers")),
        }
    }

    /// What one sentinel says, or why it says nothing of the service; none if it does not answer.
    async fn ask(&self, node: &Node, deadline: Instant) -> Option<Result<View, RedisError>> {
        let login = self.login.without_database();
        let mut asked = self.ask_as(node, &login, deadline).await?;
        // Sentinels often have the servers' password, and often none.
        let refused = |error: &RedisError| error.kind() == ErrorKind::AuthenticationFailed;
        if login.has_credentials() && asked.as_ref().is_err_and(refused) {
            asked = self.ask_as(node, &Login::default(), deadline).await?;
        }
        match asked {
            Ok(fields) => view(&fields).map(Ok),
            Err(error) if verdict(&error) == Verdict::Answered => Some(Err(error)),
            Err(_) => None,
        }
    }

    async fn ask_as(
        &self,
        node: &Node,
        login: &Login,
        deadline: Instant,
    ) -> Option<Result<HashMap<String, String>, RedisError>> {
        let asking = async {
            let client = Client::open(login.at(node))?;
            let mut connection = connection(&client, deadline).await?;
            let mut ask = cmd("SENTINEL");
            ask.arg("MASTER").arg(&self.service).query_async(&mut connection).await
        };
        timeout_at(deadline, asking).await.ok()
    }
}

fn view(fields: &HashMap<String, String>) -> Option<View> {
    let port = fields.get("port")?.parse().ok()?;
    let epoch = fields.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
    Some(View { epoch, master: Node::new(fields.get("ip")?, port) })
}

impl std::fmt::Display for Sentinels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "service {}", self.service)
    }
}
