//! TLS, client certificates, users and the documented ACL: what is refused, what the log says, and that a
//! correction works without a restart.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use daegi_domain::Policy;
use daegi_store::{RedisConfig, RedisFiles, RedisStore, SharedStore};
use daegi_testkit::{CertificateAuthority, Redis, RedisAccess, eventually, secured_redis_or_skip};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::support::{PARTITIONS, SETTINGS, START, change, item, users};
use crate::{admin, lease, rules};

const RECOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// The text of all warnings of this thread.
#[derive(Debug, Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Records the warnings of this thread until the guard is dropped.
    fn record() -> (Self, tracing::subscriber::DefaultGuard) {
        let warnings = Self::default();
        let guard = tracing::subscriber::set_default(warnings.clone());
        (warnings, guard)
    }

    fn containing(&self, text: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|line| line.contains(text)).count()
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("daegi")
    }
    fn event(&self, event: &Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{field}={value:?} ");
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

async fn opened(redis: RedisConfig) -> SharedStore {
    let store: SharedStore = Arc::new(RedisStore::open(redis, PARTITIONS, SETTINGS).await.unwrap());
    store.put_item(&change("concert", Policy::default()), START).await.unwrap();
    store
}

async fn join(store: &SharedStore) -> daegi_store::Result<()> {
    store.join(&item("concert"), &users(3), &SETTINGS, START).await.map(drop)
}

/// Waits until calls fail with `reason`, and checks that the log has one line about it.
async fn fails_with(store: &SharedStore, reason: &str) {
    let (warnings, _guard) = Warnings::record();
    for _ in 0..2 {
        eventually(RECOVERY_TIMEOUT, reason, async || {
            let error = join(store).await.unwrap_err();
            assert!(error.is_transient(), "{error}");
            error.to_string().contains(reason)
        })
        .await;
    }
    assert_eq!(warnings.containing(reason), 1, "{warnings:?}");
    assert_eq!(warnings.containing("redis node unavailable"), 1, "{warnings:?}");
}

async fn recovers(store: &SharedStore) {
    eventually(RECOVERY_TIMEOUT, "the store recovers", async || join(store).await.is_ok()).await;
}

async fn fixture() -> Option<(Redis, Arc<RedisAccess>, SharedStore)> {
    let redis = secured_redis_or_skip().await?;
    let (access, store) = (redis.access().unwrap(), opened(redis.config()).await);
    Some((redis, access, store))
}

#[tokio::test]
async fn a_server_of_an_unknown_ca_is_refused_until_the_ca_is_corrected() {
    let Some((mut redis, access, store)) = fixture().await else { return };
    access.write("ca.pem", &CertificateAuthority::new("another CA").unwrap().pem()).unwrap();
    redis.start_again().await.unwrap();
    fails_with(&store, "from an unknown CA").await;
    access.write("ca.pem", &access.authority().pem()).unwrap();
    recovers(&store).await;
}

#[tokio::test]
async fn an_expired_certificate_of_the_server_is_refused_until_it_is_renewed() {
    let Some((mut redis, access, store)) = fixture().await else { return };
    let authority = access.authority();
    access.write_certificate("server", &authority.issue_expired(&["127.0.0.1"]).unwrap()).unwrap();
    redis.start_again_unverified().await.unwrap();
    fails_with(&store, "the server's certificate has expired").await;
    access.write_certificate("server", &authority.issue(&["127.0.0.1"]).unwrap()).unwrap();
    redis.start_again().await.unwrap();
    recovers(&store).await;
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let Some((mut redis, access, store)) = fixture().await else { return };
    let other = access.authority().issue(&["redis.example"]).unwrap();
    access.write_certificate("server", &other).unwrap();
    redis.start_again_unverified().await.unwrap();
    fails_with(&store, "the server's certificate is for another host").await;
}

#[tokio::test]
async fn a_refused_client_certificate_can_be_renewed() {
    let Some((mut redis, access, store)) = fixture().await else { return };
    let authority = access.authority();
    access.write_certificate("client", &authority.issue_expired(&["daegi"]).unwrap()).unwrap();
    redis.start_again().await.unwrap();
    fails_with(&store, "rejects the client certificate").await;
    access.write_certificate("client", &authority.issue(&["daegi"]).unwrap()).unwrap();
    recovers(&store).await;
}

#[tokio::test]
async fn a_missing_client_certificate_is_named() {
    let Some(redis) = secured_redis_or_skip().await else { return };
    let mut config = redis.config();
    config.files = RedisFiles { cert: None, key: None, ..config.files };
    let error = RedisStore::open(config, PARTITIONS, SETTINGS).await.unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("requires a client certificate"),
        "{error}"
    );
}

