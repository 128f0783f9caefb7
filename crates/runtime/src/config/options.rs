//! The command-line options. Their doc comments are the help text.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::Uri;
use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command, CommandFactory, Parser, value_parser};
use daegi_domain::{PassKeys, RECOVERY_HOLD_MS, SampleRatio, TicketKeys, Topic, TopicName, Topics};

use super::identity::{self, IdentityMode, JwksLocation, PublicUrl};
use super::value::{self, HeaderOption, KafkaConfig, LogFormat, Networks, RateOption, StoreConfig};
use super::widget::{self, WidgetOptions, WidgetProvider, WidgetSecret};
use super::{AdminToken, ConfigError, OtlpEndpoint, OtlpHeaders, RelayUrls, Role, args};
use crate::http::{CorsOrigins, ForwardedHeader, Limits};

#[derive(Parser)]
#[command(version, args_override_self = true)]
#[command(after_help = "An option may also be given as the environment variable named beside it.")]
pub(super) struct Options {
    /// The store of all lines: `memory` (one process only), `redis://user:password@host:port`,
    /// `redis+sentinel://host:port,…/service` or `redis+cluster://host:port,…`; with TLS `rediss://`,
    /// `rediss+sentinel://` or `rediss+cluster://`.
    #[arg(long, value_name = "STORE", value_parser = value::store)]
    pub(super) store: Option<StoreConfig>,

    /// A PEM file with the CAs that sign the certificates of Redis. Without it the CAs of the system count.
    /// This and the following files are read again for every new connection.
    #[arg(long, value_name = "FILE", value_parser = value::existing_file)]
    pub(super) redis_ca: Option<PathBuf>,

    /// A PEM file with the certificate that daegi shows to Redis, and its intermediates.
    #[arg(long, value_name = "FILE", value_parser = value::existing_file)]
    pub(super) redis_cert: Option<PathBuf>,

    /// A PEM file with the key of that certificate.
    #[arg(long, value_name = "FILE", value_parser = value::existing_file)]
    pub(super) redis_key: Option<PathBuf>,

    /// A file with the password of the user in the URL of the store, instead of a password in the URL.
    #[arg(long, value_name = "FILE", value_parser = value::existing_file)]
    pub(super) redis_password_file: Option<PathBuf>,

    /// The Kafka brokers: `host:port,…`, `off`, or `embedded` (one process only).
    #[arg(long, value_name = "KAFKA", default_value = "off", value_parser = value::kafka)]
    pub(super) kafka: KafkaConfig,

    /// A file of librdkafka properties for all Kafka clients, `name=value` per line, such as
    /// `security.protocol`, `ssl.ca.location` or `sasl.username`. Properties that daegi's guarantees depend
    /// on are refused. A value `file:PATH` is read from a file.
    #[arg(long, value_name = "FILE", value_parser = value::existing_file)]
    pub(super) kafka_properties: Option<PathBuf>,

    /// The name of the topic `item.changed`.
    #[arg(long, value_name = "NAME", value_parser = TopicName::parse)]
    pub(super) topic_item_changed: Option<TopicName>,

    /// The name of the topic `order.closed`.
    #[arg(long, value_name = "NAME", value_parser = TopicName::parse)]
    pub(super) topic_order_closed: Option<TopicName>,

    /// The name of the topic `token.activated`.
    #[arg(long, value_name = "NAME", value_parser = TopicName::parse)]
    pub(super) topic_token_activated: Option<TopicName>,

    /// The name of the topic `token.closed`.
    #[arg(long, value_name = "NAME", value_parser = TopicName::parse)]
    pub(super) topic_token_closed: Option<TopicName>,

    /// The name of the topic `line.opened`.
    #[arg(long, value_name = "NAME", value_parser = TopicName::parse)]
    pub(super) topic_line_opened: Option<TopicName>,

    /// The name of the topic `line.closed`.
    #[arg(long, value_name = "NAME", value_parser = TopicName::parse)]
    pub(super) topic_line_closed: Option<TopicName>,

