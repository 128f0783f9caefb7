use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemId, ItemName, LineState, Look, Ticket};
use daegi_store::Standing;
use tokio::time::{Instant, sleep_until};

use super::answer::Found;
use super::held::Kind;
use super::{Presented, Room};
use crate::error::{Error, Result};
use crate::lines::{LineView, View};
use crate::patience::{in_a_second, in_time};
use crate::wire;

/// How often a person who is kept waiting for news counts as seen. Half the shortest grace
/// period, so that nobody misses their turn while they listen.
pub(super) const SEEN_EVERY: Duration = Duration::from_secs(5);

/// What a person sees at one moment.
pub(super) struct Sight {
    /// `None` if the item was removed: its entries last until they end.
    pub(super) view: Option<Arc<View>>,
    pub(super) found: Found,
}

/// What an item shows of itself before anybody joins.
pub(crate) struct Face {
    pub(crate) name: ItemName,
    pub(crate) look: Look,
    pub(crate) state: LineState,
    pub(crate) page: Arc<wire::PageTexts>,
}

impl Sight {
    fn is_news_to(&self, other: &Self) -> bool {
        self.found != other.found || self.state() != other.state()
    }

    /// The state of the line; `DISABLED` if the item was removed.
    pub(super) fn state(&self) -> LineState {
        self.view.as_ref().map_or(LineState::Disabled, |view| view.state)
    }

    /// How many wait in the line.
    pub(super) fn people(&self) -> u64 {
        self.view.as_ref().map_or(0, |view| view.people())
    }

    /// The same on every pod for everything that is the same to the person. Whoever is inside has
    /// nothing to do with the line any more.
    pub(super) fn id(&self) -> String {
        let state = self.state();
        match self.found {
            Found::Waiting { position } => format!("WAITING.{position}.{state:?}"),
            Found::Entered { expires_at, .. } => format!("ENTERED.{expires_at}"),
            Found::Ended(reason) => format!("ENDED.{}", reason.code()),
        }
    }
}

impl Room {
    /// Where a ticket stands. Somebody who waits may be kept up to `wait`, until that changes.
    pub(crate) async fn poll(&self, presented: Presented, wait: Duration) -> Result<wire::Ticket> {
        let ticket = self.believe(&presented)?;
        let Sight { view, found } = self.seek(&ticket, wait).await?;
        Ok(self.ticket_json(&ticket, presented.token, view.as_deref(), found))
    }

    /// The same for somebody who waits and whose place this pod knows: nearly every poll.
    pub(crate) fn poll_at_once(&self, presented: Presented) -> Option<wire::Ticket> {
        let ticket = self.believe(&presented).ok()?;
        let (view, position) = self.lines.known(&ticket.item)?.glance(ticket.number)?;
        let found = Found::Waiting { position };
        Some(self.ticket_json(&ticket, presented.token, Some(&view), found))
    }

    /// Where a ticket stands, however many have to be asked.
    async fn seek(&self, ticket: &Ticket, wait: Duration) -> Result<Sight> {
        let line = match in_a_second(self.lines.view(&ticket.item)).await {
            Err(Error::ItemNotFound) => return self.look_without_item(ticket).await,
            line => line?,
        };
        if wait.is_zero() {
            self.look(&line, ticket).await
        } else {
            self.listen(&line, ticket, wait).await
        }
    }

    /// What everybody may know about a line.
    pub(crate) async fn line(&self, item: &ItemId) -> Result<wire::Line> {
        let view = in_a_second(self.lines.peek(item)).await?;
        Ok(wire::Line {
            item_id: item.clone(),
            item_name: view.line.item.name.clone(),
            line_state: view.state,
            waiting_count: view.people(),
            entered_count: view.line.entered,
            admitted_per_second: view.per_second(self.clock.now_ms()),
        })
    }

    /// What an item shows of itself.
    pub(crate) async fn face(&self, item: &ItemId) -> Result<Face> {
        let view = in_a_second(self.lines.peek(item)).await?;
        let item = &view.line.item;
        Ok(Face {
            name: item.name.clone(),
            look: item.policy.page.clone(),
            state: view.state,
            page: Arc::clone(&view.page),
        })
    }

    pub(super) async fn look(&self, line: &LineView, ticket: &Ticket) -> Result<Sight> {
        let (view, standing) = match in_a_second(line.find(ticket)).await {
            Err(Error::ItemNotFound) => return self.look_without_item(ticket).await,
            found => found?,
        };
        let found = Found::told(standing, self.clock.now_ms())?;
        Ok(Sight { view: Some(view), found })
    }

    /// The line of a genuine ticket.
    pub(super) async fn line_of(&self, ticket: &Ticket) -> Result<Arc<LineView>> {
        match in_a_second(self.lines.view(&ticket.item)).await {
            Err(Error::ItemNotFound) => {
                self.look_without_item(ticket).await?;
                Err(Error::ItemRemoved)
            }
            line => line,
        }
    }

    /// The ticket of an item that is not there. A removed item keeps its entries until they end, and
    /// a mark of the removal. An item without that mark was lost together with its line: its
    /// clients poll again until it is back.
    async fn look_without_item(&self, ticket: &Ticket) -> Result<Sight> {
        let standing = match self.lines.answer_without_item(ticket) {
            Some(standing) => standing,
            None => {
                let standing = self.ask_store(ticket).await?;
                self.lines.remember_without_item(ticket, standing);
                standing
            }
        };
        match Found::told(standing, self.clock.now_ms())? {
            // The item came back between both reads.
            Found::Waiting { .. } => Err(Error::Forgotten),
            found => Ok(Sight { view: None, found }),
        }
    }

    /// What became of one ticket.
    pub(super) async fn ask_store(&self, ticket: &Ticket) -> Result<Standing> {
        let (now, asked) = (self.clock.now_ms(), [(ticket.user.clone(), ticket.number)]);
        let standings = self.store.resolve(&ticket.item, &asked, now);
        let standings = in_time("resolve", standings).await?;
        // One ticket, one standing.
        Ok(standings.first().copied().unwrap_or(Standing::Forgotten))
    }

    /// Subscribes before the first look, so that no change falls between both.
    async fn listen(&self, line: &LineView, ticket: &Ticket, wait: Duration) -> Result<Sight> {
        let end = Instant::now() + wait;
        let mut moves = line.moves();
        let mut sight = self.look(line, ticket).await?;
        if !sight.found.is_waiting() {
            return Ok(sight);
        }
        // A pod that holds as many as it may answers like a plain poll.
        let Some(hold) = self.held.hold(ticket, Kind::LongPoll) else { return Ok(sight) };
        while sight.found.is_waiting() && Instant::now() < end {
            let pause = end.min(Instant::now() + SEEN_EVERY);
            tokio::select! {
                // The line's task outlives the line we hold, so this never fails.
                _ = moves.changed() => {}
                () = sleep_until(pause) => {}
                () = self.stop.cancelled() => break,
                () = hold.superseded() => break,
            }
            let now = self.look(line, ticket).await?;
            let before = std::mem::replace(&mut sight, now);
            if sight.is_news_to(&before) {
                break;
            }
        }
        Ok(sight)
    }
}
