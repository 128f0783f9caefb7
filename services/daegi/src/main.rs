//! `daegi`: every role in one process, and `daegi verify`.

use std::process::ExitCode;

use daegi::{Listeners, verify};
use daegi_runtime::{Config, Role, Shutdown, process};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|command| command == verify::COMMAND) {
        return verify::run(args);
    }
    process::run(Role::AllInOne, serve)
}

async fn serve(config: Config, shutdown: Shutdown) -> anyhow::Result<()> {
    let listeners = Listeners::bind(&config).await?;
    daegi::run(config, listeners, shutdown).await.map_err(|error| {
        let misconfigured = error.is_misconfigured();
        process::startup_error(error, misconfigured)
    })
}
