//! Metrics of the api. Handles are created once, so that a poll needs no lookup by name.

use ::metrics::{
    Counter, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
use daegi_domain::{ChallengeError, Signal, Status};
use daegi_identity::IdentityError;

use crate::Error;
use crate::access::BlockedCall;
use crate::signals;
use crate::tickets::Transport;

/// Joins, by `result`: `new`, `existing`, `refused` or `failed`.
pub(crate) const JOINS: &str = "daegi_api_joins_total";
/// Refused joins, by `reason`: `item_not_found`, `disabled`, `sold_out`, `line_full`,
/// `store_full`, `left_too_often`, `not_open_yet`, `line_closed`, `invalid_code`, `rate_limited`,
/// `challenge_required` or `blocked`.
pub(crate) const JOINS_REFUSED: &str = "daegi_api_joins_refused_total";
/// Challenges at joins, by `result`: `issued`, `raised` (those of them with more bits than the base, because their source
/// is busy), `solved`, or why a solution was refused: `invalid`, `expired`, `wrong_nonce` or `wrong_response`. With each
/// refused solution a new challenge is issued.
pub(crate) const CHALLENGES: &str = "daegi_api_challenges_total";
/// Verifications of widgets, by `result`: `confirmed`, `refused`, `unavailable` (the provider did not say), `busy` (too
/// many in flight) or `not_configured`. The last three refuse the join with 503.
pub(crate) const WIDGET_VERIFICATIONS: &str = "daegi_api_widget_verifications_total";
/// Duration of verifications of widgets at their provider, in seconds.
pub(crate) const WIDGET_SECONDS: &str = "daegi_api_widget_seconds";
/// Tickets returned to clients, by `status`.
pub(crate) const POLLS: &str = "daegi_api_polls_total";
/// Duration of polls without `waitMs`, in seconds.
pub(crate) const POLL_SECONDS: &str = "daegi_api_poll_seconds";
/// Store calls that failed or timed out, by `call`.
pub(crate) const STORE_ERRORS: &str = "daegi_api_store_errors_total";
/// Users per store call of a batch of joins.
pub(crate) const JOIN_BATCH: &str = "daegi_api_join_batch_people";
/// Tickets per store call that resolves a batch.
pub(crate) const ASK_BATCH: &str = "daegi_api_ask_batch_tickets";
/// Duration of a refresh of a line, in seconds.
pub(crate) const REFRESH: &str = "daegi_api_refresh_seconds";
/// Cached lines.
pub(crate) const LINES: &str = "daegi_api_lines";
/// Held connections, by `kind`: `events`, `socket` or `long_poll`.
pub(crate) const STREAMS: &str = "daegi_api_streams";
/// Held connections that a newer one of the same ticket ended, by `kind`.
pub(crate) const HELD_SUPERSEDED: &str = "daegi_api_held_superseded_total";
/// Connections that were not held because the pod has reached its maximum, by `kind`.
pub(crate) const HELD_REFUSED: &str = "daegi_api_held_refused_total";
/// Requests refused because their ticket is older than `DAEGI_TICKET_MAX_AGE`.
pub(crate) const TOO_OLD: &str = "daegi_api_tickets_too_old_total";
/// Requests that a limit of `DAEGI_SOURCE_…`, `DAEGI_USER_JOINS` or `DAEGI_TICKET_POLLS` refused, by `limit`.
pub(crate) const RATE_LIMITED: &str = "daegi_api_rate_limited_total";
/// Requests refused because a rule blocks them, by `call`: `join`, `ticket` (polls and streams), `page` or `verify`.
pub(crate) const BLOCKED: &str = "daegi_api_blocked_total";
/// Tickets that this pod ended because a rule blocks their users.
pub(crate) const BLOCKED_TICKETS: &str = "daegi_api_blocked_tickets_total";
/// Events of blocked users that are missing in the export, because there were too many.
pub(crate) const BLOCKED_UNRECORDED: &str = "daegi_api_blocked_unrecorded_total";
/// Rules of the block and allow list that this pod enforces.
pub(crate) const ACCESS_RULES: &str = "daegi_api_access_rules";
/// Tickets that got a signal, by `signal`: `source`, `headers`, `early_polls`, `no_page` or `honeypot`.
pub(crate) const SIGNALS: &str = "daegi_api_signals_total";
/// Tickets whose signals were not counted, because too many waited to be written.
pub(crate) const SIGNALS_UNRECORDED: &str = "daegi_api_signals_unrecorded_total";
/// Visits that are missing in the history, because the store refused them or the pod counts too many lines.
pub(crate) const VISITS_DROPPED: &str = "daegi_api_visits_dropped_total";
/// Reports of guards about origins, by `result`: `added`, or `refused` because too many instances report.
pub(crate) const ORIGIN_REPORTS: &str = "daegi_api_origin_reports_total";
/// Flushed pages of marks of seen tickets.
pub(crate) const SEEN_PAGES: &str = "daegi_api_seen_pages_total";

/// Values of the label `status`, in the order of the discriminants.
const STATUSES: [&str; 7] =
    ["WAITING", "ENTERABLE", "EXPIRED", "COMPLETED", "LEFT", "ABANDONED", "REPLACED"];

/// Values of the label `reason`, in the order of [`refusal_index`].
const REFUSALS: [&str; 13] = [
    "item_not_found",
    "disabled",
    "sold_out",
    "line_full",
    "store_full",
    "left_too_often",
    "not_open_yet",
    "line_closed",
    "invalid_code",
    "rate_limited",
    "challenge_required",
    "blocked",
    "invalid_identity",
];

/// Values of the label `result` of challenges.
const CHALLENGE_RESULTS: [&str; 7] =
    ["issued", "solved", "invalid", "expired", "wrong_nonce", "wrong_response", "raised"];

/// Returns the index of a refusal's counter, or `None` if the join failed for another reason.
fn refusal_index(error: &Error) -> Option<usize> {
    match error {
        Error::ItemNotFound => Some(0),
        Error::Disabled => Some(1),
        Error::SoldOut => Some(2),
        Error::LineFull => Some(3),
        Error::StoreFull => Some(4),
        Error::LeftTooOften { .. } => Some(5),
        Error::NotOpenYet { .. } => Some(6),
        Error::LineClosed => Some(7),
        Error::Invitation(_) | Error::InvitationUsed => Some(8),
        Error::TooOften { .. } => Some(9),
        Error::ChallengeRequired { .. } => Some(10),
        Error::Blocked(_) => Some(11),
        Error::OtherIdentity => Some(12),
        Error::Identity(error) if *error != IdentityError::KeysUnavailable => Some(12),
        _ => None,
    }
}

/// Returns the index of a refused solution's counter.
fn refused_solution_index(error: ChallengeError) -> usize {
    match error {
        ChallengeError::Invalid => 2,
        ChallengeError::Expired => 3,
        ChallengeError::WrongNonce => 4,
        ChallengeError::WrongResponse => 5,
    }
}

/// Handles of the metrics that are recorded per request.
pub(crate) struct Metrics {
    joined_new: Counter,
    joined_existing: Counter,
    join_refused: Counter,
    join_failed: Counter,
    refusals: [Counter; REFUSALS.len()],
    challenges: [Counter; CHALLENGE_RESULTS.len()],
    polls: [Counter; 7],
    pub(crate) poll_seconds: Histogram,
    pub(crate) join_batch: Histogram,
    pub(crate) ask_batch: Histogram,
    pub(crate) refresh: Histogram,
    pub(crate) seen_pages: Counter,
}

/// Registers the HELP texts of all metrics.
fn describe() {
    for (name, help) in [
        (JOINS, "Joins, by result"),
        (JOINS_REFUSED, "Refused joins, by reason"),
        (CHALLENGES, "Challenges at joins, by result"),
        (WIDGET_VERIFICATIONS, "Verifications of widgets at their provider, by result"),
        (POLLS, "Tickets returned to clients, by status"),
        (STORE_ERRORS, "Store calls that failed or timed out, by call"),
        (HELD_SUPERSEDED, "Held connections that a newer one of the same ticket ended, by kind"),
        (HELD_REFUSED, "Connections not held because the pod is at its limit, by kind"),
        (TOO_OLD, "Requests refused because their ticket is past its maximum age"),
        (RATE_LIMITED, "Requests over a limit of their source, user or ticket, by limit"),
        (BLOCKED, "Requests refused because a rule blocks them, by call"),
        (BLOCKED_TICKETS, "Tickets ended because a rule blocks their users"),
        (BLOCKED_UNRECORDED, "Events of blocked users that are missing in the export"),
        (SIGNALS, "Tickets that got a signal of a program, by signal"),
        (SIGNALS_UNRECORDED, "Tickets whose signals were not counted"),
        (VISITS_DROPPED, "Visits that are missing in the history"),
        (ORIGIN_REPORTS, "Reports of guards about origins, by result"),
        (SEEN_PAGES, "Flushed pages of marks of seen tickets"),
    ] {
        describe_counter!(name, Unit::Count, help);
    }
    describe_gauge!(ACCESS_RULES, Unit::Count, "Rules of the block and allow list");
    describe_gauge!(LINES, Unit::Count, "Cached lines");
    describe_gauge!(STREAMS, Unit::Count, "Held connections, by kind");
    describe_histogram!(POLL_SECONDS, Unit::Seconds, "Duration of polls without waitMs");
    describe_histogram!(WIDGET_SECONDS, Unit::Seconds, "Duration of verifications of widgets");
    describe_histogram!(REFRESH, Unit::Seconds, "Duration of refreshes of a line");
    describe_histogram!(JOIN_BATCH, Unit::Count, "Users per store call that joins a batch");
    describe_histogram!(ASK_BATCH, Unit::Count, "Tickets per store call that resolves a batch");
}

impl Metrics {
    pub(crate) fn new() -> Self {
        describe();
        // Registered at start, so that 0 differs from no data.
        for kind in Transport::LABELS {
            gauge!(STREAMS, "kind" => kind).increment(0);
            counter!(HELD_SUPERSEDED, "kind" => kind).increment(0);
            counter!(HELD_REFUSED, "kind" => kind).increment(0);
        }
        for call in BlockedCall::LABELS {
            counter!(BLOCKED, "call" => call).increment(0);
        }
        for signal in Signal::ALL {
            counter!(SIGNALS, "signal" => signals::label(signal)).increment(0);
        }
        counter!(SIGNALS_UNRECORDED).increment(0);
        counter!(BLOCKED_TICKETS).increment(0);
        counter!(BLOCKED_UNRECORDED).increment(0);
        gauge!(ACCESS_RULES).increment(0);
        counter!(TOO_OLD).increment(0);
        counter!(VISITS_DROPPED).increment(0);
        for result in ["added", "refused"] {
            counter!(ORIGIN_REPORTS, "result" => result).increment(0);
        }
        Self {
            joined_new: counter!(JOINS, "result" => "new"),
            joined_existing: counter!(JOINS, "result" => "existing"),
            join_refused: counter!(JOINS, "result" => "refused"),
            join_failed: counter!(JOINS, "result" => "failed"),
            refusals: REFUSALS.map(|reason| counter!(JOINS_REFUSED, "reason" => reason)),
            challenges: CHALLENGE_RESULTS.map(|result| counter!(CHALLENGES, "result" => result)),
            polls: STATUSES.map(|status| counter!(POLLS, "status" => status)),
            poll_seconds: histogram!(POLL_SECONDS),
            join_batch: histogram!(JOIN_BATCH),
            ask_batch: histogram!(ASK_BATCH),
            refresh: histogram!(REFRESH),
            seen_pages: counter!(SEEN_PAGES),
        }
    }

    pub(crate) fn polled(&self, status: Status) {
        self.polls[status as usize].increment(1);
    }

    /// Records an issued challenge, why the solution before it was refused, and whether it has more bits than the base.
    pub(crate) fn challenged(&self, refused: Option<ChallengeError>, is_raised: bool) {
        self.challenges[0].increment(1);
        self.challenges[6].increment(is_raised.into());
        if let Some(error) = refused {
            self.challenges[refused_solution_index(error)].increment(1);
        }
    }

    pub(crate) fn challenge_solved(&self) {
        self.challenges[1].increment(1);
    }

    /// Records the outcome of a join: whether the ticket is new, or the error.
    pub(crate) fn joined(&self, outcome: Result<bool, &Error>) {
        let counter = match outcome {
            Ok(true) => &self.joined_new,
            Ok(false) => &self.joined_existing,
            Err(error) => match refusal_index(error) {
                Some(reason) => {
                    self.refusals[reason].increment(1);
                    &self.join_refused
                }
                None => &self.join_failed,
            },
        };
        counter.increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_counted_under_its_own_reason() {
        use daegi_domain::JoinRefusal;
        let all = [
            JoinRefusal::NotFound,
            JoinRefusal::Disabled,
            JoinRefusal::SoldOut,
            JoinRefusal::LineFull,
            JoinRefusal::StoreFull,
            JoinRefusal::LeftTooOften { wait_ms: 1 },
            JoinRefusal::NotOpenYet,
            JoinRefusal::LineClosed,
            JoinRefusal::InvitationUsed,
        ];
        let reasons = all.map(|refusal| refusal_index(&refusal.into()));
        assert_eq!(reasons, [0, 1, 2, 3, 4, 5, 6, 7, 8].map(Some));
    }

    #[test]
    fn every_refused_solution_is_counted_under_its_own_result() {
        let all = [
            ChallengeError::Invalid,
            ChallengeError::Expired,
            ChallengeError::WrongNonce,
            ChallengeError::WrongResponse,
        ];
        let results = all.map(|error| CHALLENGE_RESULTS[refused_solution_index(error)]);
        assert_eq!(results, ["invalid", "expired", "wrong_nonce", "wrong_response"]);
    }

    #[test]
    fn every_status_is_counted_under_its_own_label() {
        let all = [
            Status::Waiting,
            Status::Enterable,
            Status::Expired,
            Status::Completed,
            Status::Left,
            Status::Abandoned,
            Status::Replaced,
        ];
        for status in all {
            let name = serde_json::to_value(status).unwrap();
            assert_eq!(name, STATUSES[status as usize]);
        }
    }
}
