use daegi_domain::{EndReason, Eta, LineState, Millis, Policy, Status, Ticket, rate, rfc3339};
use daegi_store::{Place, Standing};

use super::Room;
use crate::error::{Error, Result};
use crate::lines::View;
use crate::wire;

/// How far the time to the next poll is spread, so that people who came together do not stay so.
const JITTER: f64 = 0.2;

/// The shortest time to the next poll that an early turn asks for.
const MIN_POLL_MS: u64 = 1_000;

/// The longest time to the next poll while a line waits for people it lost.
const RECOVERING_MS: u64 = 5_000;

/// What became of a ticket, as people are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Waiting { position: u64 },
    Entered { at: Millis, expires_at: Millis },
    Ended(EndReason),
}

impl Found {
    /// An entry whose time is up is over, even while the leader has not got round to ending it.
    pub(super) fn of(place: Place, now: Millis) -> Self {
        match place {
            Place::Waiting { position } => Self::Waiting { position },
            Place::Entered { expires_at, .. } if expires_at <= now => {
                Self::Ended(EndReason::Expired)
            }
            Place::Entered { at, expires_at } => Self::Entered { at, expires_at },
        }
    }

    /// What can be told of a standing; the rest is an error.
    pub(super) fn told(standing: Standing, now: Millis) -> Result<Self> {
        match standing {
            Standing::At(place) => Ok(Self::of(place, now)),
            Standing::Ended(reason) => Ok(Self::Ended(reason)),
            Standing::Restarted => Err(Error::Restarted),
            Standing::NotFound => Err(Error::ItemNotFound),
            Standing::Forgotten => Err(Error::Forgotten),
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

impl Room {
    /// The JSON of a ticket.
    pub(super) fn ticket_json(
        &self,
        ticket: &Ticket,
        token: String,
        view: Option<&View>,
        found: Found,
    ) -> wire::Ticket {
        // What the warm-up does is not what people do.
        if !ticket.item.is_reserved() {
            self.meters.polled(found.status());
        }
        let bare = bare(ticket, token, view, found.status());
        match (found, view) {
            (Found::Waiting { position }, Some(view)) => waiting(bare, view, position),
            (Found::Entered { at, expires_at }, view) => {
                self.enterable(bare, ticket, view, at, expires_at)
            }
            (Found::Waiting { .. } | Found::Ended(_), _) => bare,
        }
    }

    fn enterable(
        &self,
        bare: wire::Ticket,
        ticket: &Ticket,
        view: Option<&View>,
        at: Millis,
        expires_at: Millis,
    ) -> wire::Ticket {
        let pass = self.pass_keys.pass(ticket, self.ticket_keys.uuid(ticket), at, expires_at);
        wire::Ticket {
            entry_url: view.and_then(|view| view.line.item.policy.entry_url(&pass, &bare.token)),
            pass: Some(pass),
            pass_expires_at: Some(rfc3339(expires_at)),
            ..bare
        }
    }
}

/// A ticket of somebody who neither waits nor is inside.
fn bare(ticket: &Ticket, token: String, view: Option<&View>, status: Status) -> wire::Ticket {
    wire::Ticket {
        item_id: ticket.item.clone(),
        user_id: ticket.user.clone(),
        token,
        status,
        position: 0,
        waiting_count: view.map_or(0, View::people),
        line_state: view.map_or(LineState::Disabled, |view| view.state),
        eta_seconds: None,
        poll_after_ms: 0,
        pass: None,
        pass_expires_at: None,
        entry_url: None,
    }
}

/// A ticket of somebody who waits. The view knows how fast the line moves, so that a poll only divides.
fn waiting(bare: wire::Ticket, view: &View, position: u64) -> wire::Ticket {
    let eta = view.pace.map(|pace| pace.eta(position));
    let policy = &view.line.item.policy;
    let wait = poll_after_ms(eta, view.earliest_turn_ms(position), policy);
    wire::Ticket {
        position,
        // The position may be newer than the view.
        waiting_count: bare.waiting_count.max(position),
        eta_seconds: eta,
        poll_after_ms: match view.state {
            // Whoever was lost is to be back soon.
            LineState::Recovering => wait.min(RECOVERING_MS),
            _ => wait,
        },
        ..bare
    }
}

/// When to ask again: a tenth of the expected wait, and no later than the earliest turn that the
/// quota allows, spread. Never so late that a client that obeys counts as unseen, or that more than
/// half of its pass is over when it learns of its turn.
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
    fn polls_are_spread_by_a_fifth_and_come_twice_per_grace_period() {
        let eta = Some(Eta { p50: 100, p90: 200 });
        let policy = |grace_seconds| Policy { grace_seconds, ..Policy::default() };
        let many: Vec<u64> = (0..1000).map(|_| poll_after_ms(eta, None, &policy(0))).collect();
        assert!(many.iter().all(|ms| (8_000..=12_000).contains(ms)));
        assert!(many.iter().any(|ms| *ms < 9_000) && many.iter().any(|ms| *ms > 11_000));
        assert!((0..1000).all(|_| poll_after_ms(eta, None, &policy(20)) <= 10_000));
    }

    #[test]
    fn a_client_that_obeys_learns_of_its_turn_before_half_of_its_pass_is_over() {
        let eta = Some(Eta { p50: 100_000, p90: 200_000 });
        for pass_ttl_seconds in [1, 4, 10, 600] {
            let policy = Policy { pass_ttl_seconds, grace_seconds: 0, ..Policy::default() };
            let longest = u64::from(pass_ttl_seconds) * 500;
            assert!((0..1000).all(|_| poll_after_ms(eta, None, &policy) <= longest));
        }
    }

    #[test]
    fn a_turn_that_may_come_early_is_asked_for_early() {
        let eta = Some(Eta { p50: 100_000, p90: 200_000 });
        let policy = Policy { grace_seconds: 0, ..Policy::default() };
        assert!((0..1000).all(|_| poll_after_ms(eta, Some(2_000), &policy) <= 2_400));
        assert!((0..1000).all(|_| poll_after_ms(None, Some(50), &policy) >= 800));
    }

    #[test]
    fn an_entry_whose_time_is_up_is_over() {
        let place = Place::Entered { at: 5, expires_at: 10 };
        assert_eq!(Found::of(place, 9), Found::Entered { at: 5, expires_at: 10 });
        assert_eq!(Found::of(place, 10), Found::Ended(EndReason::Expired));
    }
}
