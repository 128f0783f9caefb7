use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{LineState, Ticket};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::answer::Found;
use super::held::{Hold, Kind};
use super::poll::{SEEN_EVERY, Sight};
use super::{Presented, Room};
use crate::error::{Error, Result};
use crate::lines::LineView;
use crate::wire;

/// Nobody hears more often that the place has changed; a turn or a line state is told at once.
const PACE: Duration = Duration::from_secs(1);
/// The longest silence. Shorter than what proxies take for the end of a connection.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often an entry is looked at while nobody's ends, in milliseconds: only the store knows what
/// became of it. At whole seconds, so that many are asked about in one call.
const ENTRY_EVERY_MS: u64 = 15_000;
const TOGETHER_MS: u64 = 1_000;
/// How often it is looked at while tickets of the line end: it may be among them.
const ENTRY_PACE: Duration = Duration::from_secs(2);
/// When to come back after a restart, in milliseconds. Spread, so that everybody who was here
/// does not fall on the next pod at the same moment.
const COME_BACK_MS: std::ops::RangeInclusive<u64> = 1_000..=8_000;

/// What a person who listens is told.
#[derive(Debug)]
pub(crate) enum News {
    /// The ticket as it is now. People with the same id have been told the same.
    Ticket { id: String, ticket: Box<wire::Ticket> },
    /// The operator changed the texts of the waiting page.
    Page(Arc<wire::PageTexts>),
    /// Nothing new, but we are still here.
    Heartbeat,
    /// This pod closes: come back after so many milliseconds.
    ComeBack(u64),
    /// The ticket cannot be followed any more.
    Lost(Error),
}

/// Somebody who listens. Waits for nothing but the line in view, and keeps no news: whoever reads
/// slowly is told what is true when they are ready, and not what was in between.
pub(crate) struct Follower {
    room: Arc<Room>,
    line: Arc<LineView>,
    ticket: Ticket,
    token: String,
    moves: watch::Receiver<()>,
    ends: watch::Receiver<()>,
    /// What there is to tell at once.
    first: Option<Sight>,
    told: Told,
    /// The revision of the page's texts that the client shows; `None` if it shows no page.
    page: Option<String>,
    /// When to look again, whether the line moves or not.
    look_at: Instant,
    looked_at: Instant,
    spoke_at: Instant,
    over: bool,
    hold: Hold,
    /// Shutdown waits for the last event of the stream.
    _tracked: TaskTrackerToken,
}

/// What the person knows.
struct Told {
    id: String,
    found: Option<Found>,
    state: LineState,
    people: u64,
    at: Instant,
}

impl Room {
    /// Begins to follow a ticket. `last` is the id of the last event that the client received,
    /// `page` the revision of the page texts that it shows, if it shows a page.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        presented: Presented,
        kind: Kind,
        last: String,
        page: Option<String>,
    ) -> Result<Follower> {
        let ticket = self.believe(&presented)?;
        let hold = self.held.hold(&ticket, kind).ok_or(Error::TooManyListen)?;
        let line = self.line_of(&ticket).await?;
        // Before the first look, so that no change falls between both.
        let (moves, ends) = (line.moves(), line.ends());
        let first = self.look(&line, &ticket).await?;
        let now = Instant::now();
        let told = Told { id: last, found: None, state: first.state(), people: 0, at: now };
        Ok(Follower {
            room: Arc::clone(self),
            line,
            ticket,
            token: presented.token,
            moves,
            ends,
            first: Some(first),
            told,
            page,
            look_at: now,
            looked_at: now,
            spoke_at: now,
            over: false,
            hold,
            _tracked: self.tracker.token(),
        })
    }
}

impl Follower {
    /// The next thing to tell; none after the last. May be dropped and called again: nothing is
    /// lost, because whatever woke it is looked at first.
    pub(crate) async fn next(&mut self) -> Option<News> {
        if self.over {
            return None;
        }
        let news = match self.first.take() {
            Some(first) => self.begin(first),
            None => self.listen().await,
        };
        self.spoke_at = Instant::now();
        Some(news)
    }

    /// Somebody who comes back and knows it all already is only greeted.
    fn begin(&mut self, first: Sight) -> News {
        self.look_at = Instant::now() + self.rest(&first);
        if self.newer_page(&first).is_some() {
            self.look_at = Instant::now();
        }
        if first.id() == self.told.id {
            self.remember(&first);
            return News::Heartbeat;
        }
        self.tell(&first)
    }

