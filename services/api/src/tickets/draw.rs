//! The public record of a draw, with the proof that a ticket took part.

use std::collections::VecDeque;
use std::sync::Arc;

use daegi_domain::draw::{CohortTree, DrawRecord, commitment};
use daegi_domain::{CohortRange, Draw, Drawn, ItemId, Ticket};
use tokio::sync::Mutex;

use super::{TicketService, UnverifiedToken};
use crate::error::{Error, Result};
use crate::lines::LineKey;
use crate::timeouts::{with_request_timeout, with_store_timeout};

/// Trees that a pod keeps: a tree of a million tickets takes 64 MB.
const MAX_TREES: usize = 4;

/// The trees of the latest draws that users of this pod have checked.
#[derive(Debug, Default)]
pub(super) struct TreeCache {
    /// Locked while a tree is loaded, so that concurrent requests load it once.
    trees: Mutex<VecDeque<([u8; 32], Arc<CohortTree>)>>,
}

impl TicketService {
    /// Returns the public record of an item's draw.
    ///
    /// # Errors
    /// [`Error::NoDraw`] if the line is served in order of arrival.
    pub(crate) async fn draw_record(&self, item: &ItemId) -> Result<DrawRecord> {
        Ok(self.draw(item).await?.0)
    }

    /// Returns the record with the leaf, the path and the rank of a ticket. They are missing before the
    /// draw, for a ticket that joined after the opening, and after the leaves were lost.
    pub(crate) async fn draw_record_of(&self, presented: &UnverifiedToken) -> Result<DrawRecord> {
        let ticket = self.verify_token(presented)?;
        let (record, draw) = self.draw(&ticket.item).await?;
        let Some((cohort, drawn)) = draw.cohort.zip(draw.drawn) else { return Ok(record) };
        if !cohort.contains(ticket.number) {
            return Ok(record);
        }
        Ok(match self.proof(&ticket, cohort, drawn).await? {
            Some((leaf, path)) => record.with_ticket(ticket.number, leaf, &path),
            None => record,
        })
    }

    async fn draw(&self, item: &ItemId) -> Result<(DrawRecord, Draw)> {
        let cached = with_request_timeout(self.lines.summary(&LineKey::standard(item))).await?;
        let draw = cached.line.item.draw.clone().ok_or(Error::NoDraw)?;
        let record = match draw.cohort.zip(draw.drawn) {
            Some((cohort, drawn)) => {
                let numbers = (cohort.first, cohort.size);
                DrawRecord::drawn(item.clone(), draw.reveal.0, numbers, drawn.root, drawn.beacon)
            }
            None => DrawRecord::committed(item.clone(), commitment(&draw.reveal.0)),
        };
        Ok((record.with_beacon(&draw), draw))
    }

    /// Returns the leaf of a ticket and its path, or `None` if the leaves are not stored any more.
    async fn proof(
        &self,
        ticket: &Ticket,
        cohort: CohortRange,
        drawn: Drawn,
    ) -> Result<Option<([u8; 32], Vec<[u8; 32]>)>> {
        let Some(tree) = self.tree(&ticket.item, cohort, drawn).await? else { return Ok(None) };
        let index = (ticket.number.0 - cohort.first.0) as usize;
        Ok(tree.leaves().get(index).copied().zip(tree.path(index)))
    }

    async fn tree(
        &self,
        item: &ItemId,
        cohort: CohortRange,
        drawn: Drawn,
    ) -> Result<Option<Arc<CohortTree>>> {
        let mut trees = self.trees.trees.lock().await;
        if let Some((_, tree)) = trees.iter().find(|(root, _)| *root == drawn.root) {
            return Ok(Some(Arc::clone(tree)));
        }
        let mut leaves = Vec::new();
        while (leaves.len() as u64) < cohort.size {
            let page = self.openings.leaves(item, &drawn.root, leaves.len() as u64);
            let page = with_store_timeout("leaves", page).await?;
            if page.is_empty() {
                return Ok(None);
            }
            leaves.extend(page);
        }
        let tree = Arc::new(CohortTree::new(leaves));
        if trees.len() == MAX_TREES {
            trees.pop_front();
        }
        trees.push_back((drawn.root, Arc::clone(&tree)));
        Ok(Some(tree))
    }
}
