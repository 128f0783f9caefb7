//! `daegi-chaos run` injects faults into a fleet and checks the history; `daegi-chaos judge` checks a recorded one.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use daegi_chaos::nemesis::{self, Planned};
use daegi_chaos::runner::{Options, RedisUnderTest, SIZE, Topology, run, timeline_path};
use daegi_chaos::{History, checker, soak, timeline};
use daegi_testkit::Kafka;

/// Injects faults into a fleet under load and checks its history.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a fleet under faults, draws a timeline and checks the history.
    Run {
        /// Reproduces the same faults and users.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Duration of the faults.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Number of users.
        #[arg(long, default_value_t = 1_500)]
        people: usize,
        /// Redis topology. With replicas, fail-overs are the only faults.
        #[arg(long, value_enum, default_value_t = Topology::One)]
        redis: Topology,
        /// Output directory of history, timeline and logs.
        #[arg(long, default_value = "target/chaos")]
        out: PathBuf,
    },
    /// Prints the faults of a seed.
    Plan {
        /// The seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Duration of the faults.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Runs constant load without faults and checks for growth.
    Soak {
        /// Duration.
        #[arg(long, default_value_t = 10.0)]
        minutes: f64,
        /// Requests per second.
        #[arg(long, default_value_t = 2_000.0)]
        rate: f64,
        /// Output directory of chart and logs.
        #[arg(long, default_value = "target/soak")]
        out: PathBuf,
    },
    /// Checks a recorded history and draws its timeline.
    Judge {
        /// The `history.jsonl` of a run.
        history: PathBuf,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let history = match Args::parse().command {
        Command::Run { seed, seconds, people, redis, out } => {
            let prefix = redis.to_possible_value().filter(|_| redis != Topology::One);
            let prefix = prefix.map_or(String::new(), |prefix| format!("{}-", prefix.get_name()));
            let out = out.join(format!("{prefix}seed-{seed}"));
            let (redis, kafka) = (RedisUnderTest::start(redis).await?, Kafka::start().await?);
            run(&Options { seed, seconds, people, out }, redis, kafka).await?
        }
        Command::Plan { seed, seconds } => {
            return Ok(print_plan(&nemesis::plan(seed, seconds, SIZE)));
        }
        Command::Soak { minutes, rate, out } => return run_soak(minutes, rate, &out).await,
        Command::Judge { history } => history,
    };
    judge(&history)
}

#[expect(clippy::print_stdout, reason = "the result of the program")]
fn print_plan(plan: &[Vec<Planned>; 2]) -> ExitCode {
    for sequence in plan {
        for Planned { after, lasts, what, target } in sequence {
            println!("after {after:?}: {} {target:?} for {lasts:?}", what.name());
        }
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "the result of the program")]
async fn run_soak(minutes: f64, rate: f64, out: &Path) -> anyhow::Result<ExitCode> {
    let (redis, kafka) = (RedisUnderTest::start(Topology::One).await?, Kafka::start().await?);
    let length = Duration::from_secs_f64(minutes * 60.0);
    let report = soak::run(length, rate, out, redis, kafka).await?;
    println!("{report}");
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::print_stdout, reason = "the result of the program")]
fn judge(path: &Path) -> anyhow::Result<ExitCode> {
    let history = History::read(BufReader::new(File::open(path)?))?;
    let verdict = checker::judge(&history)?;
    let timeline = timeline_path(path);
    std::fs::write(&timeline, timeline::draw(&history, &verdict))?;
    println!("{verdict}");
    println!("history: {}\ntimeline: {}", path.display(), timeline.display());
    Ok(if verdict.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
