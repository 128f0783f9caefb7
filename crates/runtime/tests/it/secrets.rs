//! Secrets that each role requires; no error repeats a secret.

use std::io::Write;

use daegi_runtime::{Role, StoreConfig};

use crate::support::{PEM, SECRET_HEX, config_error, parse};

const STORE: (&str, &str) = ("DAEGI_STORE", "redis://localhost");
const ADMIN: (&str, &str) = ("DAEGI_ADMIN_TOKEN", "hunter2hunter2hunter2");
const PASS: (&str, &str) = ("DAEGI_PASS_KEY", PEM);

fn ticket() -> String {
    format!("1:{SECRET_HEX}")
}

#[test]
fn a_fleet_role_refuses_to_start_without_its_secrets_and_its_store() {
    let ticket = ticket();
    let ticket = ("DAEGI_TICKET_SECRETS", ticket.as_str());
    let api = |env: &[_]| config_error(Role::Api, &[], env);
    let scheduler = |env: &[_]| config_error(Role::Scheduler, &[], env);
    assert_eq!(api(&[ticket, PASS]), "daegi-api needs --store (DAEGI_STORE)");
    assert_eq!(api(&[STORE, PASS]), "daegi-api needs --ticket-secrets (DAEGI_TICKET_SECRETS)");
    assert_eq!(api(&[STORE, ticket]), "daegi-api needs --pass-key (DAEGI_PASS_KEY)");
    assert_eq!(
        scheduler(&[STORE, ticket]),
        "daegi-scheduler needs --admin-token (DAEGI_ADMIN_TOKEN)"
    );
    assert_eq!(
        scheduler(&[STORE, ADMIN]),
        "daegi-scheduler needs --ticket-secrets (DAEGI_TICKET_SECRETS)"
    );
}

#[test]
fn a_fleet_role_starts_with_what_it_needs() {
    let ticket = ticket();
    let ticket = ("DAEGI_TICKET_SECRETS", ticket.as_str());
    for (role, env) in [
        (Role::Api, vec![STORE, ticket, PASS]),
        (Role::Scheduler, vec![STORE, ticket, ADMIN]),
        (Role::Consumer, vec![STORE, ticket]),
    ] {
        let config = parse(role, &[], &env).unwrap();
        assert_eq!(config.secrets.generated, Vec::<&str>::new(), "{role:?}");
    }
}

#[test]
fn a_fleet_role_refuses_the_memory_store() {
    let line = config_error(Role::Consumer, &["--store", "memory"], &[]);
    assert_eq!(
        line,
        "--store (DAEGI_STORE): daegi-consumer shares its lines with others and needs redis://"
    );
}

#[test]
fn a_fleet_role_refuses_the_embedded_broker() {
    let ticket = ticket();
    let env = [STORE, ADMIN, ("DAEGI_TICKET_SECRETS", ticket.as_str()), PASS];
    for role in [Role::Api, Role::Consumer, Role::Scheduler] {
        let line = config_error(role, &["--kafka", "embedded"], &env);
        assert!(line.starts_with("--kafka (DAEGI_KAFKA): daegi-"), "{line}");
        assert!(line.ends_with("shares its events with others and needs host:port,…"), "{line}");
    }
}

#[test]
fn the_all_in_one_generates_missing_secrets_and_lists_them() {
    let bare = parse(Role::AllInOne, &[], &[]).unwrap();
    assert_eq!(bare.secrets.generated, ["admin-token", "ticket-secrets", "pass-key"]);
    let given = parse(Role::AllInOne, &[], &[ADMIN, PASS]).unwrap();
    assert_eq!(given.secrets.generated, ["ticket-secrets"]);
    assert!(given.secrets.admin_token.matches(ADMIN.1));
}

#[test]
fn a_pass_key_is_text_or_a_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(PEM.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    let on_one_line = PEM.replace('\n', "\\n");
    for value in [PEM, path, &on_one_line] {
        let config = parse(Role::AllInOne, &["--pass-key", value], &[]).unwrap();
        assert_eq!(config.secrets.generated, ["admin-token", "ticket-secrets"]);
    }
}

#[test]
fn a_rejected_secret_is_not_repeated() {
    let broken_pem = PEM.replace("END PRIVATE", "END");
    for (option, value, leak) in [
        ("admin-token", "hunter2", "hunter2"),
        ("admin-token", "hunter2 hunter2 hunter2", "hunter2"),
        ("ticket-secrets", SECRET_HEX, "c0ffee"),
        ("ticket-secrets", "1:c0ffee", "c0ffee"),
        ("ticket-secrets", "1:c0ffeeXc0ffeeXc0ffeeXc0ffeeXc0ffeeXc0ffeeX", "c0ffee"),
        ("pass-key", "MC4CAQAwBQYDK2VwBCIEINTuctv5", "MC4CAQ"),
        ("pass-key", &broken_pem, "MC4CAQ"),
        ("store", "redis+sentinel://user:hunter2@a", "hunter2"),
        ("store", "postgres://user:hunter2@a", "hunter2"),
    ] {
        let line = config_error(Role::AllInOne, &[&format!("--{option}={value}")], &[]);
        assert!(!line.contains(leak), "{line}");
        assert!(line.starts_with(&format!("--{option} (DAEGI_")), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn a_secret_without_its_option_is_not_repeated() {
    for args in [&["--admin-token=", "hunter2hunter2"][..], &["hunter2"], &["--hunter2=hunter2"]] {
        let line = config_error(Role::AllInOne, args, &[]);
        assert!(!line.contains("hunter2"), "{line}");
    }
}

#[test]
fn debug_shows_no_secret() {
    let ticket = ticket();
    let env = [
        ("DAEGI_STORE", "redis://user:p4ssw0rd@localhost:6379/1"),
        ("DAEGI_TICKET_SECRETS", ticket.as_str()),
        ADMIN,
        PASS,
    ];
    let config = parse(Role::AllInOne, &[], &env).unwrap();
    assert_eq!(config.store.redacted(), "redis://localhost:6379/1");
    let StoreConfig::Redis(url) = &config.store else {
        panic!("not redis");
    };
    assert!(url.contains("p4ssw0rd"));
    let shown = format!("{config:?}");
    for secret in ["hunter2", "p4ssw0rd", "c0ffee", "192, 255, 238", "MC4CAQ", "212, 238"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[test]
fn every_redis_topology_is_accepted_and_shown_without_its_password() {
    for (address, shown) in [
        ("redis+sentinel://:p4ss@a:1,b:2/main", "redis+sentinel://a:1,b:2/main"),
        ("redis+cluster://u:p4ss@a,b:7001", "redis+cluster://a,b:7001"),
        ("redis+cluster://a:7000", "redis+cluster://a:7000"),
    ] {
        let config = parse(Role::AllInOne, &["--store", address], &[]).unwrap();
        assert_eq!(config.store, StoreConfig::Redis(address.into()));
        assert_eq!(config.store.redacted(), shown);
    }
}
