//! `daegi-scheduler`: one replica of the scheduler fleet.

use std::process::ExitCode;

use daegi_runtime::{Config, Role, Shutdown, process};
use daegi_scheduler::Listeners;

fn main() -> ExitCode {
    process::run(Role::Scheduler, serve)
}

async fn serve(config: Config, shutdown: Shutdown) -> anyhow::Result<()> {
    let listeners = Listeners::bind_internal(&config).await?;
    daegi_scheduler::run(config, listeners, shutdown).await.map_err(|error| {
        let misconfigured = error.is_misconfigured();
        process::startup_error(error, misconfigured)
    })
}
