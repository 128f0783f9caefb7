//! `daegi-bench`: measures daegi and, in the same run, the least any program must do for the same work.
//!
//! An absolute rate says more about the machine than about the program. The API scenarios therefore alternate with
//! a baseline handler on the same machine, and their result is the ratio of the medians.
//!
//! | module | content |
//! |---|---|
//! | [`api`] | seven scenarios: cold start, polls, joins, admissions, openings, open connections, the gate |
//! | [`kafka`] | the rate of the relay, as an order of magnitude |
//! | [`measurement`] | one measured value with its target |
//! | [`report`] | Markdown table, JSON and SVG of all measurements |

mod api;
mod kafka;
mod measurement;
mod report;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "daegi-bench", about = "Measures daegi against a baseline on the same machine.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Cold start, polls, joins, admissions, openings and open connections.
    Api(api::Options),
    /// The rate of the relay with a real broker.
    Kafka(kafka::Options),
    /// Serves the baseline handler; started by `api` as a child process.
    #[command(hide = true)]
    Baseline(api::Baseline),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    daegi_runtime::rlimit::raise_nofile_limit();
    match Cli::parse().command {
        Command::Api(options) => api::run(options).await,
        Command::Kafka(options) => kafka::run(options).await,
        Command::Baseline(baseline) => baseline.serve().await,
    }
}
