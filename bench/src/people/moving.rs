//! A line in the middle of a sale: it is open, people were let in over the last minutes, and others
//! have left its middle. What a poll has to compute, it has to compute here.
//!
//! While it is measured one person goes in between two rounds, so that the line does not forget how
//! fast it was.

use anyhow::ensure;
use daegi_domain::rate::{BUCKET_MS, BUCKETS};
use daegi_domain::{Policy, Ticket};
use daegi_store::{Epoch, Store};
use futures_util::{StreamExt, stream};
use serde_json::Value;

use super::arena::{Arena, Server, now};
use super::line::Line;
use crate::report::progress;

/// One of so many was let in, and one of so many has left.
const PART: usize = 10;
/// Those at the front, who may be let in meanwhile, are not asked after.
const FRONT: usize = 64;
/// How many leave at once.
const ABREAST: usize = 64;
/// The outbox is never full.
const OUTBOX: u64 = u64::MAX >> 1;

/// Such a line, and the term in which its people are let in.
pub(super) struct Moving {
    /// With everybody who stays in it.
    pub(super) line: Line,
    epoch: Epoch,
}

impl Moving {
    /// A line in which so many people wait.
    pub(super) async fn fill(arena: &Arena, name: &str, people: usize) -> anyhow::Result<Self> {
        progress(&format!("filling a line that moves with {people} people"));
        let part = people / PART;
        let mut line = arena.line(name, people + 2 * part).await?;
        // Entries last longer than the bench, or they would end while something else is measured.
        let policy = Policy {
            grace_seconds: 0,
            pass_ttl_seconds: 86_400,
            tokens_per_tick: Some(u32::try_from(part)?),
            ..Policy::default()
        };
        line.set_policy(&arena.store, &policy).await?;
        let stay = line.tickets.split_off(part);
        // One of eleven, which leaves ten of twelve who came.
        let (leave, stay): (Vec<_>, Vec<_>) =
            stay.into_iter().enumerate().partition(|(place, _)| place % (PART + 1) == PART / 2);
        all_leave(arena, leave.into_iter().map(|(_, ticket)| ticket).collect()).await?;
        line.tickets = stay.into_iter().skip(FRONT).map(|(_, ticket)| ticket).collect();
        let moving = Self { line, epoch: arena.store.begin_term(0).await? };
        moving.admit_lately(arena, part as u64).await?;
        arena.empty_outbox().await?;
        Ok(moving)
    }

    /// Lets people in over all of the time that a line remembers.
    async fn admit_lately(&self, arena: &Arena, people: u64) -> anyhow::Result<()> {
        let now = now();
        for bucket in 0..BUCKETS {
            let quota = people * (bucket + 1) / BUCKETS - people * bucket / BUCKETS;
            let at = now - (BUCKETS - bucket) * BUCKET_MS;
            let mut left = u32::try_from(quota)?;
            while left > 0 {
                let done =
                    arena.store.admit(self.epoch, &self.line.item, left, 0, OUTBOX, at).await?;
                ensure!(done.admitted > 0, "{done:?}");
                left = done.remaining;
            }
        }
        Ok(())
    }

    /// Lets the first person in.
    pub(super) async fn step(&mut self, arena: &Arena) -> anyhow::Result<()> {
        // Another line may have begun another term.
        self.epoch = arena.store.begin_term(0).await?;
        let done = arena.store.admit(self.epoch, &self.line.item, 1, 0, OUTBOX, now()).await?;
        ensure!(done.admitted == 1, "{done:?}");
        Ok(())
    }

    /// Whether somebody in the middle of it is told when their turn comes, and how long that
    /// answer is.
    pub(super) async fn told(&self, arena: &Arena, server: &Server) -> anyhow::Result<usize> {
        let address = &self.line.addresses(&arena.keys, 2)[1];
        let answer = reqwest::get(format!("http://{}{address}", server.address)).await?;
        let text = answer.error_for_status()?.text().await?;
        let ticket: Value = serde_json::from_str(&text)?;
        let moves = ticket["lineState"] == "OPEN" && ticket["etaSeconds"].is_object();
        ensure!(moves && ticket["status"] == "WAITING", "the line does not move: {text}");
        Ok(text.len())
    }

    /// Takes it away, so that no leader finds it open.
    pub(super) async fn remove(self, arena: &Arena) -> anyhow::Result<()> {
        arena.store.remove_item(&self.line.item).await?;
        Ok(())
    }
}

async fn all_leave(arena: &Arena, tickets: Vec<Ticket>) -> anyhow::Result<()> {
    let leave = |ticket: Ticket| async move {
        let Ticket { item, user, number } = &ticket;
        arena.store.leave(item, user, *number, now()).await
    };
    let mut left = stream::iter(tickets.into_iter().map(leave)).buffer_unordered(ABREAST);
    while let Some(left) = left.next().await {
        ensure!(left?.is_done(), "somebody had left already");
    }
    Ok(())
}
