//! The table for people, the JSON for files.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use crate::duel::{Duel, Round};

/// Says what is going on, to whoever waits.
#[expect(clippy::print_stderr, reason = "the progress of a long run")]
pub(crate) fn progress(words: &str) {
    eprintln!("bench: {words}");
}

/// Prints the table, in the form that documents take over.
#[expect(clippy::print_stdout, reason = "the result of the program")]
pub(crate) fn print(duels: &[Duel]) {
    println!("| | messages | MB | daegi /s | bare /s | ratio | of single rounds | asked for |");
    println!("|---|---|---|---|---|---|---|---|");
    for duel in duels {
        println!("{}", row(duel));
    }
}

fn row(duel: &Duel) -> String {
    let ((daegi, bare), (low, high)) = (duel.rates(), duel.spread());
    let (messages, megabytes) = duel
        .rounds
        .first()
        .map_or((0, 0.0), |round| (round.load.messages, round.load.bytes as f64 / 1e6));
    format!(
        "| {} | {messages} | {megabytes:.1} | {daegi:.0} | {bare:.0} | **{:.2}** | {low:.2}–{high:.2} | {} |",
        duel.name,
        duel.ratio(),
        duel.goal,
    )
}

/// Writes everything that was measured.
pub(crate) fn write(path: &Path, duels: &[Duel]) -> anyhow::Result<()> {
    let all = json!({ "machine": machine(), "duels": duels.iter().map(one).collect::<Vec<_>>() });
    fs::write(path, format!("{all:#}\n")).with_context(|| path.display().to_string())
}

fn one(duel: &Duel) -> Value {
    let ((daegi, bare), (low, high)) = (duel.rates(), duel.spread());
    json!({
        "name": duel.name,
        "daegiPerSecond": daegi.round(),
        "barePerSecond": bare.round(),
        "ratio": rounded(duel.ratio()),
        "ratioOfSingleRounds": [rounded(low), rounded(high)],
        "goal": duel.goal,
        "rounds": duel.rounds.iter().map(single).collect::<Vec<_>>(),
    })
}

fn single(round: &Round) -> Value {
    json!({
        "load": round.load,
        "daegiSeconds": rounded(round.daegi.as_secs_f64()),
        "bareSeconds": rounded(round.bare.as_secs_f64()),
    })
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// What the figures were measured on; a machine that hides its name is only counted.
pub(crate) fn machine() -> Value {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    json!({ "cores": cores, "processor": model.map(|(_, name)| name) })
}
