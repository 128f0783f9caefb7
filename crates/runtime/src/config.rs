//! The configuration of a process: parsed once, from a source that tests can inject.
//!
//! Every option exists as `--foo-bar` and as `DAEGI_FOO_BAR`; the command line overrides the
//! environment. All roles accept all options, so that a fleet can share one environment. Each role
//! refuses to start without the options it requires. An invalid value is reported in one line that
//! names the option and the reason, never a secret, with exit code 64.

mod args;
mod error;
mod identity;
mod options;
mod otlp;
mod redis_files;
mod relays;
mod secrets;
mod value;
mod widget;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use axum::http::HeaderName;
use clap::FromArgMatches;
use daegi_domain::{SampleRatio, StoreLimits, Topics};

pub use error::ConfigError;
pub use identity::{IdentityConfig, JwksLocation};
pub use otlp::{OtlpCollector, OtlpEndpoint, OtlpHeaders};
pub use redis_files::RedisFiles;
pub use relays::RelayUrls;
pub use secrets::{AdminToken, Secrets};
pub use value::{InvalidValue, KafkaConfig, LogFormat, StoreConfig};
pub use widget::{WidgetConfig, WidgetProvider, WidgetSecret};

use crate::http::{CorsOrigins, TrustedProxies};
use crate::rate_limit::Rate;
use options::Options;

/// `EX_USAGE` of sysexits: the command line or the environment is invalid.
pub(crate) const EXIT_USAGE: u8 = 64;

/// The role of a process in the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Serves users.
    Api,
    /// Consumes product and order events.
    Consumer,
    /// Leads or stands by: admits, expires, sweeps; serves the admin API.
    Scheduler,
    /// All roles in one process.
    AllInOne,
}

/// All options of a process. Its `Debug` form shows no secret.
#[derive(Debug, Clone)]
pub struct Config {
    /// The role.
    pub role: Role,
    /// The store.
    pub store: StoreConfig,
    /// Certificates and password of connections to Redis.
    pub redis_files: RedisFiles,
    /// Kafka.
    pub kafka: KafkaConfig,
    /// Properties of all Kafka clients.
    pub kafka_properties: Option<PathBuf>,
    /// The names of the topics.
    pub topics: Topics,
    /// The consumer group.
    pub consumer_group: String,
    /// The address for users.
    pub public_addr: SocketAddr,
    /// The address for health, metrics, the admin API and services.
    pub internal_addr: SocketAddr,
    /// Keys and tokens, given or generated.
    pub secrets: Secrets,
    /// The length of a tick.
    pub tick: Duration,
    /// Admissions per line and tick; used only for a store that has no settings.
    pub token_count_to_move: u32,
    /// How long a leader leads without renewing the lease.
    pub lease: Duration,
    /// How long a line that lost data holds admission.
    pub recovery_hold: Duration,
    /// Number of partitions of the store.
    pub partitions: u8,
    /// Unpublished admissions of a partition at which its lines are held.
    pub outbox_max: u64,
    /// When the store rejects new tickets, and which Redis it accepts.
    pub store_limits: StoreLimits,
    /// Maximum open connections of one listener.
    pub max_connections: usize,
    /// Maximum age of a connection.
    pub connection_age: Duration,
    /// Maximum number of requests of a connection.
    pub connection_requests: u32,
    /// Maximum bytes of incomplete requests of one listener.
    pub request_buffer_bytes: usize,
    /// Maximum streams of one api.
    pub max_streams: usize,
    /// Maximum long polls of one api.
    pub max_long_polls: usize,
    /// Maximum streams and long polls of one ticket on one api.
    pub max_held_per_ticket: usize,
    /// Zero bits of a proof of work.
    pub challenge_bits: u8,
    /// Challenges of one source without additional bits.
    pub challenge_share: u32,
    /// Maximum additional bits of a source.
    pub challenge_extra_bits: u8,
    /// The widget of lines with `challenge: widget`.
    pub widget: Option<WidgetConfig>,
    /// Maximum lines in the memory of one api.
    pub max_cached_lines: usize,
    /// Which proxies name the addresses of clients.
    pub trusted_proxies: TrustedProxies,
    /// Whether the trusted proxies begin each connection of the public listener with a PROXY header.
    pub proxy_protocol: bool,
    /// The header in which a content delivery network names the country of a client.
    pub country_header: Option<HeaderName>,
    /// How long the history of lines and visits is kept; zero if it is not.
    pub history: Duration,
    /// The origins whose pages may call the public listener.
    pub cors_origins: CorsOrigins,
    /// What proves who a user is; `None` if every client may name a user.
    pub identity: Option<IdentityConfig>,
    /// The address of the public listener as browsers reach it; empty for the site's own origin.
    pub public_url: String,
    /// How often sources, users and tickets may send requests to one api.
    pub rates: Rates,
    /// How long a shutdown waits for requests in flight.
    pub drain: Duration,
    /// The log filter, in the syntax of `EnvFilter`.
    pub log: String,
    /// The format of logs.
    pub log_format: LogFormat,
    /// Where spans are exported, if anywhere.
    pub otlp: Option<OtlpCollector>,
    /// The share of tickets that is traced.
    pub trace_ratio: SampleRatio,
    /// The relays from which rounds of the beacon are fetched; empty if none is.
    pub drand_urls: RelayUrls,
    /// A file of rules that block or allow requests.
    pub blocklist: Option<PathBuf>,
    /// A file of items that are created if absent.
    pub seed_items: Option<PathBuf>,
    /// Whether to probe the running process and exit.
    pub healthcheck: bool,
    /// Whether the demo services and visitors run beside the roles.
    pub demo: bool,
}

