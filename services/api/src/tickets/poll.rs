//! Polls and long polls: from a token to the JSON of its ticket.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::lane::share::LaneShare;
use daegi_domain::{
    Branding, ChallengePolicy, EndReason, Eta, Item, ItemId, ItemName, Lane, LaneName, LanePolicy,
    LineState, Millis, Policy, Status, Ticket, UserId, lane, rate, rfc3339, round_published_at,
};
use daegi_store::{LiveState, TicketState};
use tokio::time::{Instant, sleep_until};

use super::connections::Transport;
use super::{TicketService, UnverifiedToken};
use crate::access::{BlockedCall, Client};
use crate::error::{Error, Result};
use crate::lines::{CachedLine, LineHandle, LineKey};
use crate::timeouts::{with_request_timeout, with_store_timeout};
use crate::wire::{self, OpeningTimes, StockAhead};

/// Interval at which an open long poll or stream marks its ticket as seen: half of the shortest
/// grace period (10 s).
pub(super) const LIVENESS_INTERVAL: Duration = Duration::from_secs(5);

/// Random spread of `pollAfterMs`, ±20 %, so that clients that joined together do not poll together.
const JITTER: f64 = 0.2;

/// Minimum of `pollAfterMs` if the turn may come early.
const MIN_POLL_MS: u64 = 1_000;

/// Maximum of `pollAfterMs` while a line recovers from data loss.
const RECOVERING_POLL_MS: u64 = 5_000;

/// Maximum of `pollAfterMs` in a lobby.
const LOBBY_POLL_MS: u64 = 30_000;

/// How far the first polls after an opening are spread.
const LOBBY_SPREAD_MS: u64 = 3_000;

/// The state of a ticket as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TicketView {
    Waiting { position: Option<u64> },
    Entered { at: Millis, expires_at: Millis },
    Ended(EndReason),
}

/// A ticket and its line at one time.
pub(super) struct TicketSnapshot {
    /// `None` if the item was removed: its entries live until they end.
    pub(super) cached: Option<Arc<CachedLine>>,
    pub(super) view: TicketView,
}

/// What the waiting page shows of an item.
pub(crate) struct ItemSummary {
    pub(crate) name: ItemName,
    pub(crate) look: Branding,
    pub(crate) state: LineState,
    pub(crate) page: Arc<wire::PageTexts>,
    pub(crate) has_lanes: bool,
    pub(crate) challenge: ChallengePolicy,
    /// Whether a ticket ends when its user is absent for long.
    pub(crate) ends_absent: bool,
}

impl TicketView {
    /// Converts the state of a live ticket. An entry past its expiry counts as expired even before
    /// the leader has ended it.
    pub(super) fn from_live(place: LiveState, now: Millis) -> Self {
        match place {
            LiveState::Waiting { position } => Self::Waiting { position },
            LiveState::Entered { expires_at, .. } if expires_at <= now => {
                Self::Ended(EndReason::Expired)
            }
            LiveState::Entered { admitted_at: at, expires_at } => Self::Entered { at, expires_at },
        }
    }

    /// Converts the state of a ticket.
    ///
    /// # Errors
    /// If the line was restarted, or the item was removed or is unknown to the store.
    pub(super) fn from_state(state: TicketState, now: Millis) -> Result<Self> {
        match state {
            TicketState::Live(place) => Ok(Self::from_live(place, now)),
            TicketState::Ended(reason) => Ok(Self::Ended(reason)),
            TicketState::Restarted => Err(Error::Restarted),
            TicketState::ItemRemoved => Err(Error::ItemNotFound),
            TicketState::ItemUnknown => Err(Error::ItemUnknown),
        }
    }

    pub(super) fn status(self) -> Status {
        match self {
            Self::Waiting { .. } => Status::Waiting,
            Self::Entered { .. } => Status::Enterable,
            Self::Ended(reason) => reason.into(),
        }
    }

    pub(super) fn is_waiting(self) -> bool {
        self.status() == Status::Waiting
    }
}

impl TicketSnapshot {
    fn differs_from(&self, other: &Self) -> bool {
        self.view != other.view || self.line_facts() != other.line_facts()
    }

    /// Returns what a waiting client sees of the line: its state and when it opens.
    pub(super) fn line_facts(&self) -> (LineState, Option<Millis>) {
        let opens_at = |cached: &Arc<CachedLine>| cached.line.item.opens_at();
        (self.state(), self.cached.as_ref().and_then(opens_at))
    }

    /// Returns the state of the line; `DISABLED` if the item was removed.
    pub(super) fn state(&self) -> LineState {
        self.cached.as_ref().map_or(LineState::Disabled, |cached| cached.state)
    }

