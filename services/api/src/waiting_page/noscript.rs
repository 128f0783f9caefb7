//! Content for browsers without scripts. The browser reloads the page by `Refresh`.

use daegi_domain::{Eta, LineState, Status};

use super::messages::Messages;
use super::{CodeForm, PageState};
use crate::wire::Ticket;

/// Bounds of the reload interval: each reload transfers the whole page.
const REFRESH_SECONDS: std::ops::RangeInclusive<u64> = 3..=20;
/// Delay before the redirect, long enough to read the text.
const GO_AFTER_SECONDS: u64 = 3;

/// The state of the page; the values of `templates/noscript.html`.
pub(super) struct Still<'a> {
    pub(super) head: &'a str,
    pub(super) text: &'a str,
    /// Set while the ticket waits.
    pub(super) place: Option<Place>,
    /// Where an admitted user continues.
    pub(super) entry_url: Option<&'a str>,
    /// The text of the button that joins.
    pub(super) join: Option<&'a str>,
    /// Whether the ticket waits, so that a code moves it.
    pub(super) waits: bool,
    /// The state of a line that refuses joins, for the script; otherwise empty.
    pub(super) line_state: &'static str,
}

/// The position of a waiting ticket, with the numbers and the ETA that the page shows.
pub(super) struct Place {
    pub(super) position: u64,
    pub(super) ahead: u64,
    pub(super) behind: u64,
    pub(super) eta: String,
}

/// Returns the `Refresh` of the page: when to reload and, for an entry, the URL to continue at.
pub(super) fn refresh(state: &PageState, code: CodeForm) -> Option<String> {
    match state {
        PageState::Holds(ticket) => match (ticket.status, &ticket.entry_url) {
            // A reload would clear the field.
            (Status::Waiting, _) if code != CodeForm::Folded => None,
            (Status::Waiting, _) => {
                let seconds = ticket.poll_after_ms.div_ceil(1000);
                Some(seconds.clamp(*REFRESH_SECONDS.start(), *REFRESH_SECONDS.end()).to_string())
            }
            (Status::Enterable, Some(url)) => Some(format!("{GO_AFTER_SECONDS};url={url}")),
            _ => None,
        },
        PageState::SoldOut | PageState::Closed | PageState::Scheduled | PageState::Trouble => {
            Some(REFRESH_SECONDS.end().to_string())
        }
        PageState::Outside
        | PageState::Refused(_)
        | PageState::NeedsScripts
        | PageState::LineClosed
        | PageState::Missing => None,
    }
}

impl<'a> Still<'a> {
    pub(super) fn new(state: &'a PageState, name: &'a str, messages: &'static Messages) -> Self {
        let texts = |head: &str, text: &str| Self::texts(messages, head, text);
        match state {
            PageState::Outside => {
                Self { head: name, ..texts("", "joinText").with_join(messages.get("join")) }
            }
            PageState::Holds(ticket) => Self::ticket(ticket, messages),
            PageState::SoldOut => {
                Self { line_state: "SOLD_OUT", ..texts("soldOutHead", "soldOutText") }
            }
            PageState::Closed => {
                Self { line_state: "DISABLED", ..texts("disabledHead", "disabledText") }
            }
            PageState::Scheduled => {
                Self { line_state: "SCHEDULED", ..texts("scheduledHead", "scheduledStill") }
            }
            PageState::LineClosed => {
                Self { line_state: "CLOSED", ..texts("closedOutsideHead", "closedOutside") }
            }
            PageState::Refused(head @ "identityHead") => {
                texts(head, "identityText").with_join(messages.get("join"))
            }
            PageState::Refused(head) => texts(head, "tryLater").with_join(messages.get("join")),
            PageState::NeedsScripts => texts("scriptsHead", "scriptsText"),
            PageState::Missing => texts("missingHead", "missingText"),
            PageState::Trouble => texts("troubleHead", "troubleText"),
        }
    }

    fn ticket(ticket: &'a Ticket, messages: &'static Messages) -> Self {
        let texts = |head: &str, text: &str| Self::texts(messages, head, text);
        let ended = |head: &str, text: &str| texts(head, text).with_join(messages.get("joinAgain"));
        match ticket.status {
            Status::Waiting => {
                let (head, text) = waiting(ticket);
                let place = |position| Place::new(ticket, position, messages);
                let position = ticket.position.filter(|_| ticket.line_state != LineState::Closed);
                let waits = ticket.line_state != LineState::Closed;
                Self { place: position.map(place), waits, ..texts(head, text) }
            }
            Status::Enterable => {
                let entry_url = ticket.entry_url.as_deref();
                let text = if entry_url.is_some() { "turnWait" } else { "turnNoAddress" };
                Self { entry_url, ..texts("turnHead", text) }
            }
            Status::Expired => ended("expiredHead", "expiredText"),
            Status::Completed => texts("completedHead", "completedText"),
            Status::Left => ended("leftHead", "leftText"),
            Status::Abandoned => ended("abandonedHead", "abandonedText"),
            Status::Replaced => ended("replacedHead", "replacedText"),
        }
    }

    fn texts(messages: &'static Messages, head: &str, text: &str) -> Self {
        let (head, text) = (messages.get(head), messages.get(text));
        Self { head, text, place: None, entry_url: None, join: None, waits: false, line_state: "" }
    }

    fn with_join(self, word: &'a str) -> Self {
        Self { join: Some(word), ..self }
    }
}

impl Place {
    fn new(ticket: &Ticket, position: u64, messages: &Messages) -> Self {
        Self {
            position,
            ahead: position.saturating_sub(1),
            behind: ticket.waiting_count.saturating_sub(position),
            eta: match ticket.line_state {
                LineState::Open => messages.eta(ticket.eta_seconds),
                LineState::Scheduled | LineState::Lobby => messages.eta(until_opening(ticket)),
                _ => messages.get("etaStill").to_owned(),
            },
        }
    }
}

/// Returns the time until the opening as an ETA: no ticket is admitted before.
fn until_opening(ticket: &Ticket) -> Option<Eta> {
    let seconds = ticket.opens_in_ms?.div_ceil(1000);
    Some(Eta { p50: seconds, p90: seconds })
}

fn waiting(ticket: &Ticket) -> (&'static str, &'static str) {
    match ticket.line_state {
        LineState::Open if ticket.position == Some(1) => ("nextHead", "waitingText"),
        LineState::Open => ("waitingHead", "waitingText"),
        LineState::Paused => ("pausedHead", "pausedText"),
        LineState::Held => ("heldHead", "heldText"),
        LineState::SoldOut => ("soldOutHead", "soldOutText"),
        LineState::Disabled => ("disabledHead", "disabledText"),
        LineState::Recovering => ("recoveringHead", "recoveringText"),
        LineState::Scheduled | LineState::Lobby if ticket.drawing => ("drawingHead", "drawingText"),
        LineState::Scheduled | LineState::Lobby if ticket.position.is_none() => {
            ("lobbyHead", "lobbyDraw")
        }
        LineState::Scheduled | LineState::Lobby => ("lobbyHead", "lobbyArrival"),
        LineState::Closed => ("closedHead", "closedText"),
    }
}