impl Config {
    /// Returns the settings of a store that has none.
    #[must_use]
    pub fn settings(&self) -> daegi_domain::Settings {
        daegi_domain::Settings {
            token_count_to_move: self.token_count_to_move,
            tick_ms: u32::try_from(self.tick.as_millis()).unwrap_or(u32::MAX),
        }
    }
}

/// How often sources, users and tickets may send requests to one api; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rates {
    /// Joins of one source.
    pub source_joins: Option<Rate>,
    /// Polls and other requests of one source.
    pub source_polls: Option<Rate>,
    /// New streams of one source.
    pub source_streams: Option<Rate>,
    /// Joins of one user and item.
    pub user_joins: Option<Rate>,
    /// Polls of one ticket.
    pub ticket_polls: Option<Rate>,
}

/// A parsed command line.
#[derive(Debug)]
pub enum ParsedArgs {
    /// Run with this configuration.
    Run(Box<Config>),
    /// Print this text, help or version, and exit with 0.
    Print(String),
}

impl Role {
    /// Returns the name of the binary of this role.
    #[must_use]
    pub const fn binary(self) -> &'static str {
        match self {
            Self::Api => "daegi-api",
            Self::Consumer => "daegi-consumer",
            Self::Scheduler => "daegi-scheduler",
            Self::AllInOne => "daegi",
        }
    }
}

impl ParsedArgs {
    /// Returns the configuration; `None` for help or version.
    #[must_use]
    pub fn into_config(self) -> Option<Config> {
        match self {
            Self::Run(config) => Some(*config),
            Self::Print(_) => None,
        }
    }
}

impl Config {
    /// Parses arguments (without the program's name) and the environment.
    ///
    /// # Errors
    /// The first error, as one line.
    pub fn parse(
        role: Role,
        args: impl IntoIterator<Item = String>,
        env: impl IntoIterator<Item = (String, String)>,
    ) -> Result<ParsedArgs, ConfigError> {
        let command = options::command(role);
        let arguments = args::merged_args(&command, role, args, env)?;
        let options = command
            .try_get_matches_from(arguments)
            .and_then(|matches| Options::from_arg_matches(&matches));
        match options {
            Ok(options) => Ok(ParsedArgs::Run(Box::new(Self::resolve(role, options)?))),
            Err(error) if error.exit_code() == 0 => Ok(ParsedArgs::Print(error.to_string())),
            Err(error) => Err(ConfigError::from_clap(&error)),
        }
    }

