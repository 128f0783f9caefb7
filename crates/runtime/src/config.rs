//! The configuration of a process: parsed once, from a source that tests can inject.
//!
//! Every option exists as `--foo-bar` and as `DAEGI_FOO_BAR`; the command line wins. All roles
//! know all options, so that a fleet can share one environment, and each role refuses to start
//! without what it cannot work without. A bad value is one line that names the option and the
//! reason, never a secret, and exit 64.

mod collector;
mod error;
mod options;
mod secrets;
mod source;
mod value;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::FromArgMatches;
use daegi_domain::{Ratio, StoreLimits, Topics};

pub use collector::Collector;
pub use error::ConfigError;
pub use secrets::{AdminToken, Secrets};
pub use value::{BadValue, KafkaConfig, LogFormat, StoreConfig};

use options::Options;

/// `EX_USAGE` of sysexits: the command line or the environment is wrong.
pub(crate) const EXIT_USAGE: u8 = 64;

/// What a process is in the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Answers people.
    Api,
    /// Reads product and order events.
    Consumer,
    /// Leads or stands by: admits, expires, sweeps; serves the admin API.
    Scheduler,
    /// All of them in one process.
    AllInOne,
}

/// Everything a process can be told. Its `Debug` form shows no secret.
#[derive(Debug, Clone)]
pub struct Config {
    /// What this process is.
    pub role: Role,
    /// Where lines live.
    pub store: StoreConfig,
    /// Where events go.
    pub kafka: KafkaConfig,
    /// What the topics are called.
    pub topics: Topics,
    /// The name under which consumers share their work.
    pub consumer_group: String,
    /// Where people are answered.
    pub public_addr: SocketAddr,
    /// Where health, metrics, the admin API and services are answered.
    pub internal_addr: SocketAddr,
    /// Keys and tokens, given or made.
    pub secrets: Secrets,
    /// The length of a tick.
    pub tick: Duration,
    /// How many people a tick lets in; only the first start of a store reads it.
    pub token_count_to_move: u32,
    /// How long a leader leads without renewing.
    pub lease: Duration,
    /// How long a line that lost data lets nobody in.
    pub recovery_hold: Duration,
    /// Into how many partitions items hash.
    pub partitions: u8,
    /// With how many unpublished admissions of a partition its lines are held.
    pub outbox_max: u64,
    /// When the store refuses new tickets, and which Redis it accepts.
    pub store_limits: StoreLimits,
    /// How many connections one listener keeps open.
    pub max_connections: usize,
    /// How many bytes one listener holds for incomplete requests.
    pub request_buffer_bytes: usize,
    /// How many people may listen to one api at once.
    pub max_streams: usize,
    /// How many long polls one api holds at once.
    pub max_long_polls: usize,
    /// How many connections one api holds for one ticket.
    pub max_held_per_ticket: usize,
    /// How many lines one api keeps in memory.
    pub max_cached_lines: usize,
    /// How long a shutdown waits for what is in flight.
    pub drain: Duration,
    /// Which logs are written, in the syntax of `EnvFilter`.
    pub log: String,
    /// How logs are written.
    pub log_format: LogFormat,
    /// Where traces go, if anywhere.
    pub otlp_endpoint: Option<Collector>,
    /// Which share of all tickets is traced.
    pub trace_ratio: Ratio,
    /// A file of items that are created if absent.
    pub seed_items: Option<PathBuf>,
    /// Whether only the process that runs already is asked how it is.
    pub healthcheck: bool,
    /// Whether neighbours and a crowd run beside the roles.
    pub demo: bool,
}

impl Config {
    /// What applies to every line of a store that has never been used.
    #[must_use]
    pub fn settings(&self) -> daegi_domain::Settings {
        daegi_domain::Settings {
            token_count_to_move: self.token_count_to_move,
            tick_ms: u32::try_from(self.tick.as_millis()).unwrap_or(u32::MAX),
        }
    }
}

/// What a command line asks for.
#[derive(Debug)]
pub enum Parsed {
    /// To run with this configuration.
    Run(Box<Config>),
    /// To print this text, help or version, and exit with 0.
    Show(String),
}

impl Role {
    /// The name of the binary that plays this role.
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

impl Parsed {
    /// The configuration, unless only help or the version were asked for.
    #[must_use]
    pub fn into_config(self) -> Option<Config> {
        match self {
            Self::Run(config) => Some(*config),
            Self::Show(_) => None,
        }
    }
}

impl Config {
    /// Parses arguments (without the program's name) and the environment.
    ///
    /// # Errors
    /// The first thing that is wrong, as one line.
    pub fn parse(
        role: Role,
        args: impl IntoIterator<Item = String>,
        env: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Parsed, ConfigError> {
        let command = options::command(role);
        let words = source::words(&command, role, args, env)?;
        let options = command
            .try_get_matches_from(words)
            .and_then(|matches| Options::from_arg_matches(&matches));
        match options {
            Ok(options) => Ok(Parsed::Run(Box::new(Self::resolve(role, options)?))),
            Err(error) if error.exit_code() == 0 => Ok(Parsed::Show(error.to_string())),
            Err(error) => Err(ConfigError::from_clap(&error)),
        }
    }

    fn resolve(role: Role, mut options: Options) -> Result<Self, ConfigError> {
        let topics = options.topics()?;
        let kafka = value::kafka_for(role, options.kafka)?;
        let demo = value::demo_for(role, options.demo, &kafka)?;
        Ok(Self {
            role,
            topics,
            consumer_group: options.consumer_group,
            store: value::store_for(role, options.store)?,
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
            request_buffer_bytes: options.request_buffer_bytes as usize,
            max_streams: options.max_streams as usize,
            max_long_polls: options.max_long_polls as usize,
            max_held_per_ticket: options.max_held_per_ticket as usize,
            max_cached_lines: options.max_cached_lines as usize,
            drain: Duration::from_millis(options.drain_ms),
            log: options.log,
            log_format: options.log_format,
            otlp_endpoint: options.otlp_endpoint,
            trace_ratio: options.trace_ratio,
            seed_items: options.seed_items,
            healthcheck: options.healthcheck,
            demo,
        })
    }
}

/// Reads the configuration of this process. This is the only place that looks at its environment.
///
/// # Errors
/// The code to exit with, after the text or the one line of complaint has been printed.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "help and complaints come before logs"
)]
pub fn load(role: Role) -> Result<Config, ExitCode> {
    match Config::parse(role, source::process_args(), source::process_env()) {
        Ok(Parsed::Run(config)) => Ok(*config),
        Ok(Parsed::Show(text)) => {
            print!("{text}");
            Err(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("{}: {error}", role.binary());
            Err(ExitCode::from(EXIT_USAGE))
        }
    }
}
