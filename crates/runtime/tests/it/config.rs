//! Options, variables, defaults and errors.

use std::time::Duration;

use daegi_domain::Number;
use daegi_runtime::config::{JwksLocation, LogFormat, ParsedArgs};
use daegi_runtime::http::CorsOrigins;
use daegi_runtime::{Config, KafkaConfig, Role, StoreConfig};

use crate::support::{PEM, SECRET_HEX, config_error, parse};

#[test]
fn the_all_in_one_needs_nothing() {
    let config = parse(Role::AllInOne, &[], &[]).unwrap();
    assert_eq!(config.store, StoreConfig::Memory);
    assert_eq!(config.kafka, KafkaConfig::Embedded);
    assert_eq!(config.public_addr.to_string(), "0.0.0.0:8080");
    assert_eq!(config.internal_addr.to_string(), "127.0.0.1:8081");
    assert_eq!(config.tick, Duration::from_secs(1));
    assert_eq!(config.token_count_to_move, 10);
    assert_eq!(config.lease, Duration::from_secs(3));
    assert_eq!(config.partitions, 16);
    assert_eq!(config.outbox_max, 100_000);
    assert_eq!((config.max_streams, config.max_long_polls), (15_000, 15_000));
    assert_eq!((config.max_held_per_ticket, config.max_cached_lines), (3, 4_096));
    assert_eq!(config.challenge_bits, 18);
    assert_eq!((config.challenge_share, config.challenge_extra_bits), (100, 3));
    assert_eq!(config.widget, None);
    assert!(!config.proxy_protocol);
    assert_eq!(config.history, Duration::from_secs(30 * 86_400));
    assert_eq!(config.country_header, None);
    assert_eq!((config.identity, config.public_url.as_str()), (None, ""));
    assert_eq!(config.cors_origins, CorsOrigins::default());
    assert_eq!(config.max_connections, 20_000);
    assert_eq!(config.connection_age, Duration::from_secs(60));
    assert_eq!(config.connection_requests, 10_000);
    assert_eq!(config.request_buffer_bytes, 16 * 1024 * 1024);
    assert_eq!(config.drain, Duration::from_secs(10));
    assert_eq!(config.log, "info");
    assert_eq!(config.log_format, LogFormat::Text);
    assert_eq!(config.otlp, None);
    assert_eq!(config.trace_ratio, "0.01".parse().unwrap());
    assert_eq!((config.seed_items, config.blocklist), (None, None));
    assert!(!config.demo);
}

#[test]
fn fleet_roles_bind_all_interfaces_and_the_all_in_one_binds_loopback() {
    for role in [Role::Api, Role::Consumer, Role::Scheduler] {
        let secret = format!("1:{SECRET_HEX}");
        let env = [
            ("DAEGI_STORE", "redis://localhost"),
            ("DAEGI_TICKET_SECRETS", &secret),
            ("DAEGI_PASS_KEY", PEM),
            ("DAEGI_ADMIN_TOKEN", "sixteen-characters"),
        ];
        let config = parse(role, &[], &env).unwrap();
        assert_eq!(config.internal_addr.to_string(), "0.0.0.0:8081", "{role:?}");
    }
    let config = parse(Role::AllInOne, &[], &[]).unwrap();
    assert!(config.internal_addr.ip().is_loopback());
}

