//! The page for people without scripts: whole as it is, and fetched again by `Refresh`.

use daegi_domain::{LineState, Status};

use super::words::{self, Words};
use super::{Page, Standing, escape};
use crate::wire::Ticket;

/// Not more often than this, however near the front: every refresh is a whole page.
const REFRESH_SECONDS: std::ops::RangeInclusive<u64> = 3..=20;
/// Long enough to read that it is one's turn.
const GO_AFTER_SECONDS: u64 = 3;

/// When a browser without scripts comes back, and where to.
pub(super) fn refresh(standing: &Standing) -> String {
    let content = match standing {
        Standing::Holds(ticket) => match (ticket.status, &ticket.entry_url) {
            (Status::Waiting, _) => {
                let seconds = ticket.poll_after_ms.div_ceil(1000);
                seconds.clamp(*REFRESH_SECONDS.start(), *REFRESH_SECONDS.end()).to_string()
            }
            (Status::Enterable, Some(url)) => format!("{GO_AFTER_SECONDS};url={}", escape(url)),
            _ => return String::new(),
        },
        Standing::SoldOut | Standing::Closed | Standing::Trouble => {
            REFRESH_SECONDS.end().to_string()
        }
        Standing::Outside | Standing::Refused(_) | Standing::Missing => return String::new(),
    };
    format!("<noscript><meta http-equiv=\"refresh\" content=\"{content}\"></noscript>")
}

/// Where the person stands, in words and numbers.
pub(super) fn render(page: &Page<'_>) -> String {
    let words = words::words(page.language);
    let content = match &page.standing {
        Standing::Outside => {
            format!(
                "<h1>{}</h1><p>{}</p>{}",
                escape(page.look.title.as_deref().unwrap_or(page.name)),
                escape(words.get("joinText")),
                form(words, "join"),
            )
        }
        Standing::Holds(ticket) => holds(ticket, words),
        Standing::SoldOut => told(words, "soldOutHead", "soldOutText"),
        Standing::Closed => told(words, "disabledHead", "disabledText"),
        Standing::Refused(head) => told(words, head, "tryLater") + &form(words, "join"),
        Standing::Missing => told(words, "missingHead", "missingText"),
        Standing::Trouble => told(words, "troubleHead", "troubleText"),
    };
    let message = page.look.message.as_deref().map(|message| {
        let text = escape(message);
        format!("<p class=\"message\">{text}</p>")
    });
    format!("<div class=\"still\">{content}{}</div>", message.unwrap_or_default())
}

fn holds(ticket: &Ticket, words: &Words) -> String {
    match ticket.status {
        Status::Waiting => {
            let (head, text) = waiting(ticket);
            told(words, head, text) + &place(ticket, words) + &note(words.get("refreshes"))
        }
        Status::Enterable => {
            let text = if ticket.entry_url.is_some() { "turnWait" } else { "turnNoAddress" };
            let enter = ticket.entry_url.as_deref().map(|url| {
                let word = escape(words.get("enter"));
                format!("<a class=\"button\" href=\"{}\">{word}</a>", escape(url))
            });
            told(words, "turnHead", text) + &enter.unwrap_or_default()
        }
        Status::Expired => told(words, "expiredHead", "expiredText") + &form(words, "joinAgain"),
        Status::Completed => told(words, "completedHead", "completedText"),
        Status::Left => told(words, "leftHead", "leftText") + &form(words, "joinAgain"),
        Status::Abandoned => {
            told(words, "abandonedHead", "abandonedText") + &form(words, "joinAgain")
        }
        Status::Replaced => told(words, "replacedHead", "replacedText") + &form(words, "joinAgain"),
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

fn place(ticket: &Ticket, words: &Words) -> String {
    let eta = match ticket.line_state {
        LineState::Open => words.eta(ticket.eta_seconds),
        _ => words.get("etaStill").to_owned(),
    };
    let behind = ticket.waiting_count.saturating_sub(ticket.position);
    let fact = |class: &str, word: &str, value: &str| {
        let word = escape(words.get(word));
        format!("<div class=\"{class}\"><dt>{word}</dt><dd>{}</dd></div>", escape(value))
    };
    [
        format!(
            "<p class=\"number\"><strong>{}</strong> <span>{}</span></p><dl>",
            ticket.position,
            escape(words.get("place")),
        ),
        fact("", "ahead", &ticket.position.saturating_sub(1).to_string()),
        fact("", "behind", &behind.to_string()),
        fact("wide", "wait", &eta),
        "</dl>".to_owned(),
    ]
    .concat()
}

fn told(words: &Words, head: &str, text: &str) -> String {
    format!("<h1>{}</h1><p>{}</p>", escape(words.get(head)), escape(words.get(text)))
}

fn note(text: &str) -> String {
    format!("<p>{}</p>", escape(text))
}

fn form(words: &Words, word: &str) -> String {
    let word = escape(words.get(word));
    format!("<form method=\"post\"><button class=\"button\">{word}</button></form>")
}
