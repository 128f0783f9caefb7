//! The steps of the leader on an opening: draw the cohort, open the line, record that it closed.

use std::time::Instant;

use daegi_domain::draw::{RootBuilder, draw_seed, leaf};
use daegi_domain::{CohortRange, Drawn, Item, Number, Order, Reveal, Ticket, TicketKeys};
use daegi_store::{LEAVES_PER_CALL, Result};

use super::line::LineRound;

/// Tickets that one call reads for the Merkle tree.
const TICKETS_PER_CALL: u32 = 2_000;

/// The leaf of a number that left the lobby.
const NO_TICKET: [u8; 32] = [0; 32];

impl LineRound {
    /// Opens or closes the line if that is due, and returns the item afterwards. A leader that dies between
    /// two steps leaves them to the next one: the cohort is fixed once, and the line opens once.
    pub(super) async fn follow_opening(&self, item: Item) -> Result<Option<Item>> {
        if item.is_close_due(self.now) {
            if self.store.close_line(self.epoch, &item.id, self.now).await? {
                tracing::info!(item.id = %item.id, "line closed");
            }
        } else if item.is_opening_due(self.now) {
            self.open(&item).await?;
        } else {
            return Ok(Some(item));
        }
        self.store.item(&item.id).await
    }

    async fn open(&self, item: &Item) -> Result<()> {
        let started = Instant::now();
        let mut cohort_size = None;
        let drawn = match &item.draw {
            None => None,
            Some(draw) => {
                let frozen = self.store.freeze_cohort(self.epoch, &item.id, self.now).await?;
                let Some((cohort, keys)) = frozen.zip(self.ticket_keys.as_ref()) else {
                    return Ok(());
                };
                cohort_size = Some(cohort.size);
                Some(self.draw(item, draw.reveal, cohort, keys).await?)
            }
        };
        if self.store.open_line(self.epoch, &item.id, drawn, self.now).await? {
            let order = item.policy.opening.as_ref().map(|opening| opening.order);
            let order = if order == Some(Order::Draw) { "draw" } else { "arrival" };
            let elapsed_ms = started.elapsed().as_millis() as u64;
            tracing::info!(item.id = %item.id, order, cohort.size = cohort_size, elapsed_ms, "line opened");
        }
        Ok(())
    }

    /// Draws the order of a cohort: the root of its tokens and the reveal determine the seed. Stores the
    /// leaves, from which pods compute the proof that a ticket took part.
    async fn draw(
        &self,
        item: &Item,
        reveal: Reveal,
        cohort: CohortRange,
        keys: &TicketKeys,
    ) -> Result<Drawn> {
        let leaves = self.leaves(item, cohort, keys).await?;
        let mut builder = RootBuilder::default();
        leaves.iter().for_each(|leaf| builder.push(leaf));
        let root = builder.finish();
        for (page, leaves) in (0..).zip(leaves.chunks(LEAVES_PER_CALL)) {
            let first = page * LEAVES_PER_CALL as u64;
            self.store.put_leaves(&item.id, &root, first, leaves).await?;
        }
        let seed = draw_seed(&item.id, &reveal.0, &root, None);
        Ok(Drawn { root, beacon: None, seed })
    }

    /// Returns one leaf per number of the cohort.
    async fn leaves(
        &self,
        item: &Item,
        cohort: CohortRange,
        keys: &TicketKeys,
    ) -> Result<Vec<[u8; 32]>> {
        let mut leaves = vec![NO_TICKET; cohort.size as usize];
        let mut from = cohort.first;
        loop {
            let tickets = self.store.waiting_from(&item.id, from, TICKETS_PER_CALL).await?;
            let is_end = tickets.len() < TICKETS_PER_CALL as usize;
            for (user, number) in tickets {
                if !cohort.contains(number) {
                    return Ok(leaves);
                }
                from = Number(number.0 + 1);
                let token = keys.token(&Ticket::new(item.id.clone(), user, number));
                leaves[(number.0 - cohort.first.0) as usize] = leaf(&token);
            }
            if is_end {
                return Ok(leaves);
            }
        }
    }
}
