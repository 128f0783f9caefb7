//! How a server is found and greeted.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, RedisError, Value, cmd};
use rslock::LockManager;
use tokio::time::Instant;

use super::address::{Login, Node};
use super::failure::{self, Failure, Verdict, verdict};
use super::sentinel::Sentinels;
use super::server::Contact;
use crate::Error;

/// Where a server is to be found.
#[derive(Debug)]
pub(super) enum Whereabouts {
    /// At an address as the library reads it, and it must be a master.
    At(String),
    /// Wherever the sentinels say.
    Named(Sentinels),
    /// A node of a cluster, which tells by itself what it does not serve.
    Node { node: Node, login: Login },
}

impl Whereabouts {
    /// Connects, and makes sure that somebody answers who may be written to.
    pub(super) async fn connect(&self, deadline: Instant) -> Result<Contact, Failure> {
        match self {
            Self::At(url) => self.greet(url, true, deadline).await,
            Self::Named(sentinels) => {
                let node = sentinels.master(deadline).await?;
                self.greet(&sentinels.login().at(&node), true, deadline).await
            }
            Self::Node { node, login } => self.greet(&login.at(node), false, deadline).await,
        }
    }

    async fn greet(&self, url: &str, master: bool, by: Instant) -> Result<Contact, Failure> {
        let client =
            Client::open(url).map_err(|error| Failure::Wrong(failure::answered(&error)))?;
        let mut connection = connection(&client, by).await.map_err(|error| self.refused(&error))?;
        let greeting: Result<Value, _> = cmd("PING").query_async(&mut connection).await;
        greeting.map_err(|error| self.refused(&error))?;
        if master {
            self.check_role(&mut connection).await?;
        }
        let proven = AtomicBool::new(false);
        Ok(Contact { connection, locks: locks(client), proven })
    }

    /// Whoever is a replica would take reads and refuse writes. A server that will not say what it
    /// is may be a master.
    async fn check_role(&self, connection: &mut MultiplexedConnection) -> Result<(), Failure> {
        let role: Result<Value, RedisError> = cmd("ROLE").query_async(connection).await;
        match role {
            Ok(Value::Array(words))
                if words.first() == Some(&Value::BulkString(b"slave".into())) =>
            {
                Err(Failure::away(self, "it is a replica"))
            }
            Err(error) if verdict(&error) != Verdict::Answered => Err(self.refused(&error)),
            _ => Ok(()),
        }
    }

    /// A wrong password does not become right by waiting; everything else might pass.
    fn refused(&self, error: &RedisError) -> Failure {
        match failure::answered(error) {
            wrong @ Error::Address(_) => Failure::Wrong(wrong),
            _ => Failure::away(self, error),
        }
    }
}

/// A connection whose calls have no limit of their own: every call has a deadline.
pub(super) async fn connection(
    client: &Client,
    deadline: Instant,
) -> Result<MultiplexedConnection, RedisError> {
    let left = deadline.saturating_duration_since(Instant::now());
    let config =
        AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(Some(left));
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// One lock manager per connection, so that the lock is always asked where the lines are.
pub(super) fn locks(client: Client) -> LockManager {
    let mut manager = LockManager::from_clients(vec![client]);
    // One attempt: whether to try again is the scheduler's decision.
    manager.set_retry(1, Duration::from_millis(1));
    manager
}

/// The part of an address that may be shown.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    rest.split(['/', '?']).next().unwrap_or_default()
}

impl std::fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::At(url) => f.write_str(host(url)),
            Self::Named(sentinels) => sentinels.fmt(f),
            Self::Node { node, .. } => node.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_is_shown() {
        for url in ["redis://u:secret@a:1/2?protocol=resp3", "redis://:secret@a:1", "redis://a:1/0"]
        {
            assert_eq!(Whereabouts::At(url.into()).to_string(), "a:1", "{url}");
        }
    }
}