    pub(super) fn total_waiting(&self) -> u64 {
        self.cached.as_ref().map_or(0, |cached| cached.total_waiting())
    }

    /// Returns the event id of the snapshot: equal on every pod for everything that a client sees as
    /// equal. The line does not affect an entry, so its state is not part of that id.
    pub(super) fn id(&self) -> String {
        let state = self.state();
        match self.view {
            TicketView::Waiting { position } => {
                let position = position.unwrap_or(0);
                match self.line_facts().1.filter(|_| state == LineState::Lobby) {
                    Some(opens_at) => format!("WAITING.{position}.{state:?}.{opens_at}"),
                    None => format!("WAITING.{position}.{state:?}"),
                }
            }
            TicketView::Entered { expires_at, .. } => format!("ENTERED.{expires_at}"),
            TicketView::Ended(reason) => format!("ENDED.{}", reason.code()),
        }
    }
}

impl TicketService {
    /// Returns the ticket of a token. Needs only the keys, so that forged and expired tokens cost
    /// next to nothing.
    pub(super) fn verify_token(&self, presented: &UnverifiedToken) -> Result<Ticket> {
        let now = self.clock.now_ms();
        let ticket = self.ticket_keys.verify_at(&presented.item, &presented.token, now)?;
        let named = presented.user.as_deref();
        if named.is_some_and(|user| user != ticket.user.as_str()) {
            return Err(Error::OtherUser);
        }
        Ok(ticket)
    }

    /// Returns the user of a token, or `None` if the token is invalid.
    pub(crate) fn verified_user(&self, presented: &UnverifiedToken) -> Option<UserId> {
        self.verify_token(presented).ok().map(|ticket| ticket.user)
    }

    /// Answers a poll without waiting, or returns `None` if that needs the store or is an error.
    pub(crate) fn poll_cached(&self, presented: UnverifiedToken) -> Option<wire::Ticket> {
        let ticket = self.verify_token(&presented).ok()?;
        if !self.access.is_empty() && self.access.blocks(&ticket, &presented.client) {
            return None;
        }
        let (cached, state) = self.lines.get(&LineKey::from(&ticket))?.locate(&ticket)?;
        let view = TicketView::from_state(state, self.clock.now_ms()).ok()?;
        let response = self.ticket_response(&ticket, presented.token, Some(&cached), view);
        self.score_poll(&ticket, &response);
        Some(response)
    }

    /// Answers a poll. The response for a waiting ticket is delayed by up to `wait`, until something
    /// changes.
    pub(crate) async fn poll(
        &self,
        presented: UnverifiedToken,
        wait: Duration,
    ) -> Result<wire::Ticket> {
        let ticket = self.verify_token(&presented)?;
        self.access.require_ticket(&ticket, &presented.client, BlockedCall::Ticket)?;
        let line = with_request_timeout(self.lines.get_or_load(&LineKey::from(&ticket))).await;
        let TicketSnapshot { cached, view } = match line {
            Err(Error::ItemNotFound) => self.observe_without_item(&ticket).await?,
            line if wait.is_zero() => self.observe(&*line?, &ticket).await?,
            line => self.wait_for_change(&*line?, (&ticket, &presented.client), wait).await?,
        };
        let response = self.ticket_response(&ticket, presented.token, cached.as_deref(), view);
        // A long poll may be repeated immediately.
        if wait.is_zero() {
            self.score_poll(&ticket, &response);
        }
        Ok(response)
    }

    fn score_poll(&self, ticket: &Ticket, response: &wire::Ticket) {
        if response.status == Status::Waiting && !ticket.item.is_reserved() {
            self.signals.polled(ticket, response.poll_after_ms);
        }
    }

    /// Returns the current state of a ticket, from the cached line or from the store. Polls, long
    /// polls and streams all use this.
    pub(super) async fn observe(
        &self,
        line: &LineHandle,
        ticket: &Ticket,
    ) -> Result<TicketSnapshot> {
        let (cached, state) = match with_request_timeout(line.resolve(ticket)).await {
            Err(Error::ItemNotFound) => return self.observe_without_item(ticket).await,
            resolved => resolved?,
        };
        let view = TicketView::from_state(state, self.clock.now_ms())?;
        Ok(TicketSnapshot { cached: Some(cached), view })
    }