    fn resolve(role: Role, mut options: Options) -> Result<Self, ConfigError> {
        let topics = options.topics()?;
        let widget = options.take_widget().resolve()?;
        let identity = identity::resolve(&mut options)?;
        let kafka = value::validate_kafka(role, options.kafka)?;
        let demo = value::validate_demo(role, options.demo, &kafka)?;
        if options.proxy_protocol && options.trusted_proxies.0.is_empty() {
            let reason = "needs the networks of the proxies in --trusted-proxies";
            return Err(ConfigError::invalid("proxy-protocol", reason));
        }
        let store = value::validate_store(role, options.store)?;
        let redis_files = RedisFiles {
            ca: options.redis_ca,
            cert: options.redis_cert,
            key: options.redis_key,
            password: options.redis_password_file,
        };
        Ok(Self {
            role,
            topics,
            consumer_group: options.consumer_group,
            redis_files: redis_files.validated(&store)?,
            store,
            kafka_properties: value::validate_kafka_properties(options.kafka_properties, &kafka)?,
            kafka,
            public_addr: options.public_addr,
            internal_addr: options.internal_addr,
            secrets: Secrets::resolve(
                role,
                options.admin_token,
                options.ticket_secrets,
                options.pass_key,
                options.ticket_max_age,
            )?,
            tick: Duration::from_millis(options.tick_ms),
            token_count_to_move: options.token_count_to_move,
            lease: Duration::from_millis(options.lease_ms),
            recovery_hold: Duration::from_millis(options.recovery_hold_ms),
            partitions: options.partitions,
            outbox_max: options.outbox_max,
            store_limits: StoreLimits {
                memory_high_percent: options.memory_high,
                max_waiting: options.max_waiting,
                leave_limit: options.leave_limit,
                allow_eviction: options.allow_eviction,
            },
            max_connections: options.max_connections as usize,
            connection_age: Duration::from_millis(options.connection_age_ms),
            connection_requests: options.connection_requests,
            request_buffer_bytes: options.request_buffer_bytes as usize,
            max_streams: options.max_streams as usize,
            max_long_polls: options.max_long_polls as usize,
            max_held_per_ticket: options.max_held_per_ticket as usize,
            challenge_bits: options.challenge_bits,
            challenge_share: options.challenge_share,
            challenge_extra_bits: options.challenge_extra_bits,
            widget,
            max_cached_lines: options.max_cached_lines as usize,
            trusted_proxies: TrustedProxies::new(
                options.trusted_proxies.0,
                options.forwarded_header,
            ),
            proxy_protocol: options.proxy_protocol,
            country_header: options.country_header.0,
            history: Duration::from_secs(u64::from(options.history_days) * 86_400),
            cors_origins: options.cors_origins.unwrap_or_default(),
            identity,
            public_url: options.public_url.map(|url| url.0).unwrap_or_default(),
            rates: Rates {
                source_joins: options.source_joins.0,
                source_polls: options.source_polls.0,
                source_streams: options.source_streams.0,
                user_joins: options.user_joins.0,
                ticket_polls: options.ticket_polls.0,
            },
            drain: Duration::from_millis(options.drain_ms),
            log: options.log,
            log_format: options.log_format,
            otlp: OtlpCollector::resolve(
                options.otlp_endpoint,
                options.otlp_headers,
                options.otlp_headers_file,
                options.otlp_ca,
            )?,
            trace_ratio: options.trace_ratio,
            drand_urls: options.drand_urls.unwrap_or_default(),
            blocklist: options.blocklist,
            seed_items: options.seed_items,
            healthcheck: options.healthcheck,
            demo,
        })
    }
}

/// Reads the configuration of this process. No other code reads its environment.
///
/// # Errors
/// The exit code, after the text or the error line has been printed.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "help and errors are printed before logs exist"
)]
pub fn load(role: Role) -> Result<Config, ExitCode> {
    match Config::parse(role, args::process_args(), args::process_env()) {
        Ok(ParsedArgs::Run(config)) => Ok(*config),
        Ok(ParsedArgs::Print(text)) => {
            print!("{text}");
            Err(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("{}: {error}", role.binary());
            Err(ExitCode::from(EXIT_USAGE))
        }
    }
}
