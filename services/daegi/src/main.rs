//! `daegi`: every role in one process, `daegi verify` and `daegi simulate`.

use std::process::ExitCode;

use daegi::{Listeners, simulate, verify};
use daegi_runtime::{Config, Role, Shutdown, process};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(command) if command == verify::COMMAND => verify::run(args),
        Some(command) if command == simulate::COMMAND => simulate::run(args),
        _ => process::run(Role::AllInOne, serve),
    }
}

async fn serve(config: Config, shutdown: Shutdown) -> anyhow::Result<()> {
    let listeners = Listeners::bind(&config).await?;
    daegi::run(config, listeners, shutdown).await.map_err(|error| {
        let misconfigured = error.is_misconfigured();
        process::startup_error(error, misconfigured)
    })
}
