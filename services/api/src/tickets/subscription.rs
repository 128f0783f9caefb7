//! Streams: the events of one ticket, sent when they happen.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{LineState, Millis, Ticket};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::connections::{ConnectionPermit, Transport};
use super::poll::{LIVENESS_INTERVAL, TicketSnapshot, TicketView};
use super::{TicketService, UnverifiedToken};
use crate::access::{BlockedCall, Client};
use crate::error::{Error, Result};
use crate::lines::LineHandle;
use crate::wire;

/// Minimum interval between two events that only change the position. Admissions and changes of the
/// line state are sent immediately.
const MIN_POSITION_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of keep-alives on a silent stream: below the 60 s idle timeout of common proxies.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Interval between two checks of an entry, whose state only the store knows.
const ENTRY_CHECK_INTERVAL_MS: u64 = 15_000;
/// Checks of entries are aligned to whole seconds, so that many of them share a store call.
const ENTRY_CHECK_ALIGN_MS: u64 = 1_000;
/// Minimum interval between two checks of an entry while tickets of the line end.
const MIN_ENTRY_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Delay before clients reconnect after a restart of the pod. Spread, so that they do not all reach
/// the next pod at the same time.
const RECONNECT_DELAY_MS: std::ops::RangeInclusive<u64> = 1_000..=8_000;

/// An event of a stream, independent of its transport.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    /// The current ticket. Equal ids mean equal content.
    Ticket { id: String, ticket: Box<wire::Ticket> },
    /// The operator changed the texts of the waiting page.
    Page(Arc<wire::PageTexts>),
    /// No change; shows that the connection is alive.
    KeepAlive,
    /// The pod shuts down: reconnect after this many milliseconds.
    Reconnect(u64),
    /// The stream cannot continue.
    Failed(Error),
}

/// One client that follows one ticket. It waits for changes of the cached line and queues no events: a
/// slow client receives the state at the time it is ready to read.
pub(crate) struct Subscription {
    service: Arc<TicketService>,
    line: Arc<LineHandle>,
    ticket: Ticket,
    token: String,
    client: Client,
    changes: watch::Receiver<()>,
    ends: watch::Receiver<()>,
    /// Changes of the block list.
    rules: watch::Receiver<()>,
    /// The first observation, until it is sent.
    first: Option<TicketSnapshot>,
    last_sent: LastSent,
    /// Revision of the page texts that the client shows; `None` if it shows no page.
    page: Option<String>,
    /// When to check the ticket even if the line does not change.
    next_check_at: Instant,
    last_check_at: Instant,
    last_event_at: Instant,
    finished: bool,
    permit: ConnectionPermit,
    /// Shutdown waits for the last event of the stream.
    _tracked: TaskTrackerToken,
}

/// The last ticket that was sent.
struct LastSent {
    id: String,
    view: Option<TicketView>,
    line: (LineState, Option<Millis>),
    total_waiting: u64,
    at: Instant,
}

impl TicketService {
    /// Subscribes to a ticket. `last` is the id of the last event that the client received, `page` the
    /// revision of the page texts that it shows, if any.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        presented: UnverifiedToken,
        transport: Transport,
        last: String,
        page: Option<String>,
    ) -> Result<Subscription> {
        let ticket = self.verify_token(&presented)?;
        let rules = self.access.subscribe();
        self.access.require_ticket(&ticket, &presented.client, BlockedCall::Ticket)?;
        let permit = self.connections.acquire(&ticket, transport).ok_or(Error::TooManyStreams)?;
        let line = self.line_handle(&ticket).await?;
        // Subscribed before the first observation, so that no change is missed in between.
        let (changes, ends) = (line.subscribe_changes(), line.subscribe_ends());
        let first = self.observe(&line, &ticket).await?;
        let now = Instant::now();
        let last_sent =
            LastSent { id: last, view: None, line: first.line_facts(), total_waiting: 0, at: now };
        Ok(Subscription {
            service: Arc::clone(self),
            line,
            ticket,
            token: presented.token,
            client: presented.client,
            changes,
            ends,
            rules,
            first: Some(first),
            last_sent,
            page,
            next_check_at: now,
            last_check_at: now,
            last_event_at: now,
            finished: false,
            permit,
            _tracked: self.tracker.token(),
        })
    }
}

impl Subscription {
    /// Returns the next event, or `None` after the last one. Cancel-safe: a cancelled call has sent
    /// nothing, and the next call checks the ticket again.
    pub(crate) async fn next(&mut self) -> Option<StreamEvent> {
        if self.finished {
            return None;
        }
        let event = match self.first.take() {
            Some(first) => self.first_event(first),
            None => self.wait().await,
        };
        self.last_event_at = Instant::now();
        Some(event)
    }

    /// Returns the first event: the ticket, or a keep-alive if the client reconnects and has
    /// received the current state before.
    fn first_event(&mut self, first: TicketSnapshot) -> StreamEvent {
        self.next_check_at = Instant::now() + self.check_delay(&first);
        if self.newer_page(&first).is_some() {
            self.next_check_at = Instant::now();
        }
        if first.id() == self.last_sent.id {
            self.record_sent(&first);
            return StreamEvent::KeepAlive;
        }
        self.send(&first)
    }

