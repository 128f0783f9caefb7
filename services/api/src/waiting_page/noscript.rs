//! Content for browsers without scripts. The browser reloads the page by `Refresh`.

use daegi_domain::{Eta, LineState, Status};
use daegi_runtime::problem::BlockedNotice;

use super::messages::Messages;
use super::{CodeForm, PageState};
use crate::wire::{Link, Links, Ticket};

/// Bounds of the reload interval: each reload transfers the whole page.
const REFRESH_SECONDS: std::ops::RangeInclusive<u64> = 3..=20;
/// Delay before the redirect, long enough to read the text.
const GO_AFTER_SECONDS: u64 = 3;

/// The state of the page; the values of `templates/noscript.html`.
#[derive(Default)]
pub(super) struct Still<'a> {
    pub(super) head: &'a str,
    pub(super) text: &'a str,
    /// Set while the ticket waits.
    pub(super) place: Option<Place>,
    /// Where an admitted user continues.
    pub(super) entry_url: Option<&'a str>,
    /// The text of the button that joins.
    pub(super) join: Option<&'a str>,
    /// Where a user whose wait is over can go: URL and text.
    pub(super) way: Option<(&'a str, &'a str)>,
    /// Whether the ticket waits, so that a code moves it.
    pub(super) waits: bool,
    /// Why a rule blocks the user.
    pub(super) blocked: Option<&'a BlockedNotice>,
    /// The state of a line that refuses joins, for the script; otherwise empty.
    pub(super) line_state: &'static str,
}

/// The position of a waiting ticket, with the numbers and the ETA that the page shows.
pub(super) struct Place {
    pub(super) position: String,
    pub(super) ahead: String,
    pub(super) behind: String,
    pub(super) eta: String,
    /// How much is left; empty if that is unknown.
    pub(super) stock: String,
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
        | PageState::Blocked(_)
        | PageState::LineClosed
        | PageState::Missing => None,
    }
}

impl<'a> Still<'a> {
    pub(super) fn new(
        state: &'a PageState,
        (name, has_lanes): (&'a str, bool),
        messages: &'static Messages,
        links: Option<&'a Links>,
    ) -> Self {
        let still = Self::of_state(state, (name, has_lanes), messages);
        let link = links.and_then(|links| link_in(state, links));
        let label = |link: &'a Link| link.label.as_deref().unwrap_or(messages.get("goOn"));
        Self { way: link.map(|link| (link.url.as_str(), label(link))), ..still }
    }

    fn of_state(
        state: &'a PageState,
        (name, has_lanes): (&'a str, bool),
        messages: &'static Messages,
    ) -> Self {
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
            // With an invitation code, a user joins without a challenge.
            PageState::NeedsScripts if has_lanes => {
                texts("scriptsHead", "scriptsCode").with_join(messages.get("join"))
            }
            PageState::NeedsScripts => texts("scriptsHead", "scriptsText"),
            PageState::Blocked(notice) => {
                Self { blocked: Some(&**notice), ..texts("blockedHead", "blockedText") }
            }
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
        Self { head, text, ..Self::default() }
    }

    fn with_join(self, word: &'a str) -> Self {
        Self { join: Some(word), ..self }
    }
}

impl Place {
    fn new(ticket: &Ticket, position: u64, messages: &Messages) -> Self {
        Self {
            position: with_separators(position),
            ahead: with_separators(position.saturating_sub(1)),
            behind: with_separators(ticket.waiting_count.saturating_sub(position)),
            eta: match ticket.line_state {
                LineState::Open => messages.eta(ticket.eta_seconds),
                LineState::Scheduled | LineState::Lobby => messages.eta(until_opening(ticket)),
                _ => messages.get("etaStill").to_owned(),
            },
            stock: ticket.stock_ahead.map_or_else(String::new, |stock| messages.stock(&stock)),
        }
    }
}

/// Returns the link that the operator set for this state.
fn link_in<'a>(state: &PageState, links: &'a Links) -> Option<&'a Link> {
    let link = match state {
        PageState::SoldOut => &links.sold_out,
        PageState::Closed | PageState::LineClosed => &links.closed,
        PageState::Holds(ticket) => match (ticket.status, ticket.line_state) {
            (Status::Waiting, LineState::SoldOut) => &links.sold_out,
            (Status::Waiting, LineState::Disabled | LineState::Closed) => &links.closed,
            (Status::Waiting | Status::Enterable, _) => return None,
            (Status::Completed, _) => &links.completed,
            _ => &links.home,
        },
        _ => return None,
    };
    link.as_ref()
}

/// Formats a number in groups of three digits. All page languages read the comma, although Spanish and Vietnamese prefer
/// a full stop, which the script uses.
fn with_separators(number: u64) -> String {
    let (mut rest, mut groups) = (number, String::new());
    while rest >= 1000 {
        groups = format!(",{:03}{groups}", rest % 1000);
        rest /= 1000;
    }
    format!("{rest}{groups}")
}

/// Returns the time until the opening as an ETA: no ticket is admitted before.
fn until_opening(ticket: &Ticket) -> Option<Eta> {
    let seconds = ticket.opens_in_ms?.div_ceil(1000);
    Some(Eta { p10: seconds, p50: seconds, p90: seconds })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators() {
        let shown = [0, 7, 999, 1_000, 12_345, 1_234_567].map(with_separators);
        assert_eq!(shown, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
    }
}
