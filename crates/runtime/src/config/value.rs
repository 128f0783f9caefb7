//! Parses and validates option values.

use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, fs, io};

use axum::http::HeaderName;
use daegi_domain::{KeyError, PassKeys, TicketKeys};
use ipnet::IpNet;
use tracing_subscriber::EnvFilter;

use super::{ConfigError, Role};
use crate::http::{ForwardedHeader, InvalidNetworks, TrustedProxies};
use crate::rate_limit::{InvalidRate, Rate};

/// The store. Its `Debug` form omits the password of the address.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreConfig {
    /// In the memory of this process.
    Memory,
    /// In Redis, at this address: one server, sentinels, or a cluster.
    Redis(String),
}

/// Kafka.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KafkaConfig {
    /// Off.
    Off,
    /// A broker inside this process.
    Embedded,
    /// A cluster: `host:port,…`.
    Brokers(String),
}

/// The format of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for terminals.
    Text,
    /// One JSON object per line.
    Json,
}

/// Why a value is invalid. No message repeats the value.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum InvalidValue {
    #[error(
        "must be memory, redis://, redis+sentinel:// or redis+cluster://, or with TLS rediss://, rediss+sentinel:// or rediss+cluster://"
    )]
    UnknownStore,
    #[error("{0}:// needs a host")]
    NoHost(&'static str),
    #[error("{0}:// needs the service's name, as in host:port,host:port/name")]
    NoService(&'static str),
    #[error("must be embedded, off or host:port,…")]
    UnknownKafka,
    #[error(
        "must be the http:// or https:// address of a collector, such as http://localhost:4318"
    )]
    InvalidOtlpEndpoint,
    #[error("must be name=value,name=value with percent-encoded values")]
    InvalidOtlpHeaders,
    #[error("must be http:// or https:// addresses of drand relays, separated by commas")]
    InvalidRelay,
    #[error("must be open or jwt")]
    UnknownIdentityMode,
    #[error(
        "must be the http:// or https:// address of a JSON Web Key Set without user and password, or a file"
    )]
    InvalidJwks,
    #[error("must not be empty")]
    EmptyClaim,
    #[error(
        "must be an http:// or https:// address without a path, such as https://wait.example.com"
    )]
    InvalidPublicUrl,
    #[error("must be text or json")]
    UnknownLogFormat,
    #[error("must be a duration such as 24h, 90m or 7d")]
    UnknownDuration,
    #[error("must be at least 1h")]
    ShortTicketAge,
    #[error("must be turnstile or hcaptcha")]
    UnknownWidget,
    #[error("must be an http:// or https:// address of a host, without user and password")]
    InvalidWidgetUrl,
    #[error("must be the name of a header, such as cf-ipcountry")]
    InvalidHeader,
    #[error("must be x-forwarded-for or forwarded")]
    UnknownForwardedHeader,
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
    /// Returns the address of Redis; `None` for a memory store.
    #[must_use]
    pub fn redis(&self) -> Option<&str> {
        match self {
            Self::Memory => None,
            Self::Redis(url) => Some(url),
        }
    }

    /// Returns the address without user and password, for logs and banners.
    #[must_use]
    pub fn redacted(&self) -> String {
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
    /// Returns the broker addresses; `None` for off and embedded.
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
        f.write_str(&self.redacted())
    }
}

/// The schemes of Redis, with and without TLS.
const REDIS_SCHEMES: [&str; 6] =
    ["redis", "redis+cluster", "redis+sentinel", "rediss", "rediss+cluster", "rediss+sentinel"];

pub(super) fn store(text: &str) -> Result<StoreConfig, InvalidValue> {
    if text == "memory" {
        return Ok(StoreConfig::Memory);
    }
    let (given, rest) = text.split_once("://").ok_or(InvalidValue::UnknownStore)?;
    let known = REDIS_SCHEMES.into_iter().find(|scheme| *scheme == given);
    let scheme = known.ok_or(InvalidValue::UnknownStore)?;
    if scheme.ends_with("sentinel") && !has_service(rest) {
        return Err(InvalidValue::NoService(scheme));
    }
    redis(scheme, rest, text)
}

/// Checks the host only, to report typos early; the store parses the rest.
fn redis(scheme: &'static str, rest: &str, text: &str) -> Result<StoreConfig, InvalidValue> {
    if has_host(rest) {
        Ok(StoreConfig::Redis(text.into()))
    } else {
        Err(InvalidValue::NoHost(scheme))
    }
}

/// Rejects a memory store for a fleet role, because processes with memory stores would not share
/// lines.
pub(super) fn validate_store(
    role: Role,
    store: Option<StoreConfig>,
) -> Result<StoreConfig, ConfigError> {
    match (role, store) {
        (Role::AllInOne, store) => Ok(store.unwrap_or(StoreConfig::Memory)),
        (_, Some(StoreConfig::Memory)) => Err(ConfigError::invalid(
            "store",
            format!("{} shares its lines with others and needs redis://", role.binary()),
        )),
        (_, Some(store)) => Ok(store),
        (_, None) => Err(ConfigError::Missing { role, option: "store" }),
    }
}

