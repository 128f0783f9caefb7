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
use crate::{rlimit, telemetry};

/// Exit code after a second signal, by the convention of shells: 128 + SIGINT.
const EXIT_SIGNALLED: u8 = 130;

/// Time after the drain deadline for the last steps, such as releasing the lease.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum time between "not ready" and closed listeners.
const MAX_READINESS_DELAY: Duration = Duration::from_secs(1);

/// Marks an error as caused by the configuration, so that the process exits with 64 and supervisors
/// need not retry.
#[derive(Debug, thiserror::Error)]
#[error("invalid configuration")]
struct ConfigurationError;

/// Wraps an error that ends a service; `misconfigured` if only another configuration can help.
pub fn startup_error(error: impl Into<anyhow::Error>, misconfigured: bool) -> anyhow::Error {
    let error = error.into();
    if misconfigured { error.context(ConfigurationError) } else { error }
}

/// Returns a unique name of this process: host, process id and a random number.
#[must_use]
pub fn process_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.unwrap_or_else(|_| "replica".into());
    let (pid, random) = (std::process::id(), uuid::Uuid::new_v4().as_fields().0);
    format!("{}-{pid}-{random:08x}", host.trim())
}

/// Runs a service until it ends, fails or receives a signal.
///
/// Exits with 0 after an orderly shutdown, 1 with one line on stderr after a failure, 64 for an
/// invalid configuration, and 130 immediately after a second signal.
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
    rlimit::raise_nofile_limit();
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let exit = runtime.block_on(run_until_signal(config, service));
            // A blocking call that hangs must not delay the exit.
            runtime.shutdown_background();
            exit
        }
        Err(error) => failure(role, &error.into()),
    }
}

fn healthcheck(config: &Config) -> ExitCode {
    match health::probe(config.internal_addr) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(config.role, &error.into()),
    }
}

async fn run_until_signal<F, Fut>(config: Config, service: F) -> ExitCode
where
    F: FnOnce(Config, Shutdown) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let role = config.role;
    let shutdown = Shutdown::new().with_readiness_delay(readiness_delay(&config));
    let second_signal = match shutdown.listen_for_signals() {
        Ok(second_signal) => second_signal,
        Err(error) => return failure(role, &error.into()),
    };
    tokio::select! {
        ended = run_service(config, shutdown, service) => match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failure(role, &error),
        },
        () = second_signal => ExitCode::from(EXIT_SIGNALLED),
    }
}

async fn run_service<F, Fut>(config: Config, shutdown: Shutdown, service: F) -> anyhow::Result<()>
where
    F: FnOnce(Config, Shutdown) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let deadline = config.drain + CLEANUP_TIMEOUT;
    shutdown.spawn("metrics upkeep", telemetry::upkeep(shutdown.clone()));
    let ended = service(config, shutdown.clone()).await;
    // A service may return without a shutdown; its tasks must end then, too.
    shutdown.stop_now();
    let settled = shutdown.wait(deadline).await;
    ended?;
    settled?;
    anyhow::ensure!(!shutdown.has_failed(), "a component of the process failed");
    Ok(())
}

/// Returns the time between "not ready" and closed listeners. It is 0 for the all-in-one, which has
/// no load balancer in front.
fn readiness_delay(config: &Config) -> Duration {
    match config.role {
        Role::AllInOne => Duration::ZERO,
        Role::Api | Role::Consumer | Role::Scheduler => {
            (config.drain / 10).min(MAX_READINESS_DELAY)
        }
    }
}

#[expect(clippy::print_stderr, reason = "the exit reason is printed whatever the log filter")]
fn failure(role: Role, error: &anyhow::Error) -> ExitCode {
    eprintln!("{}: {error:#}", role.binary());
    let misconfigured = error.downcast_ref::<ConfigurationError>().is_some();
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
    async fn a_service_that_ends_stops_its_tasks() {
        let ended = run_service(config(), Shutdown::new(), async |_, shutdown: Shutdown| {
            let token = shutdown.token().clone();
            shutdown.spawn("component", async move { token.cancelled().await });
            Ok(())
        });
        ended.await.unwrap();
    }

    #[tokio::test]
    async fn a_component_that_panics_makes_the_process_fail() {
        let ended = run_service(config(), Shutdown::new(), async |_, shutdown: Shutdown| {
            shutdown.spawn("component", async { panic!("on purpose") });
            shutdown.token().cancelled().await;
            Ok(())
        });
        assert_eq!(ended.await.unwrap_err().to_string(), "a component of the process failed");
    }
}
