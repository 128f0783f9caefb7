//! A pod that starts while a million wait and many have left the middle of the line.

use anyhow::Context;
use daegi_store::Store;

use super::Options;
use super::arena::{Arena, now};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// Every so many people have left.
const LEFT: usize = 10;

pub(super) async fn ready(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    progress("filling a line that people leave, for a new pod");
    let line = arena.line("history", options.people).await?;
    for ticket in line.tickets.iter().step_by(LEFT) {
        arena.store.leave(&line.item, &ticket.user, ticket.number, now()).await?;
    }
    let last = line.tickets.last().context("nobody waits")?;
    let address = format!("{}/{}", line.door(), arena.keys.token(last));
    let mut seconds = Vec::new();
    for _ in 0..options.rounds {
        let pod = arena.another_pod()?;
        let took = pod.answers(&address).await?.as_secs_f64();
        progress(&format!("a new pod answers after {took:.3} s"));
        seconds.push(took);
    }
    arena.store.remove_item(&line.item).await?;
    let people = options.people;
    let left = people.div_ceil(LEFT);
    let name = "new pod answers polls";
    Ok(vec![
        Figure::new(name, median(seconds.clone()), "s", Goal::Most(1.0))
            .with(format!("from its start; {people} joined, {left} of them left the middle"))
            .over(seconds),
    ])
}
