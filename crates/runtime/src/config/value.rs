//! Values of options: from text to types, with a reason where that fails.

use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, fs, io};

use daegi_domain::{KeyError, PassKeys, TicketKeys};
use tracing_subscriber::EnvFilter;

use super::{ConfigError, Role};

/// Where lines live. Its `Debug` form leaves out the password of an address.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreConfig {
    /// In this process, and only in it.
    Memory,
    /// In Redis, at this address: one server, sentinels, or a cluster.
    Redis(String),
}

/// Where events go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KafkaConfig {
    /// Nowhere.
    Off,
    /// To a broker inside this process.
    Embedded,
    /// To a cluster: `host:port,…`.
    Brokers(String),
}

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: one object per line.
    Json,
}

/// Why a value cannot be used. No message repeats the value.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum BadValue {
    #[error("must be memory, redis://, redis+sentinel:// or redis+cluster://")]
    UnknownStore,
    #[error("{0}:// needs a host")]
    NoHost(&'static str),
    #[error("redis+sentinel:// needs the service's name, as in host:port,host:port/name")]
    NoService,
    #[error("rediss:// is not supported yet, give a redis:// address")]
    TlsUnsupported,
    #[error("must be embedded, off or host:port,…")]
    UnknownKafka,
    #[error("must be the http:// address of a collector, such as http://localhost:4318")]
    UnknownCollector,
    #[error("https:// is not supported, give the http:// address of a collector nearby")]
    CollectorTls,
    #[error("must be text or json")]
    UnknownLogFormat,
    #[error("must be a duration such as 24h, 90m or 7d")]
    UnknownDuration,
    #[error("must be at least 1h")]
    ShortTicketAge,
    #[error("must be true or false")]
    UnknownSwitch,
    #[error("is no log filter: {0}")]
    LogFilter(#[from] tracing_subscriber::filter::ParseError),
    #[error("must have at least 16 characters")]
    ShortToken,
    #[error("may only have visible ASCII characters")]
    UnprintableToken,
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("is neither PEM text nor a file that can be read: {0}")]
    PassFile(#[source] io::Error),
    #[error("is no file that can be read: {0}")]
    MissingFile(#[source] io::Error),
    #[error("is not a file")]
    NotAFile,
}

impl StoreConfig {
    /// The address of Redis, if the store is not memory.
    #[must_use]
    pub fn redis(&self) -> Option<&str> {
        match self {
            Self::Memory => None,
            Self::Redis(url) => Some(url),
        }
    }

    /// The address without user and password, for logs and banners.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Memory => "memory".into(),
            Self::Redis(url) => match (url.split_once("://"), url.rsplit_once('@')) {
                (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
                _ => url.clone(),
            },
        }
    }
}

impl KafkaConfig {
    /// The addresses of a cluster, if there is one.
    #[must_use]
    pub fn brokers(&self) -> Option<&str> {
        match self {
            Self::Off | Self::Embedded => None,
            Self::Brokers(brokers) => Some(brokers),
        }
    }
}

impl fmt::Debug for StoreConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

pub(super) fn store(text: &str) -> Result<StoreConfig, BadValue> {
    match text.split_once("://") {
        None if text == "memory" => Ok(StoreConfig::Memory),
        Some(("redis", rest)) => redis("redis", rest, text),
        Some(("redis+cluster", rest)) => redis("redis+cluster", rest, text),
        Some(("redis+sentinel", rest)) if has_service(rest) => redis("redis+sentinel", rest, text),
        Some(("redis+sentinel", _)) => Err(BadValue::NoService),
        Some(("rediss", _)) => Err(BadValue::TlsUnsupported),
        _ => Err(BadValue::UnknownStore),
    }
}

/// Enough to be told a slip at once; the store reads the rest.
fn redis(scheme: &'static str, rest: &str, text: &str) -> Result<StoreConfig, BadValue> {
    if has_host(rest) { Ok(StoreConfig::Redis(text.into())) } else { Err(BadValue::NoHost(scheme)) }
}

/// A fleet on memory stores would be a line that nobody shares.
pub(super) fn store_for(
    role: Role,
    store: Option<StoreConfig>,
) -> Result<StoreConfig, ConfigError> {
    match (role, store) {
        (Role::AllInOne, store) => Ok(store.unwrap_or(StoreConfig::Memory)),
        (_, Some(StoreConfig::Memory)) => Err(ConfigError::bad(
            "store",
            format!("{} shares its lines with others and needs redis://", role.binary()),
        )),
        (_, Some(store)) => Ok(store),
        (_, None) => Err(ConfigError::Missing { role, option: "store" }),
    }
}

pub(super) fn kafka(text: &str) -> Result<KafkaConfig, BadValue> {
    match text {
        "off" => Ok(KafkaConfig::Off),
        "embedded" => Ok(KafkaConfig::Embedded),
        brokers if brokers.split(',').all(is_broker) => Ok(KafkaConfig::Brokers(brokers.into())),
        _ => Err(BadValue::UnknownKafka),
    }
}

/// A broker inside one process of a fleet would be one that nobody else can see.
pub(super) fn kafka_for(role: Role, kafka: KafkaConfig) -> Result<KafkaConfig, ConfigError> {
    match (role, kafka) {
        (Role::Api | Role::Consumer | Role::Scheduler, KafkaConfig::Embedded) => {
            let binary = role.binary();
            let reason = format!("{binary} shares its events with others and needs host:port,…");
            Err(ConfigError::bad("kafka", reason))
        }
        (_, kafka) => Ok(kafka),
    }
}

/// The neighbours of a fleet are real ones, and they all talk over Kafka.
pub(super) fn demo_for(role: Role, demo: bool, kafka: &KafkaConfig) -> Result<bool, ConfigError> {
    match (demo, role, kafka) {
        (true, Role::Api | Role::Consumer | Role::Scheduler, _) => {
            let reason = format!("is for daegi, all roles in one process, not {}", role.binary());
            Err(ConfigError::bad("demo", reason))
        }
        (true, Role::AllInOne, KafkaConfig::Off) => {
            Err(ConfigError::bad("demo", "moves over Kafka, and --kafka is off"))
        }
        _ => Ok(demo),
    }
}

pub(super) fn switch(text: &str) -> Result<bool, BadValue> {
    text.parse().map_err(|_| BadValue::UnknownSwitch)
}

pub(super) fn ticket_max_age(text: &str) -> Result<Duration, BadValue> {
    let age = humantime::parse_duration(text).map_err(|_| BadValue::UnknownDuration)?;
    let is_long_enough = age >= Duration::from_secs(3600);
    is_long_enough.then_some(age).ok_or(BadValue::ShortTicketAge)
}

pub(super) fn ticket_secrets(text: &str) -> Result<TicketKeys, BadValue> {
    Ok(text.parse()?)
}

/// PEM text, or the path of a file with it. Environment files cannot hold line breaks, so `\n` in
/// PEM text counts as one.
pub(super) fn pass_key(text: &str) -> Result<PassKeys, BadValue> {
    if text.contains("-----BEGIN") {
        return Ok(PassKeys::from_pem(&text.replace("\\n", "\n"))?);
    }
    let pem = fs::read_to_string(text).map_err(BadValue::PassFile)?;
    Ok(PassKeys::from_pem(&pem)?)
}

pub(super) fn log(text: &str) -> Result<String, BadValue> {
    EnvFilter::try_new(text)?;
    Ok(text.to_owned())
}

pub(super) fn log_format(text: &str) -> Result<LogFormat, BadValue> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(BadValue::UnknownLogFormat),
    }
}

pub(super) fn existing_file(text: &str) -> Result<PathBuf, BadValue> {
    let found = fs::metadata(text).map_err(BadValue::MissingFile)?;
    if found.is_file() { Ok(text.into()) } else { Err(BadValue::NotAFile) }
}

fn is_broker(text: &str) -> bool {
    let named = |host: &str| !host.is_empty() && !host.contains(['/', ' ', '@']);
    text.rsplit_once(':')
        .is_some_and(|(host, port)| named(host) && port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn has_host(rest: &str) -> bool {
    let hosts = without_credentials(rest).split('/').next().unwrap_or_default();
    hosts.split(',').all(|host| !host.is_empty() && !host.starts_with(':'))
}

fn has_service(rest: &str) -> bool {
    without_credentials(rest).split('/').nth(1).is_some_and(|service| !service.is_empty())
}

fn without_credentials(rest: &str) -> &str {
    rest.rsplit_once('@').map_or(rest, |(_, host)| host)
}