pub(super) fn kafka(text: &str) -> Result<KafkaConfig, InvalidValue> {
    match text {
        "off" => Ok(KafkaConfig::Off),
        "embedded" => Ok(KafkaConfig::Embedded),
        brokers if brokers.split(',').all(is_broker) => Ok(KafkaConfig::Brokers(brokers.into())),
        _ => Err(InvalidValue::UnknownKafka),
    }
}

/// Rejects the embedded broker for a fleet role, because other processes cannot reach it.
pub(super) fn validate_kafka(role: Role, kafka: KafkaConfig) -> Result<KafkaConfig, ConfigError> {
    match (role, kafka) {
        (Role::Api | Role::Consumer | Role::Scheduler, KafkaConfig::Embedded) => {
            let binary = role.binary();
            let reason = format!("{binary} shares its events with others and needs host:port,…");
            Err(ConfigError::invalid("kafka", reason))
        }
        (_, kafka) => Ok(kafka),
    }
}

/// Rejects the demo in a fleet role, and in an all-in-one without Kafka.
pub(super) fn validate_demo(
    role: Role,
    demo: bool,
    kafka: &KafkaConfig,
) -> Result<bool, ConfigError> {
    match (demo, role, kafka) {
        (true, Role::Api | Role::Consumer | Role::Scheduler, _) => {
            let reason = format!("is for daegi, all roles in one process, not {}", role.binary());
            Err(ConfigError::invalid("demo", reason))
        }
        (true, Role::AllInOne, KafkaConfig::Off) => {
            Err(ConfigError::invalid("demo", "moves over Kafka, and --kafka is off"))
        }
        _ => Ok(demo),
    }
}

/// Rejects properties for the embedded broker, which offers no TLS: they would be ignored.
pub(super) fn validate_kafka_properties(
    properties: Option<PathBuf>,
    kafka: &KafkaConfig,
) -> Result<Option<PathBuf>, ConfigError> {
    if properties.is_some() && *kafka == KafkaConfig::Embedded {
        let reason = "is for --kafka host:port,…, and the embedded broker is used";
        return Err(ConfigError::invalid("kafka-properties", reason));
    }
    Ok(properties)
}

pub(super) fn switch(text: &str) -> Result<bool, InvalidValue> {
    text.parse().map_err(|_| InvalidValue::UnknownSwitch)
}

pub(super) fn ticket_max_age(text: &str) -> Result<Duration, InvalidValue> {
    let age = humantime::parse_duration(text).map_err(|_| InvalidValue::UnknownDuration)?;
    let is_long_enough = age >= Duration::from_secs(3600);
    is_long_enough.then_some(age).ok_or(InvalidValue::ShortTicketAge)
}

/// Networks, as clap stores them: it takes a `Vec` for a repeated option.
#[derive(Debug, Clone)]
pub(super) struct Networks(pub(super) Vec<IpNet>);

pub(super) fn networks(text: &str) -> Result<Networks, InvalidNetworks> {
    TrustedProxies::parse_networks(text).map(Networks)
}

pub(super) fn forwarded_header(text: &str) -> Result<ForwardedHeader, InvalidValue> {
    match text {
        "x-forwarded-for" => Ok(ForwardedHeader::XForwardedFor),
        "forwarded" => Ok(ForwardedHeader::Forwarded),
        _ => Err(InvalidValue::UnknownForwardedHeader),
    }
}

/// A rate or none, as clap stores it: it takes an `Option` for an option without a default.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateOption(pub(super) Option<Rate>);

pub(super) fn rate(text: &str) -> Result<RateOption, InvalidRate> {
    Rate::parse(text).map(RateOption)
}

/// The name of a header that is read, if any.
#[derive(Debug, Clone)]
pub(super) struct HeaderOption(pub(super) Option<HeaderName>);

pub(super) fn header_name(text: &str) -> Result<HeaderOption, InvalidValue> {
    let parse = |text: &str| text.parse().map_err(|_| InvalidValue::InvalidHeader);
    Some(text).filter(|text| !text.is_empty()).map(parse).transpose().map(HeaderOption)
}

pub(super) fn ticket_secrets(text: &str) -> Result<TicketKeys, InvalidValue> {
    Ok(text.parse()?)
}

/// Parses PEM text, or reads a file with it. Environment files cannot contain line breaks, so the
/// two characters `\n` in PEM text count as a line break.
pub(super) fn pass_key(text: &str) -> Result<PassKeys, InvalidValue> {
    if text.contains("-----BEGIN") {
        return Ok(PassKeys::from_pem(&text.replace("\\n", "\n"))?);
    }
    let pem = fs::read_to_string(text).map_err(InvalidValue::PassFile)?;
    Ok(PassKeys::from_pem(&pem)?)
}

pub(super) fn log(text: &str) -> Result<String, InvalidValue> {
    EnvFilter::try_new(text)?;
    Ok(text.to_owned())
}

pub(super) fn log_format(text: &str) -> Result<LogFormat, InvalidValue> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(InvalidValue::UnknownLogFormat),
    }
}

pub(super) fn existing_file(text: &str) -> Result<PathBuf, InvalidValue> {
    let found = fs::metadata(text).map_err(InvalidValue::MissingFile)?;
    if found.is_file() { Ok(text.into()) } else { Err(InvalidValue::NotAFile) }
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