    /// The name of the topic `control.changed`, which must be compacted.
    #[arg(long, value_name = "NAME", value_parser = TopicName::parse)]
    pub(super) topic_control_changed: Option<TopicName>,

    /// The Kafka consumer group. Installations on one cluster need different groups and different
    /// topics.
    #[arg(long, value_name = "NAME", default_value = "daegi-consumer")]
    pub(super) consumer_group: String,

    /// The address for users.
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:8080")]
    pub(super) public_addr: SocketAddr,

    /// The address of health, metrics, the admin API and services. Not for the internet.
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:8081")]
    pub(super) internal_addr: SocketAddr,

    /// The bearer token of the admin API, 16 characters or more. Prefer the variable: other users
    /// of the machine can read command lines.
    #[arg(long, value_name = "TOKEN", value_parser = AdminToken::parse)]
    pub(super) admin_token: Option<AdminToken>,

    /// The secrets that sign tickets, as `id:hex,id:hex`. The first signs, all verify. The same
    /// in the whole fleet.
    #[arg(long, value_name = "SECRETS", value_parser = value::ticket_secrets)]
    pub(super) ticket_secrets: Option<TicketKeys>,

    /// How long a ticket is valid, such as `24h` or `7d`, at least `1h`. An older one is rejected
    /// with `LINE_RESTARTED`. Set it above the longest wait. The same in the whole fleet.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = value::ticket_max_age)]
    pub(super) ticket_max_age: Duration,

    /// The key that signs passes: Ed25519 (EdDSA), P-256 (ES256) or RSA (RS256), as PKCS#8 PEM text or a path to
    /// such a file. Several keys may follow each other; the first signs, all are published.
    #[arg(long, value_name = "PEM", allow_hyphen_values = true, value_parser = value::pass_key)]
    pub(super) pass_key: Option<PassKeys>,

    /// The length of a tick. Each tick admits tickets of every line once.
    #[arg(long, value_name = "MS", allow_negative_numbers = true, default_value_t = 1000)]
    #[arg(value_parser = value_parser!(u64).range(50..=60_000))]
    pub(super) tick_ms: u64,

    /// How many tickets of each line a tick admits; 0 pauses all lines. Used only for a new store;
    /// the admin API changes it later.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 10)]
    #[arg(value_parser = value_parser!(u32).range(0..=1_000_000))]
    pub(super) token_count_to_move: u32,

    /// How long a leader leads without renewing its lease, and so how long a fail-over takes.
    #[arg(long, value_name = "MS", allow_negative_numbers = true, default_value_t = 3000)]
    #[arg(value_parser = value_parser!(u64).range(500..=60_000))]
    pub(super) lease_ms: u64,

    /// How long a line that lost data holds admission, so that all users who keep polling have
    /// reclaimed their tickets first. The longest time between two polls is 36 seconds.
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    #[arg(default_value_t = RECOVERY_HOLD_MS, value_parser = value_parser!(u64).range(0..=600_000))]
    pub(super) recovery_hold_ms: u64,

    /// The number of partitions of the store. It is stored and cannot change later.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 16)]
    #[arg(value_parser = value_parser!(u8).range(1..=64))]
    pub(super) partitions: u8,

    /// How often one user may leave one line within ten minutes and still join it again; 0 is no
    /// limit.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 5)]
    #[arg(value_parser = value_parser!(u32).range(0..=1_000))]
    pub(super) leave_limit: u32,

    /// The number of unpublished admissions of a partition at which its lines hold admission.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 100_000)]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    pub(super) outbox_max: u64,

