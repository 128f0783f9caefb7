//! Store URLs: a standalone server, sentinels, or a cluster.

use ::redis::{Client, ConnectionAddr, IntoConnectionInfo};

use super::access::{RedisConfig, RedisFiles};
use super::call_error::CallError;
use crate::{Error, Result};

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// A parsed store URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::redis) enum RedisUrl {
    /// One server, with the URL as the Redis library reads it.
    Standalone { url: String, files: RedisFiles },
    /// The server that the sentinels report as the master of a service.
    Sentinel { sentinels: Vec<NodeAddr>, service: String, credentials: Credentials },
    /// Several masters, each with a part of the keys.
    Cluster { seeds: Vec<NodeAddr>, credentials: Credentials },
}

/// Host and port of one server or sentinel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::redis) struct NodeAddr {
    host: String,
    port: u16,
}

/// How a connection to any server of a topology authenticates and is encrypted.
#[derive(Clone, Default, PartialEq, Eq)]
pub(in crate::redis) struct Credentials {
    is_encrypted: bool,
    /// User and password as written in the URL.
    user_info: Option<String>,
    database: Option<u16>,
    files: RedisFiles,
}

impl RedisUrl {
    pub(in crate::redis) fn parse(config: &RedisConfig) -> Result<Self> {
        let RedisConfig { url, files } = config;
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let credentials = Credentials {
            is_encrypted: scheme.starts_with("rediss"),
            files: files.clone(),
            ..Credentials::default()
        };
        match scheme {
            "redis" | "rediss" => standalone(url, files),
            "redis+sentinel" | "rediss+sentinel" => sentinel(rest, credentials),
            "redis+cluster" | "rediss+cluster" => cluster(rest, credentials),
            _ => Err(invalid(
                "it begins with redis://, redis+sentinel:// or redis+cluster://, or with rediss for TLS",
            )),
        }
    }
}

fn invalid(what: impl Into<String>) -> Error {
    Error::InvalidUrl(what.into().into())
}

fn standalone(url: &str, files: &RedisFiles) -> Result<RedisUrl> {
    check_url(url)?;
    Ok(RedisUrl::Standalone { url: url.to_owned(), files: files.clone() })
}

/// Checks that the Redis library accepts the URL of a server.
fn check_url(url: &str) -> Result<()> {
    let info = url.into_connection_info().map_err(|error| invalid(error.to_string()))?;
    match info.addr() {
        ConnectionAddr::TcpTls { insecure: true, .. } => {
            Err(invalid("certificates are always verified, give the CA instead of #insecure"))
        }
        _ => Ok(()),
    }
}

fn sentinel(rest: &str, credentials: Credentials) -> Result<RedisUrl> {
    let (user_info, rest) = split_user_info(rest);
    let needs_service = || {
        invalid("redis+sentinel:// ends with a service name, as in host:26379,host:26379/mymaster")
    };
    let (nodes, path) = rest.split_once('/').ok_or_else(needs_service)?;
    let (service, database) = path.split_once('/').unwrap_or((path, ""));
    if service.is_empty() {
        return Err(needs_service());
    }
    let database = database_number(database)?;
    let credentials = Credentials { user_info, database, ..credentials }.checked()?;
    let sentinels = NodeAddr::all(nodes, SENTINEL_PORT)?;
    Ok(RedisUrl::Sentinel { sentinels, service: service.to_owned(), credentials })
}

fn cluster(rest: &str, credentials: Credentials) -> Result<RedisUrl> {
    let (user_info, rest) = split_user_info(rest);
    let (nodes, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !matches!(path, "" | "0") {
        return Err(invalid("a cluster has only database 0"));
    }
    let credentials = Credentials { user_info, ..credentials }.checked()?;
    Ok(RedisUrl::Cluster { seeds: NodeAddr::all(nodes, REDIS_PORT)?, credentials })
}

fn split_user_info(rest: &str) -> (Option<String>, &str) {
    match rest.rsplit_once('@') {
        Some((user_info, rest)) => (Some(user_info.to_owned()), rest),
        None => (None, rest),
    }
}

fn database_number(text: &str) -> Result<Option<u16>> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|_| invalid("behind the service name there may be a database number"))
}

impl Credentials {
    /// Returns a client of one server with the current content of the files.
    pub(super) async fn client(&self, node: &NodeAddr) -> std::result::Result<Client, CallError> {
        self.files.client(&self.url_of(node)).await
    }

    /// Returns the URL of one server, as the Redis library reads it.
    fn url_of(&self, node: &NodeAddr) -> String {
        let user_info = self.user_info.as_ref().map(|text| format!("{text}@")).unwrap_or_default();
        let database = self.database.map(|number| format!("/{number}")).unwrap_or_default();
        let scheme = if self.is_encrypted { "rediss" } else { "redis" };
        format!("{scheme}://{user_info}{node}{database}")
    }

