//! What the api counts. Handles are made once: a poll must not look up a name.

use daegi_domain::Status;
use metrics::{Counter, Histogram, counter, gauge, histogram};

use crate::Error;
use crate::room::Kind;

/// People who asked to join, by `result`: `new`, `existing`, `refused` or `failed`.
pub(crate) const JOINS: &str = "daegi_api_joins_total";
/// Joins that got no ticket, by `reason`: `item_not_found`, `disabled`, `sold_out`, `line_full` or
/// `store_full`.
pub(crate) const JOINS_REFUSED: &str = "daegi_api_joins_refused_total";
/// Tickets answered, by `status`.
pub(crate) const POLLS: &str = "daegi_api_polls_total";
/// How long polls take that are not kept waiting for news.
pub(crate) const POLL_SECONDS: &str = "daegi_api_poll_seconds";
/// Calls of the store that failed or took too long, by `call`.
pub(crate) const STORE_ERRORS: &str = "daegi_api_store_errors_total";
/// How many people one call of the store joins.
pub(crate) const JOIN_BATCH: &str = "daegi_api_join_batch_people";
/// How many tickets one call of the store is asked about.
pub(crate) const ASK_BATCH: &str = "daegi_api_ask_batch_tickets";
/// How long a pod takes to learn a line anew.
pub(crate) const REFRESH: &str = "daegi_api_refresh_seconds";
/// Lines this pod keeps in view.
pub(crate) const LINES: &str = "daegi_api_lines";
/// Connections held for tickets now, by `kind`: `events`, `socket` or `long_poll`.
pub(crate) const STREAMS: &str = "daegi_api_streams";
/// Held connections that a newer one of the same ticket ended, by `kind`.
pub(crate) const HELD_SUPERSEDED: &str = "daegi_api_held_superseded_total";
/// Connections that were not held because the pod holds as many as it may, by `kind`.
pub(crate) const HELD_REFUSED: &str = "daegi_api_held_refused_total";
/// Requests refused because their ticket is older than `DAEGI_TICKET_MAX_AGE`.
pub(crate) const TOO_OLD: &str = "daegi_api_tickets_too_old_total";
/// Marks of people seen that the store took, in pages.
pub(crate) const SEEN_PAGES: &str = "daegi_api_seen_pages_total";

/// The statuses in the order of their discriminants, as Prometheus shows them.
const STATUSES: [&str; 7] =
    ["WAITING", "ENTERABLE", "EXPIRED", "COMPLETED", "LEFT", "ABANDONED", "REPLACED"];

/// Why joins are refused, as Prometheus shows them, in the order of [`refusal_index`].
const REFUSALS: [&str; 5] = ["item_not_found", "disabled", "sold_out", "line_full", "store_full"];

/// Where a refusal is counted; none if the join failed.
fn refusal_index(error: &Error) -> Option<usize> {
    match error {
        Error::ItemNotFound => Some(0),
        Error::Disabled => Some(1),
        Error::SoldOut => Some(2),
        Error::LineFull => Some(3),
        Error::StoreFull => Some(4),
        _ => None,
    }
}

/// The handles of everything that is counted per request.
pub(crate) struct Meters {
    joined_new: Counter,
    joined_existing: Counter,
    join_refused: Counter,
    join_failed: Counter,
    refusals: [Counter; 5],
    polls: [Counter; 7],
    pub(crate) poll_seconds: Histogram,
    pub(crate) join_batch: Histogram,
    pub(crate) ask_batch: Histogram,
    pub(crate) refresh: Histogram,
    pub(crate) seen_pages: Counter,
}

impl Meters {
    pub(crate) fn new() -> Self {
        // From the start, so that none can be told from nobody knows.
        for kind in Kind::LABELS {
            gauge!(STREAMS, "kind" => kind).increment(0);
            counter!(HELD_SUPERSEDED, "kind" => kind).increment(0);
            counter!(HELD_REFUSED, "kind" => kind).increment(0);
        }
        counter!(TOO_OLD).increment(0);
        Self {
            joined_new: counter!(JOINS, "result" => "new"),
            joined_existing: counter!(JOINS, "result" => "existing"),
            join_refused: counter!(JOINS, "result" => "refused"),
            join_failed: counter!(JOINS, "result" => "failed"),
            refusals: REFUSALS.map(|reason| counter!(JOINS_REFUSED, "reason" => reason)),
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

    /// Whether the person has a new place, or why not.
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
    fn every_status_counts_under_its_own_name() {
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
