//! The relay against a bare producer, the item sync against a bare consumer.

mod bare;
mod item_sync;
mod message;
mod relay;

use std::path::PathBuf;

use clap::Args;

use crate::duel::{Duel, Round};
use crate::report::{self, progress};
use crate::stage::Stage;
use item_sync::Changes;
use relay::Admissions;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How many people are let in, and so how many events the relay has to publish.
    #[arg(long, default_value_t = 200_000)]
    activations: usize,
    /// How many events of items there are to read.
    #[arg(long, default_value_t = 200_000)]
    changes: usize,
    /// How many rounds count; one more comes before them, to warm everything up.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only the duels whose name begins with this.
    #[arg(long, default_value = "")]
    only: String,
    /// Write everything that was measured to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
enum Contest {
    Relay(Admissions),
    ItemSync(Changes),
}

impl Contest {
    const ALL: [Self; 4] = [
        Self::Relay(Admissions::ManyLines),
        Self::Relay(Admissions::OneLine),
        Self::ItemSync(Changes::Sale),
        Self::ItemSync(Changes::Catalogue),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Relay(Admissions::ManyLines) => "relay, 24 lines",
            Self::Relay(Admissions::OneLine) => "relay, one line",
            Self::ItemSync(Changes::Sale) => "item sync, a sale",
            Self::ItemSync(Changes::Catalogue) => "item sync, a catalogue",
        }
    }

    /// What issue and documents ask for.
    fn goal(self) -> f64 {
        match self {
            Self::Relay(_) => 0.5,
            Self::ItemSync(_) => 0.3,
        }
    }

    async fn round(self, stage: &Stage, options: &Options) -> anyhow::Result<Round> {
        match self {
            Self::Relay(admissions) => relay::round(stage, admissions, options.activations).await,
            Self::ItemSync(changes) => item_sync::round(stage, changes, options.changes).await,
        }
    }
}

pub(crate) async fn run(options: Options) -> anyhow::Result<()> {
    progress("starting Redis and Kafka");
    let stage = Stage::set_up().await?;
    let mut duels = Vec::new();
    for contest in Contest::ALL.into_iter().filter(|one| one.name().starts_with(&options.only)) {
        duels.push(fight(contest, &stage, &options).await?);
    }
    report::print(&duels);
    options.json.as_deref().map_or(Ok(()), |path| report::write(path, &duels))
}

async fn fight(contest: Contest, stage: &Stage, options: &Options) -> anyhow::Result<Duel> {
    let name = contest.name();
    let mut rounds = Vec::new();
    for number in 0..=options.rounds {
        let round = contest.round(stage, options).await?;
        let ((daegi, bare), ratio) = (round.rates(), round.ratio());
        let which = if number == 0 { "warming up".into() } else { format!("round {number}") };
        progress(&format!("{name}, {which}: {daegi:.0}/s of {bare:.0}/s = {ratio:.2}"));
        if number > 0 {
            rounds.push(round);
        }
    }
    Ok(Duel { name, goal: contest.goal(), rounds })
}