    pub(super) fn has_login(&self) -> bool {
        self.user_info.is_some() || self.files.password.is_some()
    }

    /// Returns the same credentials without the database, because a sentinel has no databases.
    pub(super) fn without_database(&self) -> Self {
        Self { database: None, ..self.clone() }
    }

    /// Returns the same credentials without user, password and database.
    pub(super) fn without_login(&self) -> Self {
        let files = self.files.without_password();
        Self { is_encrypted: self.is_encrypted, files, ..Self::default() }
    }

    /// Checks that the Redis library accepts the credentials, so that a mistake fails at the start and not
    /// at the first fail-over.
    fn checked(self) -> Result<Self> {
        let anywhere = NodeAddr { host: "localhost".into(), port: 1 };
        check_url(&self.url_of(&anywhere))?;
        Ok(self)
    }
}

impl NodeAddr {
    pub(super) fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Parses `host:port`, `host` or `[v6]:port`. Returns `None` if the text is none of these.
    pub(super) fn parse(text: &str, default_port: u16) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && !port.ends_with(']') => {
                (host, port.parse().ok().filter(|port| *port > 0)?)
            }
            Some(("", _)) => return None,
            _ => (text, default_port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let fits = !host.is_empty() && !host.contains([' ', '/', '@', '?', '#']);
        fits.then(|| Self::new(host, port))
    }

    fn all(text: &str, default_port: u16) -> Result<Vec<Self>> {
        let read = |part: &str| {
            Self::parse(part, default_port).ok_or_else(|| invalid("hosts are host:port,host:port"))
        };
        text.split(',').map(read).collect()
    }
}

impl std::fmt::Display for NodeAddr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("database", &self.database).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<RedisUrl> {
        RedisUrl::parse(&url.into())
    }

    #[test]
    fn the_three_topologies_are_distinguished() {
        let one = "redis://user:pw@a:1/3";
        let files = RedisFiles::default();
        assert_eq!(parse(one).unwrap(), RedisUrl::Standalone { url: one.into(), files });
        let RedisUrl::Sentinel { sentinels, service, credentials } =
            parse("redis+sentinel://:p%40w@a,b:2,[::1]:3/mymaster/4").unwrap()
        else {
            panic!("not a sentinel")
        };
        let nodes = [NodeAddr::new("a", 26379), NodeAddr::new("b", 2), NodeAddr::new("::1", 3)];
        assert_eq!((sentinels.as_slice(), service.as_str()), (nodes.as_slice(), "mymaster"));
        assert_eq!(credentials.url_of(&nodes[1]), "redis://:p%40w@b:2/4");
        assert_eq!(credentials.without_database().url_of(&nodes[2]), "redis://:p%40w@[::1]:3");
        let RedisUrl::Cluster { seeds, credentials } = parse("redis+cluster://a:1,b/").unwrap()
        else {
            panic!("not a cluster")
        };
        assert_eq!(seeds, [NodeAddr::new("a", 1), NodeAddr::new("b", 6379)]);
        assert_eq!(credentials.url_of(&seeds[0]), "redis://a:1");
    }

    #[test]
    fn encrypted_topologies_lead_to_encrypted_servers() {
        let node = NodeAddr::new("a", 1);
        assert!(matches!(parse("rediss://a").unwrap(), RedisUrl::Standalone { .. }));
        let RedisUrl::Sentinel { credentials, .. } = parse("rediss+sentinel://u:p@a/m/2").unwrap()
        else {
            panic!("not a sentinel")
        };
        assert_eq!(credentials.url_of(&node), "rediss://u:p@a:1/2");
        assert_eq!(credentials.without_login().url_of(&node), "rediss://a:1");
        let RedisUrl::Cluster { credentials, .. } = parse("rediss+cluster://a").unwrap() else {
            panic!("not a cluster")
        };
        assert_eq!(credentials.url_of(&node), "rediss://a:1");
    }

    #[test]
    fn errors_say_what_is_wrong_without_the_password() {
        let cases = [
            ("redis+sentinel://a:1", "a service name"),
            ("redis+sentinel://a:1/", "a service name"),
            ("redis+sentinel://a:1/m/x", "a database number"),
            ("redis+cluster://a:1/2", "only database 0"),
            ("redis+cluster://", "hosts are host:port"),
            ("redis+cluster://u:secret@a:1,,b", "hosts are host:port"),
            ("redis+cluster://a:0", "hosts are host:port"),
            ("redis://:secret:port:", "not valid"),
            ("rediss://u:secret@a#insecure", "certificates are always verified"),
            ("valkeys://u:secret@a", "it begins with redis://"),
            ("memory", "it begins with redis://"),
        ];
        for (url, expected) in cases {
            let error = parse(url).unwrap_err();
            assert!(matches!(error, Error::InvalidUrl(_)), "{url}: {error}");
            assert!(error.to_string().contains(expected), "{url}: {error}");
            assert!(!error.to_string().contains("secret"), "{url}: {error}");
        }
    }
}