    /// Returns the state of a ticket whose item is missing. The store keeps the entries of a removed
    /// item until they end, and a record of the removal. An item without that record was lost with
    /// its line: its clients keep polling until it is back.
    async fn observe_without_item(&self, ticket: &Ticket) -> Result<TicketSnapshot> {
        let state = match self.lines.cached_state_without_item(ticket) {
            Some(state) => state,
            None => {
                let state = self.resolve_one(ticket).await?;
                self.lines.cache_state_without_item(ticket, state);
                state
            }
        };
        match TicketView::from_state(state, self.clock.now_ms())? {
            // The item came back between the two reads.
            TicketView::Waiting { .. } => Err(Error::ItemUnknown),
            view => Ok(TicketSnapshot { cached: None, view }),
        }
    }

    /// Returns the line of a verified ticket.
    ///
    /// # Errors
    /// [`Error::ItemRemoved`] if the item was removed and the ticket has an entry.
    pub(super) async fn line_handle(&self, ticket: &Ticket) -> Result<Arc<LineHandle>> {
        match with_request_timeout(self.lines.get_or_load(&LineKey::from(ticket))).await {
            Err(Error::ItemNotFound) => {
                self.observe_without_item(ticket).await?;
                Err(Error::ItemRemoved)
            }
            line => line,
        }
    }

    /// Resolves one ticket with a separate store call, not in a batch.
    pub(super) async fn resolve_one(&self, ticket: &Ticket) -> Result<TicketState> {
        let states = self.store.resolve(std::slice::from_ref(ticket), self.clock.now_ms());
        let states = with_store_timeout("resolve", states).await?;
        // The store returns one state per ticket, so the default is never used.
        Ok(states.first().copied().unwrap_or(TicketState::ItemUnknown))
    }

    async fn wait_for_change(
        &self,
        line: &LineHandle,
        (ticket, client): (&Ticket, &Client),
        wait: Duration,
    ) -> Result<TicketSnapshot> {
        let deadline = Instant::now() + wait;
        let mut rules = self.access.subscribe();
        // Subscribed before the first observation, so that no change is missed in between.
        let mut changes = line.subscribe_changes();
        let mut snapshot = self.observe(line, ticket).await?;
        if !snapshot.view.is_waiting() {
            return Ok(snapshot);
        }
        // A pod at its limit of long polls answers like a plain poll.
        let Some(permit) = self.connections.acquire(ticket, Transport::LongPoll) else {
            return Ok(snapshot);
        };
        while snapshot.view.is_waiting() && Instant::now() < deadline {
            let next_mark = deadline.min(Instant::now() + LIVENESS_INTERVAL);
            tokio::select! {
                // Never an error: `line` keeps the sender alive.
                _ = changes.changed() => {}
                // Never an error: the service keeps the sender alive.
                _ = rules.changed() => {}
                () = sleep_until(next_mark) => {}
                () = self.stop.cancelled() => break,
                () = permit.superseded() => break,
            }
            self.access.require_ticket(ticket, client, BlockedCall::Ticket)?;
            let current = self.observe(line, ticket).await?;
            let before = std::mem::replace(&mut snapshot, current);
            if snapshot.differs_from(&before) {
                break;
            }
        }
        Ok(snapshot)
    }

    /// Returns the public view of a line.
    pub(crate) async fn line(&self, item: &ItemId) -> Result<wire::Line> {
        let cached = with_request_timeout(self.lines.summary(&LineKey::standard(item))).await?;
        let (now, policies) = (self.clock.now_ms(), &cached.line.item.policy.lanes);
        let mut lines = vec![Arc::clone(&cached)];
        for lane in (1..=policies.len()).filter_map(Lane::numbered) {
            let key = LineKey { item: item.clone(), lane };
            lines.push(with_request_timeout(self.lines.summary(&key)).await?);
        }
        let lanes = if policies.is_empty() { Vec::new() } else { lane_views(policies, &lines) };
        let per_second: f64 = lines.iter().map(|line| line.per_second(now)).sum();
        Ok(wire::Line {
            item_id: item.clone(),
            item_name: cached.line.item.name.clone(),
            line_state: cached.state,
            waiting_count: lines.iter().map(|line| line.total_waiting()).sum(),
            entered_count: lines.iter().map(|line| line.line.entered).sum(),
            admitted_per_second: (per_second * 100.0).round() / 100.0,
            opening: OpeningTimes::new(&cached.line.item, now),
            lanes,
        })
    }

    /// Returns what the waiting page shows of an item.
    pub(crate) async fn item_summary(&self, item: &ItemId) -> Result<ItemSummary> {
        let cached = with_request_timeout(self.lines.summary(&LineKey::standard(item))).await?;
        let item = &cached.line.item;
        Ok(ItemSummary {
            name: item.name.clone(),
            look: item.policy.page.clone(),
            state: cached.state,
            page: Arc::clone(&cached.page),
            has_lanes: !item.policy.lanes.is_empty(),
            challenge: item.policy.challenge,
            ends_absent: item.policy.absence_limit_seconds().is_some(),
        })
    }

