//! The words of the waiting room, and the rules that need nothing but the words.
//!
//! Everything here is pure: no clock, no store, no network. Time always comes in as an argument.
//!
//! | module | what lives there |
//! |---|---|
//! | [`ids`] | [`ItemId`], [`UserId`], [`Number`]: parsed once, trusted afterwards |
//! | [`ticket`] | a place in a line, its [`Status`] and how it may end |
//! | [`token`] | the ticket's text: mint, verify, rotate keys |
//! | [`pass`] | the short-lived proof of entry and its public keys |
//! | [`item`] | what people wait for |
//! | [`policy`] | the rules of one line |
//! | [`look`] | how its waiting page looks |
//! | [`language`] | what pages speak |
//! | [`mod@line`] | settings, the exact position, what a pod knows about a line |
//! | [`line_rules`] | what decides whether a line admits, for everything that asks |
//! | [`reclaimed`] | people a line lost and got back |
//! | [`liveness`] | who was seen when: time slices and pages of numbers |
//! | [`rate`] | how fast a line moves: ETA and poll interval |
//! | [`event`] | what the rest of the company is told, and what it tells us |
//! | [`topic`] | where those events travel |
//! | [`trace`] | the ids under which OpenTelemetry knows what happened to a ticket |
//! | [`presence`] | what processes say about themselves |

pub mod event;
pub mod ids;
pub mod item;
pub mod language;
mod limits;
pub mod line;
pub mod line_rules;
pub mod liveness;
pub mod look;
pub mod pass;
pub mod policy;
pub mod presence;
pub mod rate;
pub mod reclaimed;
pub mod ticket;
pub mod token;
pub mod topic;
pub mod trace;

pub use event::inbound::{ItemChanged, OrderClosed, Outcome};
pub use event::{LineEvent, TokenActivated, TokenClosed};
pub use ids::{IdError, ItemId, MAX_CLOCK_LAG_MS, Number, UserId};
pub use item::{Item, ItemChange, ItemName, ItemNews, LogPosition, NameError, Said};
pub use language::Language;
pub use limits::StoreLimits;
pub use line::{Departed, LineState, RECOVERY_HOLD_MS, Settings};
pub use liveness::SeenPage;
pub use look::{Colour, Look, LookError};
pub use pass::{Jwks, PassClaims, PassError, PassKeys};
pub use policy::{Guard, Mode, OnRejoin, Policy, PolicyError};
pub use presence::{Happened, Presence};
pub use rate::{Eta, Rate};
pub use reclaimed::Reclaimed;
pub use ticket::{EndReason, Status, Ticket};
pub use token::{KeyError, TicketKeys, TokenError};
pub use topic::{Topic, TopicName, TopicNameError, TopicTaken, Topics};
pub use trace::{Ratio, RatioError, SpanId, Step, TraceContext, TraceId};

/// Milliseconds since the Unix epoch.
pub type Millis = u64;

/// Writes a moment as RFC 3339 with milliseconds, the one way times appear in JSON.
pub fn rfc3339(at: Millis) -> String {
    let moment = std::time::UNIX_EPOCH + std::time::Duration::from_millis(at);
    humantime::format_rfc3339_millis(moment).to_string()
}
