//! `daegi-api`: answers people and the order service, as many of it as needed, on one Redis.

use std::process::ExitCode;

use daegi_api::Listeners;
use daegi_runtime::{Config, Role, Shutdown, process};

fn main() -> ExitCode {
    process::run(Role::Api, serve)
}

async fn serve(config: Config, shutdown: Shutdown) -> anyhow::Result<()> {
    let listeners = Listeners::bind(&config).await?;
    let ended = daegi_api::run(config, listeners, shutdown).await;
    ended.map_err(|error| process::fatal(error.clone(), error.is_misconfigured()))
}
