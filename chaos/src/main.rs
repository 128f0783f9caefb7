//! `daegi-chaos run` breaks a fleet and judges what happened; `daegi-chaos judge` judges a history
//! again.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use daegi_chaos::nemesis::{self, Planned};
use daegi_chaos::run::{Options, SIZE, Servers, Shape, picture_of, run};
use daegi_chaos::{History, check, picture, soak};
use daegi_testkit::Kafka;

/// Breaks a fleet while people wait, and judges what happened.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Runs a fleet under faults, draws it and judges it.
    Run {
        /// Brings the same faults and the same people again.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How long faults go on.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// How many people come.
        #[arg(long, default_value_t = 1_500)]
        people: usize,
        /// How Redis is run. Where it has replicas, masters fail over, and nothing else breaks.
        #[arg(long, value_enum, default_value_t = Shape::One)]
        redis: Shape,
        /// Where the history, the picture and the logs go.
        #[arg(long, default_value = "target/chaos")]
        out: PathBuf,
    },
    /// Tells which faults a seed brings.
    Plan {
        /// The seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How long faults go on.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Lets people come and go for a long time, and judges whether anything grows.
    Soak {
        /// How long.
        #[arg(long, default_value_t = 10.0)]
        minutes: f64,
        /// How many requests per second.
        #[arg(long, default_value_t = 2_000.0)]
        rate: f64,
        /// Where the samples, the picture and the logs go.
        #[arg(long, default_value = "target/soak")]
        out: PathBuf,
    },
    /// Judges a history again, and draws it beside it.
    Judge {
        /// The `history.jsonl` of a run.
        history: PathBuf,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let history = match Args::parse().what {
        What::Run { seed, seconds, people, redis, out } => {
            let shape = redis.to_possible_value().filter(|_| redis != Shape::One);
            let shape = shape.map_or(String::new(), |shape| format!("{}-", shape.get_name()));
            let out = out.join(format!("{shape}seed-{seed}"));
            let (redis, kafka) = (Servers::start(redis).await?, Kafka::start().await?);
            run(&Options { seed, seconds, people, out }, redis, kafka).await?
        }
        What::Plan { seed, seconds } => return Ok(tell(&nemesis::plan(seed, seconds, SIZE))),
        What::Soak { minutes, rate, out } => return soaked(minutes, rate, &out).await,
        What::Judge { history } => history,
    };
    judge(&history)
}

#[expect(clippy::print_stdout, reason = "the result of the program")]
fn tell(plan: &[Vec<Planned>; 2]) -> ExitCode {
    for sequence in plan {
        for Planned { after, lasts, what, target } in sequence {
            println!("after {after:?}: {} {target:?} for {lasts:?}", what.name());
        }
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "the result of the program")]
async fn soaked(minutes: f64, rate: f64, out: &Path) -> anyhow::Result<ExitCode> {
    let (redis, kafka) = (Servers::start(Shape::One).await?, Kafka::start().await?);
    let length = Duration::from_secs_f64(minutes * 60.0);
    let findings = soak::run(length, rate, out, redis, kafka).await?;
    println!("{findings}");
    Ok(if findings.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::print_stdout, reason = "the result of the program")]
fn judge(path: &Path) -> anyhow::Result<ExitCode> {
    let history = History::read(BufReader::new(File::open(path)?))?;
    let verdict = check::judge(&history)?;
    let picture = picture_of(path);
    std::fs::write(&picture, picture::draw(&history, &verdict))?;
    println!("{verdict}");
    println!("history: {}\npicture: {}", path.display(), picture.display());
    Ok(if verdict.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
