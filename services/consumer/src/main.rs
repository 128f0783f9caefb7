//! `daegi-consumer`: one replica of the consumer fleet.

use std::process::ExitCode;

use daegi_consumer::Listeners;
use daegi_runtime::{Config, Role, Shutdown, process};

fn main() -> ExitCode {
    process::run(Role::Consumer, serve)
}

async fn serve(config: Config, shutdown: Shutdown) -> anyhow::Result<()> {
    let listeners = Listeners::bind_health(&config).await?;
    daegi_consumer::run(config, listeners, shutdown).await.map_err(|error| {
        let misconfigured = error.is_misconfigured();
        process::startup_error(error, misconfigured)
    })
}
