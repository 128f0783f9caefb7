//! Addresses of a Redis, the three ways people run it.

use ::redis::Client;

use crate::{Error, Result};

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Where lines live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// One server, with an address as the library reads it.
    Standalone(String),
    /// Whichever server the sentinels call the master of a service.
    Sentinel { sentinels: Vec<Node>, service: String, login: Login },
    /// Many masters, each with a part of the keys.
    Cluster { seeds: Vec<Node>, login: Login },
}

/// One process that speaks the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Node {
    host: String,
    port: u16,
}

/// How a server wants to be greeted: user and password as the address wrote them, the database.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Login {
    credentials: Option<String>,
    database: Option<u16>,
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self> {
        match url.split_once("://") {
            Some(("redis", _)) => standalone(url),
            Some(("redis+sentinel", rest)) => sentinel(rest),
            Some(("redis+cluster", rest)) => cluster(rest),
            _ => Err(wrong("it begins with redis://, redis+sentinel:// or redis+cluster://")),
        }
    }
}

fn wrong(what: impl Into<String>) -> Error {
    Error::Address(what.into().into())
}

fn standalone(url: &str) -> Result<Address> {
    Client::open(url).map_err(|error| wrong(error.to_string()))?;
    Ok(Address::Standalone(url.to_owned()))
}

fn sentinel(rest: &str) -> Result<Address> {
    let (credentials, rest) = credentials(rest);
    let needs_service = || {
        wrong("redis+sentinel:// ends with a service name, as in host:26379,host:26379/mymaster")
    };
    let (nodes, path) = rest.split_once('/').ok_or_else(needs_service)?;
    let (service, database) = path.split_once('/').unwrap_or((path, ""));
    if service.is_empty() {
        return Err(needs_service());
    }
    let login = Login { credentials, database: database_number(database)? }.checked()?;
    let sentinels = Node::all(nodes, SENTINEL_PORT)?;
    Ok(Address::Sentinel { sentinels, service: service.to_owned(), login })
}

fn cluster(rest: &str) -> Result<Address> {
    let (credentials, rest) = credentials(rest);
    let (nodes, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !matches!(path, "" | "0") {
        return Err(wrong("a cluster has only database 0"));
    }
    let login = Login { credentials, database: None }.checked()?;
    Ok(Address::Cluster { seeds: Node::all(nodes, REDIS_PORT)?, login })
}

fn credentials(rest: &str) -> (Option<String>, &str) {
    match rest.rsplit_once('@') {
        Some((credentials, rest)) => (Some(credentials.to_owned()), rest),
        None => (None, rest),
    }
}

fn database_number(text: &str) -> Result<Option<u16>> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|_| wrong("behind the service name there may be a database number"))
}

impl Login {
    /// The library takes the address of one server, with everything in it.
    pub(super) fn at(&self, node: &Node) -> String {
        let credentials =
            self.credentials.as_ref().map(|text| format!("{text}@")).unwrap_or_default();
        let database = self.database.map(|number| format!("/{number}")).unwrap_or_default();
        format!("redis://{credentials}{node}{database}")
    }

    pub(super) fn has_credentials(&self) -> bool {
        self.credentials.is_some()
    }

    /// The same for a sentinel, which has no databases.
    pub(super) fn without_database(&self) -> Self {
        Self { credentials: self.credentials.clone(), database: None }
    }

    /// Whether the library can read it is seen at the start, not at the first fail-over.
    fn checked(self) -> Result<Self> {
        let anywhere = Node { host: "localhost".into(), port: 1 };
        Client::open(self.at(&anywhere)).map_err(|error| wrong(error.to_string()))?;
        Ok(self)
    }
}

impl Node {
    pub(super) fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// `host:port`, `host` or `[v6]:port`.
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
            Self::parse(part, default_port).ok_or_else(|| wrong("hosts are host:port,host:port"))
        };
        text.split(',').map(read).collect()
    }
}

impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("database", &self.database).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_ways_are_told_apart() {
        let one = "redis://user:pw@a:1/3";
        assert_eq!(Address::parse(one).unwrap(), Address::Standalone(one.into()));
        let Address::Sentinel { sentinels, service, login } =
            Address::parse("redis+sentinel://:p%40w@a,b:2,[::1]:3/mymaster/4").unwrap()
        else {
            panic!("not a sentinel")
        };
        let nodes = [Node::new("a", 26379), Node::new("b", 2), Node::new("::1", 3)];
        assert_eq!((sentinels.as_slice(), service.as_str()), (nodes.as_slice(), "mymaster"));
        assert_eq!(login.at(&nodes[1]), "redis://:p%40w@b:2/4");
        assert_eq!(login.without_database().at(&nodes[2]), "redis://:p%40w@[::1]:3");
        let Address::Cluster { seeds, login } = Address::parse("redis+cluster://a:1,b/").unwrap()
        else {
            panic!("not a cluster")
        };
        assert_eq!(seeds, [Node::new("a", 1), Node::new("b", 6379)]);
        assert_eq!(login.at(&seeds[0]), "redis://a:1");
    }

    #[test]
    fn what_is_wrong_is_said_and_no_password_is_repeated() {
        let cases = [
            ("redis+sentinel://a:1", "a service name"),
            ("redis+sentinel://a:1/", "a service name"),
            ("redis+sentinel://a:1/m/x", "a database number"),
            ("redis+cluster://a:1/2", "only database 0"),
            ("redis+cluster://", "hosts are host:port"),
            ("redis+cluster://u:secret@a:1,,b", "hosts are host:port"),
            ("redis+cluster://a:0", "hosts are host:port"),
            ("redis://:secret:port:", "not valid"),
            ("rediss://u:secret@a", "it begins with redis://"),
            ("memory", "it begins with redis://"),
        ];
        for (address, told) in cases {
            let error = Address::parse(address).unwrap_err();
            assert!(matches!(error, Error::Address(_)), "{address}: {error}");
            assert!(error.to_string().contains(told), "{address}: {error}");
            assert!(!error.to_string().contains("secret"), "{address}: {error}");
        }
    }
}
