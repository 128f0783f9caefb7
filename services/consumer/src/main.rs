//! `daegi-consumer`: one replica of the consumer fleet.

use std::process::ExitCode;

use daegi_runtime::{Config, Role, Shutdown, http, process};

fn main() -> ExitCode {
    process::run(Role::Consumer, serve)
}

async fn serve(config: Config, shutdown: Shutdown) -> anyhow::Result<()> {
    let listener = http::bind(config.internal_addr, "internal-addr").await?;
    daegi_consumer::run(config, listener, shutdown).await.map_err(|error| {
        let misconfigured = error.is_misconfigured();
        process::fatal(error, misconfigured)
    })
}
