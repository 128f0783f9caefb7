//! Where the brokers are, and how all clients of this process connect to them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use rdkafka::config::ClientConfig;

/// Begins a value that is read from a file, such as `sasl.password=file:/run/secrets/password`.
const FILE: &str = "file:";

/// Addresses of brokers, and an optional file of librdkafka properties.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Brokers {
    addresses: String,
    properties: Option<PathBuf>,
}

/// Why a file of properties cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("--kafka-properties (DAEGI_KAFKA_PROPERTIES), {path}: {reason}", path = .path.display())]
pub struct PropertiesError {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    #[error("line {0} is not name=value")]
    Syntax(usize),
    #[error("line {0} repeats a property")]
    Repeated(usize),
    #[error("{0} cannot be set, because {1}")]
    Fixed(String, &'static str),
    #[error("the file of {0}: {1}")]
    Value(String, #[source] std::io::Error),
    #[error(
        "{0} needs TLS, and this binary was built without it; use an image of a release, or build with --features kafka-tls"
    )]
    WithoutTls(String),
}

/// Properties that a guarantee depends on, with the reason. Names that librdkafka accepts for the same property
/// are listed, too.
const FIXED: &[(&[&str], &str)] = &[
    (&["bootstrap.servers", "metadata.broker.list"], "--kafka (DAEGI_KAFKA) names the brokers"),
    (&["enable.idempotence"], "without it a retry of the producer repeats or reorders events"),
    (
        &["acks", "request.required.acks"],
        "an event leaves the outbox when all in-sync replicas have it",
    ),
    (
        &["enable.gapless.guarantee", "message.timeout.ms", "delivery.timeout.ms"],
        "a message that is dropped in the middle would be published after later ones",
    ),
    (
        &[
            "max.in.flight",
            "max.in.flight.requests.per.connection",
            "retries",
            "message.send.max.retries",
        ],
        "it limits what keeps events in order when the producer retries",
    ),
    (
        &["transactional.id"],
        "processes with the same id would end each other's transactions, and events use none",
    ),
    (&["group.id"], "--consumer-group (DAEGI_CONSUMER_GROUP) names the groups, one per topic"),
    (&["group.instance.id"], "members with the same id would replace each other"),
    (
        &[
            "enable.auto.commit",
            "auto.commit.enable",
            "enable.auto.offset.store",
            "auto.offset.reset",
        ],
        "an offset is stored after the effect, so that no message is skipped",
    ),
    (&["enable.partition.eof"], "a replay ends when it has read the end of a partition"),
    (&["statistics.interval.ms"], "the metric of the lag is computed from the statistics"),
    (&["allow.auto.create.topics"], "a topic with default settings would not be compacted"),
    (&["plugin.library.paths"], "it loads code into the process"),
];

impl From<&str> for Brokers {
    fn from(addresses: &str) -> Self {
        Self { addresses: addresses.to_owned(), properties: None }
    }
}

impl From<&String> for Brokers {
    fn from(addresses: &String) -> Self {
        addresses.as_str().into()
    }
}

impl From<&Self> for Brokers {
    fn from(brokers: &Self) -> Self {
        brokers.clone()
    }
}

impl Brokers {
    /// Adds a file of librdkafka properties: `name=value` per line, `#` begins a comment, `file:PATH` is a value
    /// in a file.
    #[must_use]
    pub fn with_properties(mut self, path: Option<&Path>) -> Self {
        self.properties = path.map(Path::to_owned);
        self
    }

    /// Returns the configuration of a client, with the current content of the files. The properties override the
    /// defaults of the client.
    pub(crate) fn client_config(
        &self,
        defaults: &[(&str, &str)],
    ) -> Result<ClientConfig, PropertiesError> {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.addresses)
            .set("client.id", "daegi")
            // The default grows to 10 s, which would delay publishing after the broker is back.
            .set("reconnect.backoff.max.ms", "1000");
        for (name, default) in defaults {
            config.set(*name, *default);
        }
        if let Some(path) = &self.properties {
            let properties =
                read(path).map_err(|reason| PropertiesError { path: path.clone(), reason })?;
            for (name, value) in properties {
                config.set(name, value);
            }
        }
        Ok(config)
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, Reason> {
    let text = fs::read_to_string(path)?;
    let mut properties = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (name, value) = text.split_once('=').ok_or(Reason::Syntax(line))?;
        let (name, value) = (name.trim().to_owned(), value.trim());
        check(&name, value)?;
        let value = match value.strip_prefix(FILE) {
            Some(file) => fs::read_to_string(file)
                .map_err(|error| Reason::Value(name.clone(), error))?
                .trim_end_matches(['\r', '\n'])
                .to_owned(),
            None => value.to_owned(),
        };
        if properties.insert(name, value).is_some() {
            return Err(Reason::Repeated(line));
        }
    }
    Ok(properties)
}