#[test]
fn every_option_can_be_a_variable() {
    let seed = tempfile::NamedTempFile::new().unwrap();
    let env = [
        ("DAEGI_STORE", "redis://localhost:6379"),
        ("DAEGI_KAFKA", "a:9092,[::1]:9093"),
        ("DAEGI_PUBLIC_ADDR", "127.0.0.1:1"),
        ("DAEGI_INTERNAL_ADDR", "[::1]:2"),
        ("DAEGI_TICK_MS", "50"),
        ("DAEGI_TOKEN_COUNT_TO_MOVE", "0"),
        ("DAEGI_LEASE_MS", "60000"),
        ("DAEGI_PARTITIONS", "64"),
        ("DAEGI_OUTBOX_MAX", "1"),
        ("DAEGI_MAX_CONNECTIONS", "9"),
        ("DAEGI_CONNECTION_AGE_MS", "1000"),
        ("DAEGI_CONNECTION_REQUESTS", "1"),
        ("DAEGI_REQUEST_BUFFER_BYTES", "65536"),
        ("DAEGI_MAX_STREAMS", "7"),
        ("DAEGI_MAX_LONG_POLLS", "8"),
        ("DAEGI_MAX_HELD_PER_TICKET", "9"),
        ("DAEGI_CHALLENGE_BITS", "20"),
        ("DAEGI_CHALLENGE_SHARE", "7"),
        ("DAEGI_CHALLENGE_EXTRA_BITS", "0"),
        ("DAEGI_TRUSTED_PROXIES", "10.0.0.0/8"),
        ("DAEGI_PROXY_PROTOCOL", "true"),
        ("DAEGI_HISTORY_DAYS", "7"),
        ("DAEGI_COUNTRY_HEADER", "CF-IPCountry"),
        ("DAEGI_CORS_ORIGINS", "https://shop.example"),
        ("DAEGI_PUBLIC_URL", "https://wait.example/"),
        ("DAEGI_IDENTITY", "jwt"),
        ("DAEGI_IDENTITY_JWKS", "https://login.example/jwks"),
        ("DAEGI_IDENTITY_ISSUER", "https://login.example"),
        ("DAEGI_IDENTITY_AUDIENCE", "waiting-room"),
        ("DAEGI_IDENTITY_CLAIM", "email"),
        ("DAEGI_MAX_CACHED_LINES", "10"),
        ("DAEGI_TICKET_MAX_AGE", "2h"),
        ("DAEGI_DRAIN_MS", "0"),
        ("DAEGI_LOG", "warn,daegi_api=debug"),
        ("DAEGI_LOG_FORMAT", "json"),
        ("DAEGI_BLOCKLIST", "/etc/daegi/blocklist.csv"),
        ("DAEGI_SEED_ITEMS", seed.path().to_str().unwrap()),
    ];
    let config = parse(Role::AllInOne, &[], &env).unwrap();
    assert_eq!(config.store, StoreConfig::Redis("redis://localhost:6379".into()));
    assert_eq!(config.kafka.brokers(), Some("a:9092,[::1]:9093"));
    assert_eq!(config.internal_addr.to_string(), "[::1]:2");
    assert_eq!(config.tick, Duration::from_millis(50));
    assert_eq!((config.token_count_to_move, config.partitions, config.outbox_max), (0, 64, 1));
    assert_eq!((config.max_streams, config.max_long_polls), (7, 8));
    assert_eq!((config.max_held_per_ticket, config.max_cached_lines), (9, 10));
    assert_eq!(config.challenge_bits, 20);
    assert_eq!((config.challenge_share, config.challenge_extra_bits), (7, 0));
    assert!(config.proxy_protocol);
    assert_eq!(config.history, Duration::from_secs(7 * 86_400));
    assert_eq!(config.country_header.unwrap(), "cf-ipcountry");
    assert_eq!(config.cors_origins, CorsOrigins::parse("https://shop.example").unwrap());
    assert_eq!(config.public_url, "https://wait.example");
    let identity = config.identity.unwrap();
    let jwks = JwksLocation::Url("https://login.example/jwks".parse().unwrap());
    assert_eq!((identity.jwks, identity.claim.as_str()), (jwks, "email"));
    let names = (identity.issuer.as_str(), identity.audience.as_str());
    assert_eq!(names, ("https://login.example", "waiting-room"));
    assert_eq!((config.max_connections, config.request_buffer_bytes), (9, 65_536));
    assert_eq!((config.connection_age, config.connection_requests), (Duration::from_secs(1), 1));
    assert_eq!(config.drain, Duration::ZERO);
    assert_eq!(config.log_format, LogFormat::Json);
    assert_eq!(config.seed_items.as_deref(), Some(seed.path()));
    assert_eq!(config.blocklist, Some("/etc/daegi/blocklist.csv".into()));
}

