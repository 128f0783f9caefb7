//! The steps of the leader on an opening: draw the cohort, open the line, record that it closed.

use std::time::Instant;

use daegi_domain::draw::{RootBuilder, draw_seed, leaf};
use daegi_domain::{
    CohortRange, Draw, DrawBeacon, Drawn, Item, Number, Order, Ticket, TicketKeys, beacon_of,
    round_published_at,
};
use daegi_store::{BeaconOutcome, LEAVES_PER_CALL, Result};

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
                let Some(drawn) = self.draw(item, draw, cohort, keys).await? else { return Ok(()) };
                Some(drawn)
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

    /// Draws the order of a cohort: the root of its tokens, the reveal and the beacon determine the seed. Returns
    /// `None` while the round of the beacon is not known; the root is fixed before.
    async fn draw(
        &self,
        item: &Item,
        draw: &Draw,
        cohort: CohortRange,
        keys: &TicketKeys,
    ) -> Result<Option<Drawn>> {
        let (root, beacon) = match draw.beacon {
            None => (self.store_tree(item, cohort, keys).await?, None),
            Some(beacon) => {
                let Some(root) = self.fixed_root(item, draw, cohort, keys).await? else {
                    return Ok(None);
                };
                let Some(signature) = self.signature(item, beacon).await? else { return Ok(None) };
                (root, Some(beacon_of(&signature)))
            }
        };
        let seed = draw_seed(&item.id, &draw.reveal.0, &root, beacon.as_ref());
        Ok(Some(Drawn { root, beacon, seed }))
    }

    /// Returns the root of a cohort that waits for the round of its beacon. It is fixed once: a ticket that ends
    /// while the round is known must not change the seed.
    async fn fixed_root(
        &self,
        item: &Item,
        draw: &Draw,
        cohort: CohortRange,
        keys: &TicketKeys,
    ) -> Result<Option<[u8; 32]>> {
        if draw.root.is_some() {
            return Ok(draw.root);
        }
        let root = self.store_tree(item, cohort, keys).await?;
        let fixed = self.store.fix_root(self.epoch, &item.id, &root, self.now).await?;
        if let (Some(root), Some(beacon)) = (fixed, draw.beacon) {
            let (round, published_at) = (beacon.round, round_published_at(beacon.round));
            let (size, root) = (cohort.size, hex::encode(root));
            tracing::info!(item.id = %item.id, cohort.size = size, cohort.root = root, round, "cohort fixed, line waits for its beacon");
            if published_at <= self.now {
                let late_ms = self.now - published_at;
                tracing::warn!(item.id = %item.id, round, late_ms, "cohort fixed after the round of its beacon was published");
            }
        }
        Ok(fixed)
    }

    /// Returns the signature of the round: the stored one, or the one that a relay has returned, which is stored
    /// first. An operator may hand it in, too.
    async fn signature(&self, item: &Item, beacon: DrawBeacon) -> Result<Option<[u8; 48]>> {
        if beacon.signature.is_some() || round_published_at(beacon.round) > self.now {
            return Ok(beacon.signature);
        }
        let fetched = self.beacons.as_ref().and_then(|beacons| beacons.signature(beacon.round));
        let Some(signature) = fetched else { return Ok(None) };
        let stored = self.store.put_beacon(&item.id, beacon.round, &signature, self.now).await?;
        Ok((stored != BeaconOutcome::NotAwaited).then_some(signature))
    }

    /// Stores the leaves of a cohort, from which pods compute the proof that a ticket took part. Returns the root.
    async fn store_tree(
        &self,
        item: &Item,
        cohort: CohortRange,
        keys: &TicketKeys,
    ) -> Result<[u8; 32]> {
        let leaves = self.leaves(item, cohort, keys).await?;
        let mut builder = RootBuilder::default();
        leaves.iter().for_each(|leaf| builder.push(leaf));
        let root = builder.finish();
        for (page, leaves) in (0..).zip(leaves.chunks(LEAVES_PER_CALL)) {
            let first = page * LEAVES_PER_CALL as u64;
            self.store.put_leaves(&item.id, &root, first, leaves).await?;
        }
        Ok(root)
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