    /// How much of Redis' `maxmemory` may be used, in percent, before new tickets are refused with
    /// `STORE_FULL`. Existing tickets are served and admitted in any case.
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, default_value_t = 90)]
    #[arg(value_parser = value_parser!(u8).range(1..=100))]
    pub(super) memory_high: u8,

    /// How many tickets may wait in all lines together. Further joins are refused with `LINE_FULL`,
    /// with a delay of up to one tick plus one second. The policy's `maxWaiting` limits one line exactly.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 5_000_000)]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    pub(super) max_waiting: u64,

    /// Start with a Redis whose `maxmemory-policy` may evict keys, and so lose tickets.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_value = "false", default_missing_value = "true")]
    #[arg(action = ArgAction::Set, value_parser = value::switch)]
    pub(super) allow_eviction: bool,

    /// How many connections one listener keeps open. Further ones wait until one closes.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(default_value_t = Limits::CONNECTIONS, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(super) max_connections: u32,

    /// How old a connection may get, in milliseconds, before a response closes it, so that new
    /// pods get load through a plain Service. Each connection draws a value between half of it and the
    /// whole.
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    #[arg(default_value_t = Limits::MAX_AGE_MS, value_parser = value_parser!(u64).range(1_000..=86_400_000))]
    pub(super) connection_age_ms: u64,

    /// How many requests a connection may carry before a response closes it. Each connection draws a
    /// value between half of it and the whole.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(default_value_t = Limits::MAX_REQUESTS, value_parser = value_parser!(u32).range(1..))]
    pub(super) connection_requests: u32,

    /// How many bytes one listener holds for requests that have not arrived completely. The first 4
    /// KiB of each connection are not counted. A request over it gets 503, or its connection is
    /// closed.
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    #[arg(default_value_t = Limits::REQUEST_BUFFER)]
    #[arg(value_parser = value_parser!(u64).range(65_536..=17_179_869_184))]
    pub(super) request_buffer_bytes: u64,

    /// How many streams (server-sent events or WebSocket) one api holds at a time. Further ones are
    /// rejected, and the client polls. Keep it below `--max-connections`, so that polls still get a
    /// connection.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 15_000)]
    #[arg(value_parser = value_parser!(u32).range(0..=1_000_000))]
    pub(super) max_streams: u32,

    /// How many long polls (`waitMs`) one api holds at a time. Further ones are answered
    /// immediately.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 15_000)]
    #[arg(value_parser = value_parser!(u32).range(0..=1_000_000))]
    pub(super) max_long_polls: u32,

    /// How many connections one api holds for one ticket: streams, WebSockets and long polls
    /// together. A newer one ends the oldest.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 3)]
    #[arg(value_parser = value_parser!(u32).range(1..=1_000))]
    pub(super) max_held_per_ticket: u32,

    /// How hard a proof of work is (`challenge: pow` of a policy), in zero bits: each bit doubles the
    /// work. A browser needs about half a second for 18 bits, a slow phone seconds.
    #[arg(long, value_name = "BITS", allow_negative_numbers = true, default_value_t = 18)]
    #[arg(value_parser = value_parser!(u8).range(1..=24))]
    pub(super) challenge_bits: u8,

    /// How many challenges clients of one address get within about a minute before they become harder: each doubling
    /// beyond that adds a bit.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 100)]
    #[arg(value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(super) challenge_share: u32,

    /// How many bits `--challenge-share` may add, so that users of a busy network can still join: 3 are eight times
    /// the work, some seconds on a phone.
    #[arg(long, value_name = "BITS", allow_negative_numbers = true, default_value_t = 3)]
    #[arg(value_parser = value_parser!(u8).range(0..=6))]
    pub(super) challenge_extra_bits: u8,

    /// The provider of the widget that challenges new users (`challenge: widget` of a policy): `turnstile` or
    /// `hcaptcha`.
    #[arg(long, value_name = "PROVIDER", default_value = "turnstile", value_parser = widget::provider)]
    pub(super) widget_provider: WidgetProvider,

    /// The public site key of the widget. Without it, lines with `challenge: widget` take no new users.
    #[arg(long, value_name = "KEY", value_parser = widget::key)]
    pub(super) widget_site_key: Option<String>,

    /// The secret with which the api verifies responses of the widget. Prefer the variable or the file: other users
    /// of the machine can read command lines.
    #[arg(long, value_name = "SECRET", value_parser = WidgetSecret::parse)]
    pub(super) widget_secret: Option<WidgetSecret>,

    /// A file with that secret.
    #[arg(long, value_name = "FILE", value_parser = value::existing_file)]
    pub(super) widget_secret_file: Option<PathBuf>,

    /// Where the api verifies responses of the widget, if not at the address of the provider: a service that speaks the
    /// same protocol.
    #[arg(long, value_name = "URL", value_parser = widget::url)]
    pub(super) widget_verify_url: Option<Uri>,

    /// The script that renders the widget, if not the one of the provider. The waiting page permits its origin.
    #[arg(long, value_name = "URL", value_parser = widget::url)]
    pub(super) widget_script_url: Option<Uri>,

    /// The hosts of the pages that show the widget, separated by commas. A response of another host is refused. Empty:
    /// the settings of the provider apply.
    #[arg(long, value_name = "HOSTS", default_value = "")]
    pub(super) widget_hostnames: String,

    /// How many lines one api keeps in memory. Beyond it the least recently used line is dropped.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 4_096)]
    #[arg(value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(super) max_cached_lines: u32,

    /// The networks of the proxies in front of the api, such as `10.0.0.0/8`. Only they may name the
    /// address of a client. Empty: the address of the connection counts.
    #[arg(long, value_name = "NETWORKS", default_value = "", value_parser = value::networks)]
    pub(super) trusted_proxies: Networks,

    /// The header in which the proxies name the client: `x-forwarded-for` or `forwarded`. Only one is
    /// read, because proxies pass the other one on as the client sent it.
    #[arg(long, value_name = "HEADER", default_value = "x-forwarded-for", value_parser = value::forwarded_header)]
    pub(super) forwarded_header: ForwardedHeader,

    /// The trusted proxies begin each connection of the public listener with a header of the PROXY protocol, version 1
    /// or 2. A connection of theirs without one is closed, and so is one of another peer with one.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_value = "false", default_missing_value = "true")]
    #[arg(action = ArgAction::Set, value_parser = value::switch)]
    pub(super) proxy_protocol: bool,

    /// The header in which a content delivery network names the country of the client, such as
    /// `cf-ipcountry`, for the counts of visits. Clients can invent it unless the network replaces it.
    /// Empty: countries are not counted.
    #[arg(long, value_name = "HEADER", default_value = "", value_parser = value::header_name)]
    pub(super) country_header: HeaderOption,

    /// How many days the history of lines and the counts of visits are kept in the store; 0 keeps none.
    #[arg(long, value_name = "DAYS", allow_negative_numbers = true, default_value_t = 30)]
    #[arg(value_parser = value_parser!(u16).range(0..=366))]
    pub(super) history_days: u16,

    /// How often clients of one address (IPv6: of one /64) may join through one api: `20:500` is 20 per
    /// second and 500 at the same time; `off` is no limit. A whole campus may be behind one address.
    #[arg(long, value_name = "RATE", default_value = "off", value_parser = value::rate)]
    pub(super) source_joins: RateOption,

    /// The same for polls, and for all other requests that are neither joins nor streams.
    #[arg(long, value_name = "RATE", default_value = "off", value_parser = value::rate)]
    pub(super) source_polls: RateOption,

    /// The same for new streams.
    #[arg(long, value_name = "RATE", default_value = "off", value_parser = value::rate)]
    pub(super) source_streams: RateOption,

    /// How often one user may send joins of one item to one api, as `--source-joins`.
    #[arg(long, value_name = "RATE", default_value = "off", value_parser = value::rate)]
    pub(super) user_joins: RateOption,

    /// How often one ticket may be polled at one api, as `--source-joins`. Tickets are polled at most
    /// once per second by clients that keep to `pollAfterMs`.
    #[arg(long, value_name = "RATE", default_value = "off", value_parser = value::rate)]
    pub(super) ticket_polls: RateOption,

    /// The origins whose pages may call the public listener, such as `https://shop.example`, separated by commas;
    /// `*` for all. Cookies are not accepted from them.
    #[arg(long, value_name = "ORIGINS", value_parser = CorsOrigins::parse)]
    pub(super) cors_origins: Option<CorsOrigins>,

    /// What proves who a user is at a join: `open`, where a client names its user, or `jwt`, a signed identity.
    #[arg(long, value_name = "MODE", default_value = "open", value_parser = identity::mode)]
    pub(super) identity: IdentityMode,

    /// The keys of identities: the http:// or https:// address of a JSON Web Key Set, or a file with one.
    #[arg(long, value_name = "JWKS", value_parser = JwksLocation::parse)]
    pub(super) identity_jwks: Option<JwksLocation>,

    /// The issuer of identities, their claim `iss`.
    #[arg(long, value_name = "ISS", value_parser = identity::claim_text)]
    pub(super) identity_issuer: Option<String>,

    /// The audience of identities, which their claim `aud` must contain.
    #[arg(long, value_name = "AUD", value_parser = identity::claim_text)]
    pub(super) identity_audience: Option<String>,

    /// The claim of identities that names the user.
    #[arg(long, value_name = "CLAIM", default_value = "sub", value_parser = identity::claim_text)]
    pub(super) identity_claim: String,

    /// The address of the public listener as browsers reach it, such as `https://wait.example.com`. The gate
    /// redirects to its waiting page. Without it, the gate redirects to `/wait/…` on the site's own host.
    #[arg(long, value_name = "URL", value_parser = PublicUrl::parse)]
    pub(super) public_url: Option<PublicUrl>,

    /// How long a shutdown waits for requests in flight.
    #[arg(long, value_name = "MS", allow_negative_numbers = true, default_value_t = 10_000)]
    #[arg(value_parser = value_parser!(u64).range(0..=300_000))]
    pub(super) drain_ms: u64,

    /// The log filter, such as `info` or `info,daegi_api=debug`.
    #[arg(long, value_name = "FILTER", default_value = "info", value_parser = value::log)]
    pub(super) log: String,

    /// The format of logs: `text` or `json`.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = value::log_format)]
    pub(super) log_format: LogFormat,

    /// The base address of a collector that accepts OTLP over HTTP, such as
    /// `http://localhost:4318` or an `https://` address. Tracing is off without it.
    #[arg(long, value_name = "URL", value_parser = OtlpEndpoint::parse)]
    pub(super) otlp_endpoint: Option<OtlpEndpoint>,

    /// Headers for the collector, as `name=value,name=value` with percent-encoded values, such as
    /// `authorization=Bearer%20secret`. Prefer the variable or the file: other users of the machine can read
    /// command lines.
    #[arg(long, value_name = "HEADERS", value_parser = OtlpHeaders::parse)]
    pub(super) otlp_headers: Option<OtlpHeaders>,

    /// A file with such headers, which is read again for every request to the collector.
    #[arg(long, value_name = "FILE", value_parser = value::existing_file)]
    pub(super) otlp_headers_file: Option<PathBuf>,

    /// A PEM file with the CAs that sign the certificate of the collector. Without it the CAs of the system
    /// count.
    #[arg(long, value_name = "FILE", value_parser = value::existing_file)]
    pub(super) otlp_ca: Option<PathBuf>,

    /// The share of tickets that is traced, from 0 to 1. The same in the whole fleet, otherwise
    /// traces are incomplete.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, default_value = "0.01")]
    pub(super) trace_ratio: SampleRatio,

    /// The base addresses of HTTP relays of drand, separated by commas, such as `https://drand.example`. The
    /// leader fetches the round of a draw's beacon from the first one that has it, and verifies it. Without
    /// them it fetches nothing, and an operator hands the signature in.
    #[arg(long, value_name = "URLS", value_parser = RelayUrls::parse)]
    pub(super) drand_urls: Option<RelayUrls>,

    /// A CSV or JSON file of rules that block or allow users, networks or user agents. The leader reads it again when it
    /// changes; while it cannot be used, its last rules stay in force.
    #[arg(long, value_name = "FILE")]
    pub(super) blocklist: Option<PathBuf>,

    /// A CSV or JSON file of items that are created if absent.
    #[arg(long, value_name = "FILE", value_parser = value::existing_file)]
    pub(super) seed_items: Option<PathBuf>,

    /// Probe the running process with this configuration, and exit with 0 if it is ready. For
    /// container health checks.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_value = "false", default_missing_value = "true")]
    #[arg(action = ArgAction::Set, value_parser = value::switch)]
    pub(super) healthcheck: bool,

    /// Also run a product service, an order service and simulated visitors beside all roles. Needs
    /// Kafka; `daegi` only.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_value = "false", default_missing_value = "true")]
    #[arg(action = ArgAction::Set, value_parser = value::switch)]
    pub(super) demo: bool,
}