    async fn wait(&mut self) -> StreamEvent {
        loop {
            tokio::select! {
                () = self.service.stop.cancelled() => return self.reconnect_event(),
                () = self.permit.superseded() => return self.fail(Error::Superseded),
                // Changes of the line affect waiting tickets only. Never an error: `self.line`
                // keeps the sender alive.
                _ = self.changes.changed(), if self.is_waiting() => self.next_check_at = Instant::now(),
                // An end of any ticket wakes the streams of all entries of the line. Each of them
                // checks its entry at most every 2 s, because a check is a store call.
                _ = self.ends.changed(), if !self.is_waiting() => {
                    self.next_check_at = self.next_check_at.min(self.last_check_at + MIN_ENTRY_CHECK_INTERVAL);
                    continue;
                }
                // Does not check the ticket, because all streams of the pod are woken.
                _ = self.rules.changed() => match self.permitted() {
                    Ok(()) => continue,
                    Err(error) => return self.fail(error),
                },
                () = sleep_until(self.next_check_at) => {}
            }
            if let Some(event) = self.check().await {
                return event;
            }
        }
    }

    /// Refuses a blocked user. A rule may also begin to apply because an allow rule expires.
    fn permitted(&self) -> Result<()> {
        self.service.access.require_ticket(&self.ticket, &self.client, BlockedCall::Ticket)
    }

    fn fail(&mut self, error: Error) -> StreamEvent {
        self.finished = true;
        StreamEvent::Failed(error)
    }

    async fn check(&mut self) -> Option<StreamEvent> {
        if let Err(blocked) = self.permitted() {
            return Some(self.fail(blocked));
        }
        let observed = self.service.observe(&self.line, &self.ticket).await;
        let silent = self.last_event_at.elapsed() >= KEEP_ALIVE_INTERVAL;
        self.last_check_at = Instant::now();
        match observed {
            Ok(snapshot) => {
                self.next_check_at = Instant::now() + self.check_delay(&snapshot);
                self.next_event(&snapshot, silent)
            }
            // Keep the stream open on a transient error: closing it would make every client
            // reconnect at the same time.
            Err(error) if error.is_transient() => {
                self.next_check_at = Instant::now() + LIVENESS_INTERVAL;
                silent.then_some(StreamEvent::KeepAlive)
            }
            Err(error) => Some(self.fail(error)),
        }
    }

    /// Decides whether a snapshot is sent now.
    fn next_event(&mut self, snapshot: &TicketSnapshot, silent: bool) -> Option<StreamEvent> {
        if let Some(page) = self.newer_page(snapshot) {
            // The ticket may have changed as well: check it right after the page is sent.
            self.next_check_at = Instant::now();
            self.page = Some(page.revision.clone());
            return Some(StreamEvent::Page(page));
        }
        let is_waiting = snapshot.view.is_waiting();
        let status_changed = self.last_sent.view.map(TicketView::status)
            != Some(snapshot.view.status())
            || (is_waiting && self.last_sent.line != snapshot.line_facts());
        if status_changed {
            return Some(self.send(snapshot));
        }
        // An entry is sent once: the line does not affect it.
        if !is_waiting {
            return silent.then_some(StreamEvent::KeepAlive);
        }
        let since = self.last_sent.at.elapsed();
        if self.last_sent.view != Some(snapshot.view) {
            if since >= MIN_POSITION_INTERVAL {
                return Some(self.send(snapshot));
            }
            self.next_check_at = self.next_check_at.min(self.last_sent.at + MIN_POSITION_INTERVAL);
            return None;
        }
        // The number of waiting tickets and the ETA may be sent late.
        let count_changed =
            self.last_sent.total_waiting != snapshot.total_waiting() && since >= LIVENESS_INTERVAL;
        if count_changed || (silent && snapshot.state() == LineState::Open) {
            return Some(self.send(snapshot));
        }
        silent.then_some(StreamEvent::KeepAlive)
    }

    /// Returns the page texts if the client shows another revision; `None` if it shows no page.
    fn newer_page(&self, snapshot: &TicketSnapshot) -> Option<Arc<wire::PageTexts>> {
        let (shown, cached) = self.page.as_ref().zip(snapshot.cached.as_ref())?;
        (*shown != cached.page.revision).then(|| Arc::clone(&cached.page))
    }

    fn send(&mut self, snapshot: &TicketSnapshot) -> StreamEvent {
        self.record_sent(snapshot);
        self.finished = snapshot.view.status().is_final();
        let token = self.token.clone();
        let ticket = self.service.ticket_response(
            &self.ticket,
            token,
            snapshot.cached.as_deref(),
            snapshot.view,
        );
        StreamEvent::Ticket { id: self.last_sent.id.clone(), ticket: Box::new(ticket) }
    }

    fn record_sent(&mut self, snapshot: &TicketSnapshot) {
        self.last_sent = LastSent {
            id: snapshot.id(),
            view: Some(snapshot.view),
            line: snapshot.line_facts(),
            total_waiting: snapshot.total_waiting(),
            at: Instant::now(),
        };
    }

    fn reconnect_event(&mut self) -> StreamEvent {
        self.finished = true;
        StreamEvent::Reconnect(fastrand::u64(RECONNECT_DELAY_MS))
    }

    fn is_waiting(&self) -> bool {
        self.last_sent.view.is_none_or(TicketView::is_waiting)
    }

    /// Returns the delay until the next check. An entry is checked when it expires, at the latest.
    fn check_delay(&self, snapshot: &TicketSnapshot) -> Duration {
        match snapshot.view {
            TicketView::Entered { expires_at, .. } => {
                let now = self.service.clock.now_ms();
                let next_check_at =
                    (now + ENTRY_CHECK_INTERVAL_MS).next_multiple_of(ENTRY_CHECK_ALIGN_MS);
                Duration::from_millis(next_check_at.min(expires_at + 1).saturating_sub(now))
            }
            TicketView::Waiting { .. } | TicketView::Ended(_) => LIVENESS_INTERVAL,
        }
    }
}
