//! The life of a process from `main` to its exit code.
//!
//! ```no_run
//! use daegi_runtime::{Config, Role, Shutdown, process};
//!
//! async fn run(config: Config, shutdown: Shutdown) -> anyhow::Result<()> {
//!     shutdown.token().cancelled().await;
//!     Ok(())
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     process::run(Role::Api, run)
//! }
//! ```

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use crate::config::{self, Config, EXIT_USAGE, Role};
use crate::health;
use crate::shutdown::Shutdown;
use crate::{descriptors, telemetry};

/// What the shell convention says about a process that a signal ended: 128 + SIGINT.
const EXIT_AT_ONCE: u8 = 130;

/// Time after the drain deadline for what comes last, such as giving back the lease.
const SETTLE: Duration = Duration::from_secs(2);

/// The longest time between "not ready" and closed listeners.
const MAX_LEAD: Duration = Duration::from_secs(1);

/// Marks an error as the fault of the configuration, so that the process exits with 64 and
/// whoever started it does not try again in vain.
#[derive(Debug, thiserror::Error)]
#[error("the configuration does not fit")]
struct Misconfigured;

/// An error that ends a service; `misconfigured` if only another configuration can help.
pub fn fatal(error: impl Into<anyhow::Error>, misconfigured: bool) -> anyhow::Error {
    let error = error.into();
    if misconfigured { error.context(Misconfigured) } else { error }
}

/// A name for this process that no other one has: host, process and a random number.
#[must_use]
pub fn replica_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.unwrap_or_else(|_| "replica".into());
    let (pid, random) = (std::process::id(), uuid::Uuid::new_v4().as_fields().0);
    format!("{}-{pid}-{random:08x}", host.trim())
}

/// Runs a service until it ends, fails or is told to stop, and says how it went.
///
/// Exits with 0 after an orderly end, 1 with one line on stderr after a failure, 64 for a bad
/// configuration, and 130 at once at the second signal.
pub fn run<F, Fut>(role: Role, service: F) -> ExitCode
where
    F: FnOnce(Config, Shutdown) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let config = match config::load(role) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    if config.healthcheck {
        return healthcheck(&config);
    }
    telemetry::init(&config);
    descriptors::raise();
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let exit = runtime.block_on(until_stopped(config, service));
            // A blocking call that hangs must not keep a process that has said goodbye.
            runtime.shutdown_background();
            exit
        }
        Err(error) => failure(role, &error.into()),
    }
}

fn healthcheck(config: &Config) -> ExitCode {
    match health::ask(config.internal_addr) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(config.role, &error.into()),
    }
}

async fn until_stopped<F, Fut>(config: Config, service: F) -> ExitCode
where
    F: FnOnce(Config, Shutdown) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let role = config.role;
    let shutdown = Shutdown::new().with_lead(lead(&config));
    let second_signal = match shutdown.on_signals() {
        Ok(second_signal) => second_signal,
        Err(error) => return failure(role, &error.into()),
    };
    tokio::select! {
        ended = live(config, shutdown, service) => match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failure(role, &error),
        },
        () = second_signal => ExitCode::from(EXIT_AT_ONCE),
    }
}

async fn live<F, Fut>(config: Config, shutdown: Shutdown, service: F) -> anyhow::Result<()>
where
    F: FnOnce(Config, Shutdown) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let deadline = config.drain + SETTLE;
    shutdown.spawn("metrics upkeep", telemetry::upkeep(shutdown.clone()));
    let ended = service(config, shutdown.clone()).await;
    // A service may also end by itself; what it spawned ends with it.
    shutdown.now();
    let settled = shutdown.wait(deadline).await;
    ended?;
    settled?;
    anyhow::ensure!(!shutdown.has_failed(), "a part of the process died");
    Ok(())
}

/// No balancer stands in front of the all-in-one, so nobody waits for one there.
fn lead(config: &Config) -> Duration {
    match config.role {
        Role::AllInOne => Duration::ZERO,
        Role::Api | Role::Consumer | Role::Scheduler => (config.drain / 10).min(MAX_LEAD),
    }
}

#[expect(clippy::print_stderr, reason = "the last word of a process, whatever its log filter")]
fn failure(role: Role, error: &anyhow::Error) -> ExitCode {
    eprintln!("{}: {error:#}", role.binary());
    let misconfigured = error.downcast_ref::<Misconfigured>().is_some();
    if misconfigured { ExitCode::from(EXIT_USAGE) } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let parsed = Config::parse(Role::AllInOne, [], []).unwrap();
        parsed.into_config().unwrap()
    }

    #[tokio::test]
    async fn a_service_that_ends_takes_its_parts_with_it() {
        let ended = live(config(), Shutdown::new(), async |_, shutdown: Shutdown| {
            let token = shutdown.token().clone();
            shutdown.spawn("part", async move { token.cancelled().await });
            Ok(())
        });
        ended.await.unwrap();
    }

    #[tokio::test]
    async fn a_part_that_dies_makes_the_process_fail() {
        let ended = live(config(), Shutdown::new(), async |_, shutdown: Shutdown| {
            shutdown.spawn("part", async { panic!("on purpose") });
            shutdown.token().cancelled().await;
            Ok(())
        });
        assert_eq!(ended.await.unwrap_err().to_string(), "a part of the process died");
    }
}
