//! Content for browsers without scripts. The browser reloads the page by `Refresh`.

use daegi_domain::{LineState, Status};

use super::messages::{self, Messages};
use super::{Page, PageState, escape};
use crate::wire::Ticket;

/// Bounds of the reload interval: each reload transfers the whole page.
const REFRESH_SECONDS: std::ops::RangeInclusive<u64> = 3..=20;
/// Delay before the redirect, long enough to read the text.
const GO_AFTER_SECONDS: u64 = 3;

/// Returns the `Refresh` of the page: when to reload and, for an entry, the URL to continue at.
pub(super) fn refresh(state: &PageState) -> String {
    let content = match state {
        PageState::Holds(ticket) => match (ticket.status, &ticket.entry_url) {
            (Status::Waiting, _) => {
                let seconds = ticket.poll_after_ms.div_ceil(1000);
                seconds.clamp(*REFRESH_SECONDS.start(), *REFRESH_SECONDS.end()).to_string()
            }
            (Status::Enterable, Some(url)) => format!("{GO_AFTER_SECONDS};url={}", escape(url)),
            _ => return String::new(),
        },
        PageState::SoldOut | PageState::Closed | PageState::Trouble => {
            REFRESH_SECONDS.end().to_string()
        }
        PageState::Outside | PageState::Refused(_) | PageState::Missing => return String::new(),
    };
    format!("<noscript><meta http-equiv=\"refresh\" content=\"{content}\"></noscript>")
}

/// Renders the state of the page.
pub(super) fn render(page: &Page<'_>) -> String {
    let messages = messages::messages(page.language);
    let content = match &page.state {
        PageState::Outside => {
            format!(
                "<h1>{}</h1><p>{}</p>{}",
                escape(page.look.title.as_deref().unwrap_or(page.name)),
                escape(messages.get("joinText")),
                form(messages, "join"),
            )
        }
        PageState::Holds(ticket) => holds(ticket, messages),
        PageState::SoldOut => heading(messages, "soldOutHead", "soldOutText"),
        PageState::Closed => heading(messages, "disabledHead", "disabledText"),
        PageState::Refused(head) => heading(messages, head, "tryLater") + &form(messages, "join"),
        PageState::Missing => heading(messages, "missingHead", "missingText"),
        PageState::Trouble => heading(messages, "troubleHead", "troubleText"),
    };
    let message = page.look.message.as_deref().map(|message| {
        let text = escape(message);
        format!("<p class=\"message\">{text}</p>")
    });
    format!("<div class=\"still\">{content}{}</div>", message.unwrap_or_default())
}

fn holds(ticket: &Ticket, messages: &Messages) -> String {
    match ticket.status {
        Status::Waiting => {
            let (head, text) = waiting(ticket);
            heading(messages, head, text)
                + &place(ticket, messages)
                + &note(messages.get("refreshes"))
        }
        Status::Enterable => {
            let text = if ticket.entry_url.is_some() { "turnWait" } else { "turnNoAddress" };
            let enter = ticket.entry_url.as_deref().map(|url| {
                let word = escape(messages.get("enter"));
                format!("<a class=\"button\" href=\"{}\">{word}</a>", escape(url))
            });
            heading(messages, "turnHead", text) + &enter.unwrap_or_default()
        }
        Status::Expired => {
            heading(messages, "expiredHead", "expiredText") + &form(messages, "joinAgain")
        }
        Status::Completed => heading(messages, "completedHead", "completedText"),
        Status::Left => heading(messages, "leftHead", "leftText") + &form(messages, "joinAgain"),
        Status::Abandoned => {
            heading(messages, "abandonedHead", "abandonedText") + &form(messages, "joinAgain")
        }
        Status::Replaced => {
            heading(messages, "replacedHead", "replacedText") + &form(messages, "joinAgain")
        }
    }
}

fn waiting(ticket: &Ticket) -> (&'static str, &'static str) {
    match ticket.line_state {
        LineState::Open if ticket.position == 1 => ("nextHead", "waitingText"),
        LineState::Open => ("waitingHead", "waitingText"),
        LineState::Paused => ("pausedHead", "pausedText"),
        LineState::Held => ("heldHead", "heldText"),
        LineState::SoldOut => ("soldOutHead", "soldOutText"),
        LineState::Disabled => ("disabledHead", "disabledText"),
        LineState::Recovering => ("recoveringHead", "recoveringText"),
    }
}

fn place(ticket: &Ticket, messages: &Messages) -> String {
    let eta = match ticket.line_state {
        LineState::Open => messages.eta(ticket.eta_seconds),
        _ => messages.get("etaStill").to_owned(),
    };
    let behind = ticket.waiting_count.saturating_sub(ticket.position);
    let fact = |class: &str, word: &str, value: &str| {
        let word = escape(messages.get(word));
        format!("<div class=\"{class}\"><dt>{word}</dt><dd>{}</dd></div>", escape(value))
    };
    [
        format!(
            "<p class=\"number\"><strong>{}</strong> <span>{}</span></p><dl>",
            ticket.position,
            escape(messages.get("place")),
        ),
        fact("", "ahead", &ticket.position.saturating_sub(1).to_string()),
        fact("", "behind", &behind.to_string()),
        fact("wide", "wait", &eta),
        "</dl>".to_owned(),
    ]
    .concat()
}

fn heading(messages: &Messages, head: &str, text: &str) -> String {
    format!("<h1>{}</h1><p>{}</p>", escape(messages.get(head)), escape(messages.get(text)))
}

fn note(text: &str) -> String {
    format!("<p>{}</p>", escape(text))
}

fn form(messages: &Messages, word: &str) -> String {
    let word = escape(messages.get(word));
    format!("<form method=\"post\"><button class=\"button\">{word}</button></form>")
}