impl Options {
    /// Returns the options of the widget.
    pub(super) fn take_widget(&mut self) -> WidgetOptions {
        WidgetOptions {
            provider: self.widget_provider,
            site_key: self.widget_site_key.take(),
            secret: self.widget_secret.take(),
            secret_file: self.widget_secret_file.take(),
            verify_url: self.widget_verify_url.take(),
            script_url: self.widget_script_url.take(),
            hostnames: std::mem::take(&mut self.widget_hostnames),
        }
    }

    /// Returns the topic names, defaults included.
    pub(super) fn topics(&mut self) -> Result<Topics, ConfigError> {
        let given = [
            (Topic::ItemChanged, self.topic_item_changed.take()),
            (Topic::OrderClosed, self.topic_order_closed.take()),
            (Topic::TokenActivated, self.topic_token_activated.take()),
            (Topic::TokenClosed, self.topic_token_closed.take()),
            (Topic::LineOpened, self.topic_line_opened.take()),
            (Topic::LineClosed, self.topic_line_closed.take()),
            (Topic::ControlChanged, self.topic_control_changed.take()),
        ];
        let renamed = given.into_iter().filter_map(|(topic, name)| Some((topic, name?)));
        Topics::with_names(renamed).map_err(|taken| {
            let option = format!("topic-{}", taken.0.event_type().replace('.', "-"));
            ConfigError::invalid(&option, taken)
        })
    }
}

