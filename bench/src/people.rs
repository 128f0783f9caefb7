//! What people cost: polls, joins, admissions, open connections, a new pod.
//!
//! A real Redis, a real pod as a process of its own, load from `wrk`. The ceiling is a handler that
//! does nothing but answer JSON of the same size, in a process of its own, under the same load.

mod admissions;
mod arena;
mod bare;
mod callgrind;
mod console;
mod count;
mod ear;
mod gate;
mod joins;
mod latency;
mod line;
mod listeners;
mod moving;
mod newcomer;
mod one_core;
mod polls;
mod redis_side;
mod script_count;
mod script_watch;
mod sizes;
mod streams;
mod wrk;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::figure::{self, Figure};
use crate::report::progress;
use arena::Arena;
pub(crate) use bare::Bare;
use ear::Channel;

/// How many people wait in a long line.
const MILLION: usize = 1_000_000;

/// How many wait in one of middle length, and in a short one.
const HUNDRED_THOUSAND: usize = 100_000;
const THOUSAND: usize = 1_000;

/// Who takes part in a round of load: a long line, one of middle length, a short one, and last the
/// bare handler.
const CONTESTANTS: usize = 4;
const BARE: usize = 3;

/// The order of a round. Each begins once in a while: a machine may be slower after one than after
/// another.
fn turns(round: usize) -> impl Iterator<Item = usize> {
    (0..CONTESTANTS).map(move |turn| (round + turn) % CONTESTANTS)
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How many people wait in the long line.
    #[arg(long, default_value_t = MILLION)]
    pub(crate) people: usize,
    /// How many rounds count. Four contestants take turns to begin.
    #[arg(long, default_value_t = 12)]
    pub(crate) rounds: usize,
    /// How long a round of load lasts, in seconds. Many short rounds tell more than few long ones
    /// on a machine that others use, too.
    #[arg(long, default_value_t = 1)]
    pub(crate) seconds: u32,
    /// Connections that stay open while people listen for news.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) listeners: usize,
    /// Only these, instead of everything; no files are written then.
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Contest>,
    /// Write everything that was measured to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Draw the ratios to this file, as SVG.
    #[arg(long)]
    svg: Option<PathBuf>,
}

/// What can be measured, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Contest {
    Memory,
    Newcomer,
    Polls,
    Latency,
    Listeners,
    Streams,
    Sockets,
    Joins,
    Admissions,
    Sizes,
    Console,
    Count,
}

impl Contest {
    async fn hold(self, arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
        match self {
            Self::Memory => redis_side::memory(arena, options.people).await,
            Self::Newcomer => newcomer::ready(arena, options).await,
            Self::Polls => polls::compare(arena, options).await,
            Self::Latency => latency::at_half_load(arena, options).await,
            Self::Listeners => listeners::hold(arena, options).await,
            Self::Streams => streams::hold(arena, options, Channel::Events).await,
            Self::Sockets => streams::hold(arena, options, Channel::Socket).await,
            Self::Joins => joins::compare(arena, options).await,
            Self::Admissions => admissions::measure(arena, options).await,
            Self::Sizes => sizes::compare(arena, options).await,
            Self::Console => console::watch(arena, options).await,
            Self::Count => count::instructions(arena).await,
        }
    }
}

pub(crate) async fn run(options: Options) -> anyhow::Result<()> {
    wrk::version()?;
    progress("starting Redis, a pod and a bare handler");
    let arena = Arena::set_up().await?;
    let mut figures: Vec<Figure> = Vec::new();
    let held = hold(&arena, &options, &mut figures).await;
    figure::print(&figures);
    held?;
    if options.only.is_empty() {
        write(&options, &figures, &arena.versions().await?)
    } else {
        progress("only a part was measured: no files are written");
        Ok(())
    }
}

/// Everything that is asked for; what was measured before something fails is kept.
async fn hold(arena: &Arena, options: &Options, figures: &mut Vec<Figure>) -> anyhow::Result<()> {
    for contest in Contest::value_variants() {
        if options.only.is_empty() || options.only.contains(contest) {
            let held = contest.hold(arena, options).await;
            figures.extend(held.with_context(|| format!("{contest:?}"))?);
        }
    }
    Ok(())
}

fn write(options: &Options, figures: &[Figure], versions: &Value) -> anyhow::Result<()> {
    if let Some(path) = &options.json {
        figure::write(path, figures, versions)?;
    }
    options.svg.as_deref().map_or(Ok(()), |path| figure::draw(path, figures, versions))
}