#[test]
fn the_command_line_wins_over_the_environment() {
    let args = ["--tick-ms", "200", "--tick-ms=300"];
    let config = parse(Role::AllInOne, &args, &[("DAEGI_TICK_MS", "100")]).unwrap();
    assert_eq!(config.tick, Duration::from_millis(300));
}

#[test]
fn an_empty_variable_counts_as_unset_and_variables_of_other_programs_are_ignored() {
    let env = [
        ("DAEGI_TICK_MS", ""),
        ("PATH", "/bin"),
        ("DAEGI_API_SERVICE_HOST", "10.0.0.1"),
        ("DAEGI_API_PORT", "tcp://10.0.0.1:8080"),
        ("DAEGI_API_PORT_8080_TCP_ADDR", "10.0.0.1"),
    ];
    let config = parse(Role::AllInOne, &[], &env).unwrap();
    assert_eq!(config.tick, Duration::from_secs(1));
}

#[test]
fn signed_identities_need_keys_an_issuer_and_an_audience() {
    let whole = [
        ("DAEGI_IDENTITY", "jwt"),
        ("DAEGI_IDENTITY_JWKS", "https://login.example/jwks"),
        ("DAEGI_IDENTITY_ISSUER", "https://login.example"),
        ("DAEGI_IDENTITY_AUDIENCE", "waiting-room"),
    ];
    assert!(parse(Role::AllInOne, &[], &whole).unwrap().identity.is_some());
    for missing in 1..whole.len() {
        let mut given = whole.to_vec();
        let (variable, _) = given.remove(missing);
        let line = config_error(Role::AllInOne, &[], &given);
        assert!(line.contains(variable) && line.contains("--identity is jwt"), "{line}");
    }
    // The others are kept for the day on which identities are switched on.
    assert!(parse(Role::AllInOne, &[], &whole[1..]).unwrap().identity.is_none());
}

#[test]
fn an_unknown_name_is_reported() {
    let line = config_error(Role::AllInOne, &[], &[("DAEGI_TICKS_MS", "100")]);
    assert_eq!(line, "unknown environment variable DAEGI_TICKS_MS, see --help");
    let line = config_error(Role::AllInOne, &["--ticks-ms", "100"], &[]);
    assert_eq!(line, "unknown option --ticks-ms, see --help");
}

