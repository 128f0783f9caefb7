//! What the leader, pods and operators ask Redis: as quick in a long line as in a short one?

use std::time::Instant;

use daegi_domain::{Number, Policy};
use daegi_store::{DepartedCursor, Epoch, Store};

use super::arena::{Arena, LATER, now};
use super::line::Line;
use super::{HUNDRED_THOUSAND, Options, THOUSAND};
use crate::duel::median;
use crate::figure::Figure;
use crate::report::progress;

/// How often each is asked in each line, in turn.
const TIMES: usize = 50;
/// How many are let in at a time, so that the short line lasts.
const QUOTA: u32 = 10;
/// The outbox is never full.
const OUTBOX: u64 = u64::MAX >> 1;

/// What is asked of a line.
const ASKED: [&str; 4] = ["admit 10", "sweep", "snapshot", "counts"];

pub(super) async fn compare(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let epoch = arena.store.begin_term(0).await?;
    let mut lines = Vec::new();
    for people in [THOUSAND, HUNDRED_THOUSAND, options.people] {
        lines.push(alive(arena, people).await?);
    }
    let mut figures = Vec::new();
    for what in ASKED {
        let mut micros = vec![Vec::new(); lines.len()];
        for _ in 0..TIMES {
            for (line, micros) in lines.iter().zip(&mut micros) {
                let started = Instant::now();
                ask(arena, epoch, line, what).await?;
                micros.push(started.elapsed().as_secs_f64() * 1e6);
            }
        }
        let [short, middle, long] = [0, 1, 2].map(|line| median(micros[line].clone()));
        progress(&format!("{what}: {short:.0} µs, {middle:.0} µs, {long:.0} µs"));
        figures.push(
            Figure::ratio(&format!("{what}, long line vs 1,000 waiting"), short / long, 0.90)
                .with(format!("{short:.0} µs, {middle:.0} µs (100,000), {long:.0} µs")),
        );
    }
    for line in lines {
        arena.store.remove_item(&line.item).await?;
    }
    Ok(figures)
}

/// A line of people who are all there.
async fn alive(arena: &Arena, people: usize) -> anyhow::Result<Line> {
    progress(&format!("filling a line with {people} people"));
    let line = arena.line(&format!("size-{people}"), people).await?;
    line.set_policy(&arena.store, &Policy::default()).await?;
    line.was_seen(&arena.store, now() + LATER).await?;
    Ok(line)
}

async fn ask(arena: &Arena, epoch: Epoch, line: &Line, what: &str) -> anyhow::Result<()> {
    let (store, id, now) = (&arena.store, &line.item, now() + LATER);
    match what {
        "admit 10" => {
            let admitted = store.admit(epoch, id, QUOTA, 0, OUTBOX, now).await?;
            anyhow::ensure!(admitted.admitted == QUOTA, "{admitted:?}");
        }
        "sweep" => {
            let swept = store.sweep(epoch, id, Number(0), now).await?;
            anyhow::ensure!(swept.abandoned == 0 && swept.cursor > Number(0), "{swept:?}");
        }
        "snapshot" => {
            let snapshot = store.snapshot(id, DepartedCursor::default()).await?;
            anyhow::ensure!(snapshot.is_some(), "no such line");
        }
        _ => {
            let counts = store.counts(std::slice::from_ref(id)).await?;
            anyhow::ensure!(counts.len() == 1, "no such line");
        }
    }
    Ok(())
}