#[tokio::test]
async fn a_wrong_password_is_refused_until_the_file_is_corrected() {
    let Some((mut redis, access, store)) = fixture().await else { return };
    access.write("password", "wrong").unwrap();
    redis.start_again().await.unwrap();
    fails_with(&store, "redis rejects the user or the password").await;
    access.write("password", daegi_testkit::REDIS_PASSWORD).unwrap();
    recovers(&store).await;
}

#[tokio::test]
async fn open_connections_continue_while_the_password_is_rotated() {
    let Some((redis, access, store)) = fixture().await else { return };
    redis.command::<()>(&["ACL", "SETUSER", "daegi", ">the next one"]).await.unwrap();
    access.write("password", "the next one").unwrap();
    join(&store).await.unwrap();
    let old = format!("<{}", daegi_testkit::REDIS_PASSWORD);
    redis.command::<()>(&["ACL", "SETUSER", "daegi", &old]).await.unwrap();
    join(&store).await.unwrap();
    let killed: u64 = redis.command(&["CLIENT", "KILL", "USER", "daegi"]).await.unwrap();
    assert!(killed > 0);
    recovers(&store).await;
}

#[tokio::test]
async fn a_revoked_user_is_reported_and_served_again_when_permitted() {
    let Some((redis, _access, store)) = fixture().await else { return };
    // Without its rules, the user keeps its connections and may do nothing.
    let (warnings, guard) = Warnings::record();
    redis.command::<()>(&["ACL", "SETUSER", "daegi", "-@all"]).await.unwrap();
    for _ in 0..5 {
        let error = join(&store).await.unwrap_err();
        assert!(
            error.is_transient() && error.to_string().contains("the ACL of redis forbids"),
            "{error}"
        );
    }
    assert_eq!(warnings.containing("redis call forbidden"), 1, "{warnings:?}");
    drop(guard);
    redis.command::<()>(&["ACL", "LOAD"]).await.unwrap();
    recovers(&store).await;

    // Deleting the user closes its connections.
    let (warnings, _guard) = Warnings::record();
    redis.command::<()>(&["ACL", "DELUSER", "daegi"]).await.unwrap();
    eventually(RECOVERY_TIMEOUT, "the user is refused", async || {
        let error = join(&store).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        error.to_string().contains("redis rejects the user")
    })
    .await;
    assert_eq!(warnings.containing("redis rejects the user"), 1, "{warnings:?}");
    redis.command::<()>(&["ACL", "LOAD"]).await.unwrap();
    recovers(&store).await;
}

#[tokio::test]
async fn a_command_that_the_acl_forbids_in_a_script_fails_only_its_calls() {
    let Some((redis, _access, store)) = fixture().await else { return };
    redis.command::<()>(&["ACL", "SETUSER", "daegi", "-zadd"]).await.unwrap();
    let error = join(&store).await.unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("the ACL of redis forbids"),
        "{error}"
    );
    store.settings().await.unwrap();
}