fn check(name: &str, value: &str) -> Result<(), Reason> {
    if let Some((_, reason)) = FIXED.iter().find(|(names, _)| names.contains(&name)) {
        return Err(Reason::Fixed(name.to_owned(), reason));
    }
    let value = value.to_ascii_lowercase();
    let needs_tls = name.starts_with("ssl.")
        || name == "security.protocol" && value.contains("ssl")
        || name.starts_with("sasl.oauthbearer")
        || matches!(name, "sasl.mechanism" | "sasl.mechanisms")
            && (value.starts_with("scram") || value == "oauthbearer");
    if needs_tls && !cfg!(feature = "tls") {
        return Err(Reason::WithoutTls(name.to_owned()));
    }
    Ok(())
}

impl fmt::Display for Brokers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<ClientConfig, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let brokers = Brokers::from("a:9092").with_properties(Some(file.path()));
        let config = brokers.client_config(&[("linger.ms", "5")]);
        config.map_err(|error| error.reason.to_string())
    }

    #[test]
    fn properties_are_added_to_the_defaults() {
        let secret = tempfile::NamedTempFile::new().unwrap();
        fs::write(secret.path(), "p=1\n").unwrap();
        let text = format!(
            "# comment\n\n client.id = tickets \nsasl.username=daegi\nsasl.password=file:{}\n",
            secret.path().display()
        );
        let config = config(&text).unwrap();
        assert_eq!(config.get("bootstrap.servers"), Some("a:9092"));
        assert_eq!(config.get("client.id"), Some("tickets"));
        assert_eq!(config.get("linger.ms"), Some("5"));
        assert_eq!(config.get("sasl.username"), Some("daegi"));
        assert_eq!(config.get("sasl.password"), Some("p=1"));
    }

    #[test]
    fn a_property_that_a_guarantee_depends_on_is_refused_with_the_reason() {
        for (text, expected) in [
            ("acks=1", "acks cannot be set, because an event leaves the outbox when"),
            ("request.required.acks=0", "cannot be set, because an event leaves the outbox"),
            ("enable.idempotence=true", "enable.idempotence cannot be set, because without it"),
            (
                "x.y=1\nenable.auto.offset.store=true",
                "because an offset is stored after the effect",
            ),
            ("group.id=mine", "--consumer-group (DAEGI_CONSUMER_GROUP) names the groups"),
            ("bootstrap.servers=b:1", "--kafka (DAEGI_KAFKA) names the brokers"),
            ("plugin.library.paths=x.so", "it loads code"),
        ] {
            let error = config(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn mistakes_are_reported_with_the_line_and_never_the_value() {
        for (text, expected) in [
            ("client.id=a\nsecret", "line 2 is not name=value"),
            ("client.id=secret\n\nclient.id=b", "line 3 repeats a property"),
            (
                "sasl.password=file:/no/such/secret-file",
                "the file of sasl.password: No such file or directory",
            ),
        ] {
            let error = config(text).unwrap_err();
            assert_eq!(error.split(" (os").next(), Some(expected), "{text}");
        }
        let missing = Brokers::from("a:1").with_properties(Some(Path::new("/no/such/file")));
        let error = missing.client_config(&[]).unwrap_err().to_string();
        assert!(error.starts_with("--kafka-properties (DAEGI_KAFKA_PROPERTIES), /no/such/file: "));
    }

    #[test]
    #[cfg(not(feature = "tls"))]
    fn a_binary_without_tls_says_so() {
        for text in [
            "security.protocol=SSL",
            "security.protocol=sasl_ssl",
            "ssl.ca.location=/ca.pem",
            "sasl.mechanism=SCRAM-SHA-512",
            "sasl.mechanisms=OAUTHBEARER",
        ] {
            let error = config(text).unwrap_err();
            assert!(error.contains("built without it; use an image of a release"), "{error}");
        }
        config("security.protocol=sasl_plaintext\nsasl.mechanism=PLAIN").unwrap();
    }
}