    /// Builds the response for a ticket.
    pub(super) fn ticket_response(
        &self,
        ticket: &Ticket,
        token: String,
        cached: Option<&CachedLine>,
        view: TicketView,
    ) -> wire::Ticket {
        // Polls of the warm-up, which uses a reserved item, are not counted.
        if !ticket.item.is_reserved() {
            self.metrics.polled(view.status());
        }
        let base = base_ticket(ticket, token, cached, view.status());
        match (view, cached) {
            (TicketView::Waiting { position }, Some(cached)) => {
                waiting(base, cached, position, self.clock.now_ms())
            }
            (TicketView::Entered { at, expires_at }, cached) => {
                self.enterable(base, ticket, cached, at, expires_at)
            }
            (TicketView::Waiting { .. } | TicketView::Ended(_), _) => base,
        }
    }

    fn enterable(
        &self,
        base: wire::Ticket,
        ticket: &Ticket,
        cached: Option<&CachedLine>,
        at: Millis,
        expires_at: Millis,
    ) -> wire::Ticket {
        let lane = lane_name(ticket, cached);
        let jti = self.ticket_keys.uuid(ticket);
        let pass = self.pass_keys.pass((ticket, lane), jti, at, expires_at);
        wire::Ticket {
            entry_url: cached
                .and_then(|cached| cached.line.item.policy.entry_url(&pass, &base.token)),
            pass: Some(pass),
            pass_expires_at: Some(rfc3339(expires_at)),
            ..base
        }
    }
}

/// Returns a ticket with the fields that do not depend on waiting or an entry.
fn base_ticket(
    ticket: &Ticket,
    token: String,
    cached: Option<&CachedLine>,
    status: Status,
) -> wire::Ticket {
    wire::Ticket {
        item_id: ticket.item.clone(),
        user_id: ticket.user.clone(),
        token,
        status,
        position: Some(0),
        waiting_count: cached.map_or(0, CachedLine::total_waiting),
        line_state: cached.map_or(LineState::Disabled, |cached| cached.state),
        eta_seconds: None,
        stock_ahead: None,
        poll_after_ms: 0,
        pass: None,
        pass_expires_at: None,
        entry_url: None,
        opens_at: None,
        opens_in_ms: None,
        beacon_round: None,
        drawing: false,
        cohort_rank: cached
            .and_then(|cached| cached.cohort.as_ref())
            .and_then(|table| table.cohort_rank(ticket.number)),
        lane: lane_name(ticket, cached).cloned(),
    }
}

/// Returns the name of the ticket's lane; `None` for the standard lane.
fn lane_name<'a>(ticket: &Ticket, cached: Option<&'a CachedLine>) -> Option<&'a LaneName> {
    lane::name(&cached?.line.item.policy.lanes, ticket.lane)
}

/// Returns the public view of all lanes, the standard lane first. `lines` are in the same order.
fn lane_views(policies: &[LanePolicy], lines: &[Arc<CachedLine>]) -> Vec<wire::LaneView> {
    let shares = lane::share::shares(policies);
    let names = std::iter::once(LaneName::STANDARD)
        .chain(policies.iter().map(|policy| policy.name.as_str()));
    let view = |((line, share), name): ((&Arc<CachedLine>, LaneShare), &str)| wire::LaneView {
        name: name.to_owned(),
        waiting_count: line.total_waiting(),
        share_percent: match share {
            LaneShare::Weight(weight) => Some(weight),
            LaneShare::First => None,
        },
        first: share == LaneShare::First,
    };
    lines.iter().zip(shares).zip(names).map(view).collect()
}

/// Adds the fields of a waiting ticket. How entries end and how fast the line moves is computed once per refresh,
/// so that a poll only divides.
fn waiting(
    base: wire::Ticket,
    cached: &CachedLine,
    position: Option<u64>,
    now: Millis,
) -> wire::Ticket {
    let known = cached.wait.zip(position);
    let eta = known.and_then(|(wait, position)| wait.eta(position));
    let item = &cached.line.item;
    let opening = item.policy.opening.as_ref().map(|_| OpeningTimes::new(item, now));
    let opening = opening.unwrap_or_default();
    let earliest = position.and_then(|position| cached.earliest_turn_ms(position));
    let poll_after = poll_after_ms(eta, earliest, &item.policy);
    wire::Ticket {
        position,
        // The position may be more recent than the cached line.
        waiting_count: base.waiting_count.max(position.unwrap_or(0)),
        eta_seconds: eta,
        stock_ahead: known
            .and_then(|(wait, position)| wait.stock_outlook(position))
            .map(StockAhead::from),
        poll_after_ms: match cached.state {
            // A poll reclaims a lost number, so clients poll at least every 5 s.
            LineState::Recovering => poll_after.min(RECOVERING_POLL_MS),
            LineState::Lobby => {
                lobby_poll_after_ms(opening.opens_in_ms.or_else(|| beacon_overdue_ms(item, now)))
            }
            _ => poll_after,
        },
        opens_at: opening.opens_at,
        opens_in_ms: opening.opens_in_ms,
        beacon_round: opening.beacon_round.filter(|_| cached.state == LineState::Lobby),
        drawing: opening.drawing,
        ..base
    }
}