#[test]
fn an_invalid_value_is_one_line_with_both_names_and_the_reason() {
    for (option, value, reason) in [
        (
            "store",
            "postgres://x",
            "must be memory, redis://, redis+sentinel:// or redis+cluster://, or with TLS rediss://, rediss+sentinel:// or rediss+cluster://",
        ),
        ("store", "redis://", "redis:// needs a host"),
        ("store", "redis://:6379", "redis:// needs a host"),
        ("store", "rediss://", "rediss:// needs a host"),
        ("store", "redis+cluster://", "redis+cluster:// needs a host"),
        ("store", "redis+cluster://u:pw@a:1,:2", "redis+cluster:// needs a host"),
        (
            "store",
            "redis+sentinel://a:1,b:2",
            "redis+sentinel:// needs the service's name, as in host:port,host:port/name",
        ),
        ("store", "redis+sentinel:///mymaster", "redis+sentinel:// needs a host"),
        ("kafka", "on", "must be embedded, off or host:port,…"),
        ("kafka", "a:9092,b", "must be embedded, off or host:port,…"),
        ("kafka", "kafka://a:9092", "must be embedded, off or host:port,…"),
        ("public-addr", "8080", "invalid socket address syntax"),
        ("internal-addr", "localhost", "invalid socket address syntax"),
        ("tick-ms", "49", "49 is not in 50..=60000"),
        ("tick-ms", "fast", "invalid digit found in string"),
        ("token-count-to-move", "1000001", "1000001 is not in 0..=1000000"),
        ("token-count-to-move", "-1", "-1 is not in 0..=1000000"),
        ("lease-ms", "499", "499 is not in 500..=60000"),
        ("partitions", "0", "0 is not in 1..=64"),
        ("partitions", "65", "65 is not in 1..=64"),
        ("outbox-max", "0", "0 is not in 1..18446744073709551615"),
        ("max-connections", "0", "0 is not in 1..=1000000"),
        ("request-buffer-bytes", "65535", "65535 is not in 65536..=17179869184"),
        ("max-streams", "1000001", "1000001 is not in 0..=1000000"),
        ("max-long-polls", "1000001", "1000001 is not in 0..=1000000"),
        ("max-held-per-ticket", "0", "0 is not in 1..=1000"),
        ("challenge-bits", "25", "25 is not in 1..=24"),
        ("history-days", "367", "367 is not in 0..=366"),
        ("country-header", "cf ipcountry", "must be the name of a header, such as cf-ipcountry"),
        ("identity", "oidc", "must be open or jwt"),
        (
            "identity-jwks",
            "https://user:password@login.example/jwks",
            "must be the http:// or https:// address of a JSON Web Key Set without user and password, or a file",
        ),
        (
            "public-url",
            "https://wait.example/room",
            "must be an http:// or https:// address without a path, such as https://wait.example.com",
        ),
        (
            "cors-origins",
            "https://shop.example/",
            "must be * or origins without a path, such as https://shop.example, separated by commas",
        ),
        ("max-cached-lines", "0", "0 is not in 1..=1000000"),
        ("drain-ms", "300001", "300001 is not in 0..=300000"),
        (
            "log",
            "daegi=loud",
            "is no log filter: error parsing level filter: expected one of \"off\", \"error\", \"warn\", \"info\", \"debug\", \"trace\", or a number 0-5",
        ),
        ("log-format", "xml", "must be text or json"),
        ("demo", "please", "must be true or false"),
        (
            "topic-item-changed",
            "items, please",
            "must be 1 to 245 of A-Z a-z 0-9 . _ - and not only dots",
        ),
        (
            "topic-token-closed",
            "item.changed.dlq",
            "must not be the name of another topic, nor of dead letters",
        ),
        ("seed-items", "/", "is not a file"),
        (
            "seed-items",
            "/no/such/file",
            "is no file that can be read: No such file or directory (os error 2)",
        ),
    ] {
        let variable = format!("DAEGI_{}", option.replace('-', "_").to_uppercase());
        let expected = format!("--{option} ({variable}): {reason}");
        let by_env = config_error(Role::AllInOne, &[], &[(&variable, value)]);
        assert_eq!(by_env, expected, "{variable}={value}");
        let by_arg = config_error(Role::AllInOne, &[&format!("--{option}={value}")], &[]);
        assert_eq!(by_arg, expected, "--{option}={value}");
    }
}

#[test]
fn the_demo_is_a_switch_of_the_all_in_one_and_needs_kafka() {
    let demo = |args: &[&str], env| parse(Role::AllInOne, args, env).unwrap().demo;
    assert!(demo(&["--demo"], &[]));
    assert!(demo(&[], &[("DAEGI_DEMO", "true")]));
    assert!(!demo(&["--demo=false"], &[("DAEGI_DEMO", "true")]));
    let line = config_error(Role::AllInOne, &["--demo", "--kafka", "off"], &[]);
    assert_eq!(line, "--demo (DAEGI_DEMO): moves over Kafka, and --kafka is off");
    for role in [Role::Api, Role::Consumer, Role::Scheduler] {
        let line = config_error(role, &["--store=redis://a"], &[("DAEGI_DEMO", "true")]);
        let binary = role.binary();
        let says = format!("is for daegi, all roles in one process, not {binary}");
        assert_eq!(line, format!("--demo (DAEGI_DEMO): {says}"));
    }
}

