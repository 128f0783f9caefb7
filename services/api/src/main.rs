//! `daegi-api`: serves clients and order services. Any number of pods share one Redis.

use std::process::ExitCode;

use daegi_api::Listeners;
use daegi_runtime::{Config, Role, Shutdown, process};

fn main() -> ExitCode {
    process::run(Role::Api, serve)
}

async fn serve(config: Config, shutdown: Shutdown) -> anyhow::Result<()> {
    let listeners = Listeners::bind(&config).await?;
    let ended = daegi_api::run(config, listeners, shutdown).await;
    ended.map_err(|error| process::startup_error(error.clone(), error.is_misconfigured()))
}
