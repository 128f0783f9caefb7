//! `daegi-scheduler`: one replica of the scheduler fleet.

use std::process::ExitCode;

use daegi_runtime::{Config, Role, Shutdown, process};

fn main() -> ExitCode {
    process::run(Role::Scheduler, serve)
}

async fn serve(config: Config, shutdown: Shutdown) -> anyhow::Result<()> {
    let listener = daegi_scheduler::bind(&config).await?;
    daegi_scheduler::run(config, listener, shutdown).await?;
    Ok(())
}
