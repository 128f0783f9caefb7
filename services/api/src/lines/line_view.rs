use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use daegi_domain::{Number, Ticket, UserId};
use daegi_store::{Joined, Place, Standing};
use tokio::sync::watch;

use super::asks::Asks;
use super::batch::{Batches, Queue, queue};
use super::core::Core;
use super::joins::Joins;
use super::reader::Reader;
use super::refresh::{self, EVERY, Refresher};
use super::view::Look;
use super::{Registry, View};
use crate::error::{Error, Result};

/// A view older than this answers nobody.
const STALE: Duration = Duration::from_secs(1);

/// One line as requests use it. Its task lives as long as anybody holds this.
pub(crate) struct LineView {
    pub(super) core: Arc<Core>,
    joins: Queue<UserId, Joined>,
    asks: Queue<(UserId, Number), Standing>,
}

/// The other end of a [`LineView`]: everything that happens to a line behind the requests.
pub(super) struct Life {
    core: Arc<Core>,
    joins: Batches<UserId, Joined>,
    asks: Batches<(UserId, Number), Standing>,
}

impl LineView {
    pub(super) fn new(core: Arc<Core>) -> (Self, Life) {
        let ((joins, join_batches), (asks, ask_batches)) = (queue(), queue());
        let life = Life { core: Arc::clone(&core), joins: join_batches, asks: ask_batches };
        (Self { core, joins, asks }, life)
    }

    /// What is known of the line, if that is at most a second old, as it nearly always is.
    pub(crate) fn at_hand(&self) -> Option<Arc<View>> {
        self.not_older_than(STALE)
    }

    /// The same for a ticket: a position is at most 250 ms old. While the refresher works, the view
    /// is that new unless the store is slow.
    fn at_hand_of_ticket(&self) -> Option<Arc<View>> {
        self.not_older_than(if self.core.is_resting() { EVERY } else { STALE })
    }

    fn not_older_than(&self, age: Duration) -> Option<Arc<View>> {
        let view = self.core.view.load_full();
        let is_known = !self.core.gone.load(Ordering::Relaxed) && view.as_of.elapsed() <= age;
        is_known.then_some(view)
    }

    /// The same, with a look at the store where that is needed.
    pub(crate) async fn fresh(&self) -> Result<Arc<View>> {
        match self.at_hand() {
            Some(view) => Ok(view),
            None => self.unless_gone().await,
        }
    }

    async fn fresh_for_ticket(&self) -> Result<Arc<View>> {
        match self.at_hand_of_ticket() {
            Some(view) => Ok(view),
            None => self.unless_gone().await,
        }
    }

    async fn unless_gone(&self) -> Result<Arc<View>> {
        if self.core.gone.load(Ordering::Relaxed) {
            return Err(Error::ItemNotFound);
        }
        self.refreshed().await
    }

    /// The outcome of a look at the store that began after this call. One look serves all who
    /// wait for it.
    pub(crate) async fn refreshed(&self) -> Result<Arc<View>> {
        let mut rounds = self.core.rounds.subscribe();
        let begun = self.core.begun.load(Ordering::SeqCst);
        self.core.wake.notify_one();
        let round = rounds.wait_for(|round| round.number > begun).await;
        round.map_err(|_| Error::Slow)?.outcome.clone()?;
        Ok(self.core.view.load_full())
    }

    /// Told when something changes that a waiting person can see.
    pub(crate) fn moves(&self) -> watch::Receiver<()> {
        self.core.moves.subscribe()
    }

    /// Told when a ticket of the line has ended: perhaps somebody's entry.
    pub(crate) fn ends(&self) -> watch::Receiver<()> {
        self.core.ends.subscribe()
    }

    /// Where a number waits and the view that goes with it, if that is known without waiting for
    /// anybody: what nearly every poll needs. Asking is being seen.
    pub(crate) fn glance(&self, number: Number) -> Option<(Arc<View>, u64)> {
        let view = self.at_hand_of_ticket()?;
        let Look::Waiting { position } = view.look(number) else { return None };
        self.mark(&view, number);
        Some((view, position))
    }

    /// Where a ticket stands, and the view that goes with it. Asking is being seen.
    pub(crate) async fn find(&self, ticket: &Ticket) -> Result<(Arc<View>, Standing)> {
        if let Some(remembered) = self.remembered(ticket) {
            return Ok(remembered);
        }
        let mut view = self.fresh_for_ticket().await?;
        if view.look(ticket.number) == Look::Beyond {
            // Probably joined a moment ago, here or at another pod.
            view = self.refreshed().await?;
        }
        let standing = match view.look(ticket.number) {
            Look::Waiting { position } => Standing::At(Place::Waiting { position }),
            Look::Over | Look::Beyond => {
                let standing = self.resolve(ticket).await?;
                self.core.context.answers.insert(ticket, standing, &view);
                if is_waiting(standing) && view.may_have_lost(ticket.number) {
                    // Taken back just now, so that the line is another one than before.
                    view = self.refreshed().await?;
                }
                match view.look(ticket.number) {
                    Look::Waiting { position } if is_waiting(standing) => {
                        Standing::At(Place::Waiting { position })
                    }
                    _ => standing,
                }
            }
        };
        if is_waiting(standing) {
            self.mark(&view, ticket.number);
        }
        Ok((view, standing))
    }

    /// Joins one person.
    pub(crate) async fn join(&self, user: UserId) -> Result<Joined> {
        let joined = self.joins.ask(user).await?;
        if let Joined::At { number, .. } = joined {
            self.mark(&self.core.view.load(), number);
        }
        Ok(joined)
    }

    /// Hands all marks to the store; afterwards none is on its way.
    pub(crate) async fn flush(&self) -> Result<()> {
        refresh::flush(&self.core).await
    }

    /// What the store answered about a ticket that is not in the line any more, if that was lately.
    fn remembered(&self, ticket: &Ticket) -> Option<(Arc<View>, Standing)> {
        let view = self.core.view.load_full();
        if self.core.gone.load(Ordering::Relaxed) || view.look(ticket.number) != Look::Over {
            return None;
        }
        let standing = self.core.context.answers.get(ticket, &view)?;
        Some((view, standing))
    }

    async fn resolve(&self, ticket: &Ticket) -> Result<Standing> {
        self.asks.ask((ticket.user.clone(), ticket.number)).await
    }

    /// Notes that a ticket that waits was seen, and that the line is to be kept fresh for it.
    fn mark(&self, view: &View, number: Number) {
        self.core.ask();
        if !view.pages.mark(number) {
            self.core.marks.outside(number);
        }
    }
}

fn is_waiting(standing: Standing) -> bool {
    matches!(standing, Standing::At(Place::Waiting { .. }))
}

impl Life {
    /// Lives until nobody holds the line any more, then hands over the last marks.
    pub(super) async fn live(self, reader: Reader, registry: Weak<Registry>) {
        let core = Arc::clone(&self.core);
        let refresher = Refresher::new(Arc::clone(&core), reader, registry);
        let requests = async {
            tokio::join!(
                self.joins.work(Joins(Arc::clone(&core))),
                self.asks.work(Asks(Arc::clone(&core))),
            )
        };
        tokio::select! {
            _ = requests => {}
            _ = refresher.run() => {}
            _ = refresh::flush_for_ever(&core) => {}
        }
        // Failing is told and counted already; there is nobody left to tell it to.
        let _ = refresh::flush(&core).await;
    }
}
