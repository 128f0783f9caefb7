//! The domain types of the waiting room and the rules on them.
//!
//! Everything here is pure: no clock, no store, no network. Time always comes in as an argument.
//!
//! | module | contents |
//! |---|---|
//! | [`ids`] | [`ItemId`], [`UserId`], [`Number`], [`Rank`], [`Lane`]: parsed once at the edge |
//! | [`ticket`] | a ticket, its [`Status`] and how it ends |
//! | [`token`] | the signed text of a ticket: sign, verify, rotate keys |
//! | [`pass`] | the short-lived JWT of an entry and its public keys |
//! | [`item`] | items and their updates |
//! | [`policy`] | the policy of one line |
//! | [`pace`] | how fast a line admits: fixed, or following the origin |
//! | [`invitation`] | invitation codes of lanes |
//! | [`handover`] | codes that hand a ticket over to another device |
//! | [`challenge`] | challenges at the join: proofs of work |
//! | [`access`] | block and allow lists |
//! | [`signals`] | signals that a ticket belongs to a program |
//! | [`control`] | the settings of an item as Kafka keeps them |
//! | [`lane`] | the lanes of a line: names and shares of the rate |
//! | [`opening`] | when a line opens and closes |
//! | [`branding`] | the look of its waiting page |
//! | [`page_text`] | a text of an operator, in one language or in several |
//! | [`language`] | the languages of pages |
//! | [`line_rules`] | the rules of a line: may it take or admit tickets, its state, positions |
//! | [`draw`] | the fair draw: permutation, Merkle tree, seed |
//! | [`reclaimed`] | numbers a line lost and their holders reclaimed |
//! | [`liveness`] | which numbers were seen when: time slices and pages |
//! | [`rate`] | how fast a line moved, and the poll interval |
//! | [`entry_flow`], [`wait`] | how entries come and go; the ETA of a position, and whether the stock is enough |
//! | [`event`] | published and consumed events |
//! | [`topic`] | Kafka topics |
//! | [`trace`] | trace and span ids of tickets |
//! | [`heartbeat`] | heartbeats of processes |
//! | [`history`] | the figures of a line minute by minute |
//! | [`visit`] | what is counted about visits |
//! | [`operator`] | operators with a name, a role and a token |

pub mod access;
pub mod branding;
pub mod challenge;
pub mod control;
mod departed;
pub mod draw;
pub mod entry_flow;
pub mod event;
pub mod handover;
pub mod heartbeat;
pub mod history;
pub mod ids;
pub mod invitation;
pub mod item;
pub mod lane;
pub mod language;
mod limits;
pub mod line_rules;
pub mod liveness;
pub mod opening;
pub mod operator;
pub mod pace;
pub mod page_text;
pub mod pass;
pub mod policy;
pub mod rate;
pub mod reclaimed;
mod settings;
pub mod signals;
pub mod ticket;
pub mod token;
pub mod topic;
pub mod trace;
mod varint;
pub mod visit;
pub mod wait;

pub use access::{
    AccessError, AccessEvent, AccessEventKind, AccessKind, AccessList, AccessRecord, AccessRule,
    AccessSubject, Decision, NewAccessRule, Requester, RuleId, RuleOrigin, RuleText,
};
pub use branding::{Branding, BrandingError, Colour, FrameAncestor, PageLink, PageLinks};
pub use challenge::{Challenge, ChallengeError, ChallengePolicy};
pub use control::{ItemControl, LineControl, SealedReveal};
pub use departed::Departed;
pub use draw::{Cohort, DrawRecord};
pub use entry_flow::EntryFlow;
pub use event::inbound::{ItemChanged, OrderClosed, Outcome};
pub use event::{
    ControlChanged, LineClosed, LineEvent, LineOpened, PublishedDraw, ReadControl, TicketEvent,
    TokenActivated, TokenClosed,
};
pub use handover::{HANDOVER_LIFETIME_MS, HandoverError};
pub use heartbeat::{Heartbeat, RecentEvent};
pub use history::{HourLog, MinuteFigures};
pub use ids::{IdError, ItemId, Lane, MAX_CLOCK_LAG_MS, Number, Rank, UserId};
pub use invitation::{Invitation, InvitationError};
pub use item::{
    Item, ItemChange, ItemName, ItemUpdate, ItemUpdateKind, LogPosition, NameError, PolicyChange,
};
pub use lane::{LaneError, LaneName, LanePolicy, MAX_LANES};
pub use language::{Language, UnknownLanguage};
pub use limits::StoreLimits;
pub use line_rules::{JoinRefusal, LineState, RECOVERY_HOLD_MS};
pub use liveness::LivenessPage;
pub use opening::{
    Beacon, BeaconError, BeaconKind, CohortRange, Draw, DrawBeacon, Drawn, Opening, OpeningChange,
    OpeningError, Order, Phase, Reveal, beacon_of, first_round_from, round_published_at,
};
pub use operator::{
    ItemPrefix, OperatorError, OperatorName, OperatorRecord, OperatorRole, OperatorToken,
};
pub use pace::controller::{PaceReason, PaceState};
pub use pace::{AdaptivePace, PaceError, PacePolicy};
pub use page_text::PageText;
pub use pass::{Jwks, PassClaims, PassError, PassKeys};
pub use policy::{Guard, Mode, OnRejoin, Policy, PolicyError};
pub use rate::{Eta, Rate};
pub use reclaimed::Reclaimed;
pub use settings::Settings;
pub use signals::{Signal, SignalCounts, Signals};
pub use ticket::{EndReason, Status, Ticket};
pub use token::{KeyError, TicketKeys, TokenError};
pub use topic::{DuplicateTopicName, Topic, TopicName, TopicNameError, Topics};
pub use trace::{SampleRatio, SampleRatioError, SpanId, TicketStep, TraceContext, TraceId};
pub use visit::{VisitCounts, VisitLabel, VisitStep};
pub use wait::{LaneFacts, StockChance, StockOutlook, WaitModel};

/// Milliseconds since the Unix epoch.
pub type Millis = u64;

/// Formats a time as RFC 3339 with milliseconds, as all times in JSON.
pub fn rfc3339(at: Millis) -> String {
    let moment = std::time::UNIX_EPOCH + std::time::Duration::from_millis(at);
    humantime::format_rfc3339_millis(moment).to_string()
}

/// Parses a time in RFC 3339, with any offset.
///
/// # Errors
/// A text for the sender of the time.
pub fn parse_rfc3339(text: &str) -> Result<Millis, String> {
    opening::timestamp::parse(text)
}
