//! `daegi-bench`: how fast daegi is, beside what its surroundings could do at best.
//!
//! A figure alone says more about the machine than about the program. So every round measures the
//! real thing and, right after it, its *ceiling*: the least that any program would have to do
//! for the same bytes, on the same machine. What is told is the ratio of the medians.
//!
//! | module | what lives there |
//! |---|---|
//! | [`duel`] | rounds of a contestant against its ceiling, and their medians |
//! | [`report`] | the table for people, the JSON for files |
//! | [`stage`] | a real Redis and a real broker, of this run alone |
//! | [`kafka`] | the relay and the item sync |
//! | [`people`] | polls, joins, admissions, open connections, a new pod |
//! | [`figure`] | a figure, what is asked of it, the table and the picture |

mod duel;
mod figure;
mod kafka;
mod people;
mod report;
mod stage;

use clap::{Parser, Subcommand};

/// Measures daegi against the ceilings of its surroundings.
#[derive(Debug, Parser)]
#[command(name = "daegi-bench")]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The relay against a bare producer, the item sync against a bare consumer.
    Kafka(kafka::Options),
    /// Polls, joins, admissions, open connections, a new pod.
    People(people::Options),
    /// The handler that does nothing, as a process of its own.
    #[command(hide = true)]
    Bare(people::Bare),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    daegi_runtime::descriptors::raise();
    match Cli::parse().what {
        What::Kafka(options) => kafka::run(options).await,
        What::People(options) => people::run(options).await,
        What::Bare(bare) => bare.serve().await,
    }
}