    async fn listen(&mut self) -> News {
        loop {
            tokio::select! {
                () = self.room.stop.cancelled() => return self.goodbye(),
                () = self.hold.superseded() => {
                    self.over = true;
                    return News::Lost(Error::Superseded);
                }
                // Only who waits can be told something by the line. Its task outlives it, so
                // this never fails.
                _ = self.moves.changed(), if self.waits() => self.look_at = Instant::now(),
                // Everybody inside asks the store then, in a few calls; so not at every end.
                _ = self.ends.changed(), if !self.waits() => {
                    self.look_at = self.look_at.min(self.looked_at + ENTRY_PACE);
                    continue;
                }
                () = sleep_until(self.look_at) => {}
            }
            if let Some(news) = self.look().await {
                return news;
            }
        }
    }

    async fn look(&mut self) -> Option<News> {
        let looked = self.room.look(&self.line, &self.ticket).await;
        let silent = self.spoke_at.elapsed() >= HEARTBEAT;
        self.looked_at = Instant::now();
        match looked {
            Ok(sight) => {
                self.look_at = Instant::now() + self.rest(&sight);
                self.weigh(&sight, silent)
            }
            // Trouble that passes is no reason to send a whole crowd to the door.
            Err(error) if error.passes() => {
                self.look_at = Instant::now() + SEEN_EVERY;
                silent.then_some(News::Heartbeat)
            }
            Err(error) => {
                self.over = true;
                Some(News::Lost(error))
            }
        }
    }

    /// Whether what is seen is worth telling now.
    fn weigh(&mut self, sight: &Sight, silent: bool) -> Option<News> {
        if let Some(page) = self.newer_page(sight) {
            // The ticket may have changed as well: look again right after the page is sent.
            self.look_at = Instant::now();
            self.page = Some(page.revision.clone());
            return Some(News::Page(page));
        }
        let waits = sight.found.is_waiting();
        let turned = self.told.found.map(Found::status) != Some(sight.found.status())
            || (waits && self.told.state != sight.state());
        if turned {
            return Some(self.tell(sight));
        }
        // Whoever is inside is told that once, whatever becomes of the line behind them.
        if !waits {
            return silent.then_some(News::Heartbeat);
        }
        let since = self.told.at.elapsed();
        if self.told.found != Some(sight.found) {
            if since >= PACE {
                return Some(self.tell(sight));
            }
            self.look_at = self.look_at.min(self.told.at + PACE);
            return None;
        }
        // Those who come behind, and the time it will take, may be told late.
        let grown = self.told.people != sight.people() && since >= SEEN_EVERY;
        if grown || (silent && sight.state() == LineState::Open) {
            return Some(self.tell(sight));
        }
        silent.then_some(News::Heartbeat)
    }

    /// The texts of the page, if the client shows a page with other ones.
    fn newer_page(&self, sight: &Sight) -> Option<Arc<wire::PageTexts>> {
        let (shown, view) = self.page.as_ref().zip(sight.view.as_ref())?;
        (*shown != view.page.revision).then(|| Arc::clone(&view.page))
    }

    fn tell(&mut self, sight: &Sight) -> News {
        self.remember(sight);
        self.over = sight.found.status().is_final();
        let token = self.token.clone();
        let ticket = self.room.ticket_json(&self.ticket, token, sight.view.as_deref(), sight.found);
        News::Ticket { id: self.told.id.clone(), ticket: Box::new(ticket) }
    }

    fn remember(&mut self, sight: &Sight) {
        self.told = Told {
            id: sight.id(),
            found: Some(sight.found),
            state: sight.state(),
            people: sight.people(),
            at: Instant::now(),
        };
    }

    fn goodbye(&mut self) -> News {
        self.over = true;
        News::ComeBack(fastrand::u64(COME_BACK_MS))
    }

    fn waits(&self) -> bool {
        self.told.found.is_none_or(Found::is_waiting)
    }

    /// How long nothing needs to be looked at. An entry ends on time.
    fn rest(&self, sight: &Sight) -> Duration {
        match sight.found {
            Found::Entered { expires_at, .. } => {
                let now = self.room.clock.now_ms();
                let look_at = (now + ENTRY_EVERY_MS).next_multiple_of(TOGETHER_MS);
                Duration::from_millis(look_at.min(expires_at + 1).saturating_sub(now))
            }
            Found::Waiting { .. } | Found::Ended(_) => SEEN_EVERY,
        }
    }
}