/// Returns the command line of a role, with its defaults and the variable of each option.
pub(super) fn command(role: Role) -> Command {
    let command = Options::command().name(role.binary()).about(about(role)).mut_args(with_variable);
    match role {
        Role::AllInOne => command
            .mut_arg("store", |store| store.default_value("memory"))
            .mut_arg("kafka", |kafka| kafka.default_value("embedded"))
            // In a fleet, other machines call the internal listener. The all-in-one needs it only
            // on its machine.
            .mut_arg("internal_addr", |address| address.default_value("127.0.0.1:8081")),
        Role::Api | Role::Consumer | Role::Scheduler => command,
    }
}

fn about(role: Role) -> &'static str {
    match role {
        Role::Api => "Serves users: join, poll, stream, leave",
        Role::Consumer => "Applies product and order events to the store",
        Role::Scheduler => "Admits tickets in order and serves the admin API",
        Role::AllInOne => "A virtual waiting room: every role in one process",
    }
}

/// Adds the variable to the help of an option. clap's support for variables is not used, because it
/// reads the environment of the process.
fn with_variable(arg: Arg) -> Arg {
    let Some(variable) = arg.get_long().map(args::variable) else {
        return arg;
    };
    let help = arg.get_help().map(StyledStr::to_string).unwrap_or_default();
    arg.help(format!("{help} [env: {variable}]"))
}