#[test]
fn an_option_without_its_value_is_rejected() {
    let line = config_error(Role::AllInOne, &["--tick-ms"], &[]);
    assert_eq!(line, "--tick-ms (DAEGI_TICK_MS): needs a value");
}

#[test]
fn help_and_version_are_printed_and_are_not_errors() {
    let Ok(ParsedArgs::Print(help)) = Config::parse(Role::Api, ["--help".into()], []) else {
        panic!("no help");
    };
    for part in ["daegi-api", "--tick-ms <MS>", "[env: DAEGI_TICK_MS]", "[default: 1000]"] {
        assert!(help.contains(part), "{part} is missing in\n{help}");
    }
    assert!(!help.contains("DAEGI_HELP"), "{help}");
    let Ok(ParsedArgs::Print(version)) = Config::parse(Role::Api, ["--version".into()], []) else {
        panic!("no version");
    };
    assert_eq!(version.trim(), concat!("daegi-api ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_ticket_age_is_a_day_by_default_and_at_least_an_hour() {
    let number = Number::base_at(1_800_000_000_000);
    let at = |hours: u64| number.issued_at_ms() + hours * 3_600_000;
    let keys = |age: &str| {
        let env = [("DAEGI_TICKET_MAX_AGE", age)];
        parse(Role::AllInOne, &[], if age.is_empty() { &[] } else { &env })
            .unwrap()
            .secrets
            .ticket_keys
    };
    for (age, hours) in [("", 24), ("1h", 1), ("7d", 168)] {
        assert!(!keys(age).is_too_old(number, at(hours + 1)), "{age}: 1 h for the counter's lag");
        assert!(keys(age).is_too_old(number, at(hours + 1) + 1), "{age}");
    }
    for (bad, why) in
        [("59m", "must be at least 1h"), ("1", "must be a duration"), ("-1h", "must be")]
    {
        let error = parse(Role::AllInOne, &[], &[("DAEGI_TICKET_MAX_AGE", bad)]).unwrap_err();
        assert!(error.to_string().contains(why), "{bad}: {error}");
    }
}

#[test]
fn a_widget_has_the_addresses_of_its_provider_and_hides_its_secret() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "0x-secret\n").unwrap();
    let file = file.path().to_str().unwrap();
    let args = ["--widget-site-key=site", "--widget-provider=hcaptcha"];
    let config = parse(Role::AllInOne, &args, &[("DAEGI_WIDGET_SECRET_FILE", file)]).unwrap();
    let widget = config.widget.as_ref().unwrap();
    assert_eq!(widget.secret.reveal(), "0x-secret");
    assert_eq!(widget.verify_url, "https://api.hcaptcha.com/siteverify");
    assert_eq!(widget.page_sources(), "https://hcaptcha.com https://*.hcaptcha.com");
    assert!(!format!("{config:?}").contains("0x-secret"));
    let args = ["--widget-site-key=site", "--widget-secret=s", "--widget-script-url=https://a:1/b"];
    let widget = parse(Role::AllInOne, &args, &[]).unwrap().widget.unwrap();
    let verify = "https://challenges.cloudflare.com/turnstile/v0/siteverify";
    assert_eq!(
        (widget.verify_url.to_string(), widget.page_sources()),
        (verify.into(), "https://a:1".into())
    );
}

#[test]
fn an_incomplete_widget_and_the_proxy_protocol_without_proxies_are_refused() {
    for (args, says) in [
        (&["--widget-site-key=site"][..], "also needs --widget-secret or --widget-secret-file"),
        (&["--widget-secret=s"], "also needs --widget-site-key"),
        (&["--widget-provider=recaptcha"], "must be turnstile or hcaptcha"),
        (&["--proxy-protocol"], "needs the networks of the proxies in --trusted-proxies"),
    ] {
        let line = config_error(Role::AllInOne, args, &[]);
        assert!(line.ends_with(says), "{line}");
    }
}