/// The suites of all topologies on a secured server; `make test-tls` runs all others on one.
#[test]
fn the_suites_pass_over_tls_with_the_documented_acl() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(redis) = runtime.block_on(secured_redis_or_skip()) else { return };
    for rule in
        [rules::ALL_TOPOLOGIES, lease::ALL_TOPOLOGIES, admin::ALL_TOPOLOGIES].into_iter().flatten()
    {
        runtime.block_on(redis.command::<()>(&["FLUSHALL"])).unwrap();
        crate::support::run_again_at(redis.config(), *rule);
    }
    let denied: Vec<redis::Value> = runtime.block_on(redis.command(&["ACL", "LOG"])).unwrap();
    assert!(denied.is_empty(), "{denied:?}");
}

/// The commands that the scripts and the client send are exactly those that the ACL permits.
#[test]
fn the_documented_acl_permits_the_commands_of_daegi_and_no_others() {
    /// Commands of the client and of rslock, and those that scripts take as an argument.
    const SENT_BY_THE_CLIENT: &[&str] = &[
        "asking",
        "cluster|slots",
        "del",
        "eval",
        "evalsha",
        "exists",
        "get",
        "hget",
        "hgetall",
        "hmget",
        "hset",
        "info",
        "lrange",
        "pexpire",
        "ping",
        "role",
        "script|load",
        "select",
        "set",
        "smembers",
        "time",
        "xrange",
        "zrange",
        "zrangebyscore",
    ];
    let acl = include_str!("../../../../infra/redis/daegi.acl");
    let permitted: BTreeSet<&str> =
        acl.split_whitespace().filter_map(|word| word.strip_prefix('+')).collect();
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/src/redis/scripts");
    let mut scripts = String::new();
    for entry in [dir.to_owned(), format!("{dir}/prelude")]
        .iter()
        .flat_map(|dir| std::fs::read_dir(dir).unwrap())
    {
        let path = entry.unwrap().path();
        if path.is_file() {
            scripts += &std::fs::read_to_string(path).unwrap();
        }
    }
    let called = scripts.split("call('").skip(1).filter_map(|rest| rest.split('\'').next());
    let as_argument = scripts.split("lookup_users(").skip(1);
    let as_argument = as_argument.filter_map(|rest| rest.split(')').next()?.split('\'').nth(1));
    let used: BTreeSet<String> = called.chain(as_argument).map(str::to_lowercase).collect();
    let used: BTreeSet<&str> =
        used.iter().map(String::as_str).chain(SENT_BY_THE_CLIENT.iter().copied()).collect();
    let missing: Vec<_> = used.difference(&permitted).collect();
    let unused: Vec<_> = permitted.difference(&used).collect();
    assert!(missing.is_empty() && unused.is_empty(), "missing: {missing:?}, unused: {unused:?}");
}

/// Prints how many joins per second one process gets over TLS, relative to those without. The servers take
/// turns, so that other load on the machine affects both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: cargo test --release -p daegi-store --test it -- --ignored --nocapture joins_over_tls"]
async fn joins_over_tls_compared_with_joins_without() {
    const JOINS: usize = 2_000;
    const CONCURRENT: usize = 64;
    const ROUNDS: usize = 9;
    let Some(plain) = daegi_testkit::plain_redis_or_skip().await else { return };
    let Some(secured) = secured_redis_or_skip().await else { return };
    let stores = [opened(plain.config()).await, opened(secured.config()).await];
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let mut seconds = [0.0; 2];
        for (side, store) in stores.iter().enumerate() {
            let started = std::time::Instant::now();
            let workers = (0..CONCURRENT).map(|worker| async move {
                for join in 0..JOINS / CONCURRENT {
                    let who = crate::support::user(&format!("u-{round}-{worker}-{join}"));
                    store.join(&item("concert"), &[who], &SETTINGS, START).await.unwrap();
                }
            });
            futures_util::future::join_all(workers).await;
            seconds[side] = started.elapsed().as_secs_f64();
        }
        ratios.push(seconds[0] / seconds[1]);
        println!("round {round}: {seconds:.3?} s, ratio {:.3}", ratios[round]);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio of joins per second over TLS: {:.2}", ratios[ROUNDS / 2]);
}
