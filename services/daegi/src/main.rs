//! `daegi`: every role in one process.

use std::process::ExitCode;

use daegi::Listeners;
use daegi_runtime::{Config, Role, Shutdown, process};

fn main() -> ExitCode {
    process::run(Role::AllInOne, serve)
}

async fn serve(config: Config, shutdown: Shutdown) -> anyhow::Result<()> {
    let listeners = Listeners::bind(&config).await?;
    daegi::run(config, listeners, shutdown).await.map_err(|error| {
        let misconfigured = error.is_misconfigured();
        process::startup_error(error, misconfigured)
    })
}