/// Returns how long the round of a draw is late, if it is: the longer, the rarer clients poll.
fn beacon_overdue_ms(item: &Item, now: Millis) -> Option<u64> {
    item.awaited_round(now).map(|round| now.saturating_sub(round_published_at(round)))
}

/// Returns the delay until the next poll in a lobby, where absence does not count: up to half a minute, and
/// shortly after the opening, spread over 3 s.
fn lobby_poll_after_ms(opens_in_ms: Option<u64>) -> u64 {
    let opening = opens_in_ms.map(|ms| ms + fastrand::u64(..LOBBY_SPREAD_MS)).unwrap_or(u64::MAX);
    let spread = 1.0 + JITTER * (2.0 * fastrand::f64() - 1.0);
    opening.min((LOBBY_POLL_MS as f64 * spread) as u64).max(MIN_POLL_MS)
}

/// Returns the delay until the next poll in milliseconds: a tenth of the expected wait, and at most
/// the time until the earliest turn that the quota allows, with jitter. The delay is at most half
/// of the grace period, otherwise an obedient client could count as absent, and at most half of the
/// pass TTL, otherwise most of the pass could expire before the client receives it.
fn poll_after_ms(eta: Option<Eta>, earliest_turn_ms: Option<u64>, policy: &Policy) -> u64 {
    let earliest = earliest_turn_ms.map_or(u64::MAX, |ms| ms.max(MIN_POLL_MS));
    let wait = rate::poll_after_ms(eta, policy.grace_seconds).min(earliest);
    let spread = 1.0 + JITTER * (2.0 * fastrand::f64() - 1.0);
    let wait = ((wait as f64 * spread) as u64).min(u64::from(policy.pass_ttl_seconds) * 500);
    match policy.grace_seconds {
        0 => wait,
        grace => wait.min(u64::from(grace) * 500),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_spread_by_20_percent_and_come_twice_per_grace_period() {
        let eta = Some(Eta { p10: 90, p50: 100, p90: 200 });
        let policy = |grace_seconds| Policy { grace_seconds, ..Policy::default() };
        let many: Vec<u64> = (0..1000).map(|_| poll_after_ms(eta, None, &policy(0))).collect();
        assert!(many.iter().all(|ms| (8_000..=12_000).contains(ms)));
        assert!(many.iter().any(|ms| *ms < 9_000) && many.iter().any(|ms| *ms > 11_000));
        assert!((0..1000).all(|_| poll_after_ms(eta, None, &policy(20)) <= 10_000));
    }

    #[test]
    fn an_obedient_client_learns_of_its_turn_before_half_of_its_pass_has_expired() {
        let eta = Some(Eta { p10: 90_000, p50: 100_000, p90: 200_000 });
        for pass_ttl_seconds in [1, 4, 10, 600] {
            let policy = Policy { pass_ttl_seconds, grace_seconds: 0, ..Policy::default() };
            let longest = u64::from(pass_ttl_seconds) * 500;
            assert!((0..1000).all(|_| poll_after_ms(eta, None, &policy) <= longest));
        }
    }

    #[test]
    fn a_turn_that_may_come_early_is_polled_early() {
        let eta = Some(Eta { p10: 90_000, p50: 100_000, p90: 200_000 });
        let policy = Policy { grace_seconds: 0, ..Policy::default() };
        assert!((0..1000).all(|_| poll_after_ms(eta, Some(2_000), &policy) <= 2_400));
        assert!((0..1000).all(|_| poll_after_ms(None, Some(50), &policy) >= 800));
    }

    #[test]
    fn an_entry_past_its_expiry_counts_as_expired() {
        let place = LiveState::Entered { admitted_at: 5, expires_at: 10 };
        assert_eq!(TicketView::from_live(place, 9), TicketView::Entered { at: 5, expires_at: 10 });
        assert_eq!(TicketView::from_live(place, 10), TicketView::Ended(EndReason::Expired));
    }
}
