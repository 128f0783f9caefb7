//! The errors of admin calls and their HTTP responses.

use axum::response::{IntoResponse, Response};
use daegi_domain::{ItemId, LaneName, OperatorName, PolicyError};
use daegi_runtime::{Code, Problem};
use daegi_store::Error as StoreError;

use super::COMPONENT;

/// Why an admin call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdminError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the store did not answer in time")]
    StoreTimeout,
    #[error("there is no item {0}")]
    ItemNotFound(ItemId),
    #[error("there is an item {0} already")]
    ItemExists(ItemId),
    #[error("item {0} was changed by others at the same time, try again")]
    Conflict(ItemId),
    #[error(
        "tickets are in the line of {0}, so that its opening cannot be replaced: \
         change only its times, or reset the line first"
    )]
    LineNotEmpty(ItemId),
    #[error(
        "the lane \"{1}\" of {0} has tickets, so that it cannot be renamed, moved or removed: \
         wait until its entries end, or reset the line"
    )]
    LaneNotEmpty(ItemId, String),
    #[error("PUT cannot change the opening of {0}: use PATCH …/policy")]
    OpeningInPut(ItemId),
    #[error("PUT cannot change the lanes of {0}: use PATCH …/policy")]
    LanesInPut(ItemId),
    #[error("the line of {0} has no opening ahead")]
    NotScheduled(ItemId),
    #[error(
        "the draw of {0} has begun: the line opens when the round of its beacon is known; \
         hand in its signature with PUT …/opening/beacon if it does not arrive"
    )]
    DrawBegun(ItemId),
    #[error(
        "the line of {0} waits for no beacon: its opening has none, or it has opened or closed"
    )]
    NoBeacon(ItemId),
    #[error("the draw of {item} uses round {expected} of drand, not {given}")]
    OtherRound { item: ItemId, expected: u64, given: u64 },
    #[error("drand's quicknet did not sign round {0} with this signature")]
    NotSigned(u64),
    #[error("item {0} has no lane {1}: set the lanes of its policy first")]
    LaneNotFound(ItemId, LaneName),
    #[error("the block list has at most {1} rules{sep}{0}: remove some first", sep = if .0.is_empty() { "" } else { " " })]
    AccessListFull(&'static str, u32),
    #[error("there is an operator {} already", .0.as_str())]
    OperatorExists(OperatorName),
    #[error("there is no operator {0}")]
    OperatorNotFound(String),
    #[error("there are {0} operators, which is the limit: remove some")]
    TooManyOperators(u32),
    #[error("no random bytes can be made: {0}; try again")]
    NoRandomness(getrandom::Error),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("another simulation runs, try again when it has ended")]
    SimulationRuns,
    #[error("the simulation failed; the log has the cause")]
    SimulationFailed,
    #[error("{0}")]
    Invalid(String),
    /// The request did not parse; the extractor made the problem.
    #[error(transparent)]
    Request(#[from] Problem),
}

impl From<AdminError> for Problem {
    fn from(error: AdminError) -> Self {
        let detail = error.to_string();
        match error {
            AdminError::Request(problem) => problem,
            AdminError::Store(error) => store_problem(&error),
            AdminError::StoreTimeout => unavailable(&detail),
            AdminError::ItemNotFound(_) => Self::new(Code::ItemNotFound, detail),
            AdminError::OperatorNotFound(_) => Self::new(Code::NotFound, detail),
            AdminError::ItemExists(_)
            | AdminError::Conflict(_)
            | AdminError::LineNotEmpty(_)
            | AdminError::LaneNotEmpty(..)
            | AdminError::OpeningInPut(_)
            | AdminError::LanesInPut(_)
            | AdminError::NotScheduled(_)
            | AdminError::DrawBegun(_)
            | AdminError::NoBeacon(_)
            | AdminError::AccessListFull(..)
            | AdminError::SimulationRuns
            | AdminError::OperatorExists(_)
            | AdminError::TooManyOperators(_)
            | AdminError::LaneNotFound(..) => Self::new(Code::Conflict, detail),
            AdminError::NoRandomness(_) => {
                tracing::error!(component = COMPONENT, error = detail, "random generator failed");
                Self::unavailable(detail)
            }
            AdminError::SimulationFailed => Self::new(Code::Internal, detail),
            AdminError::Policy(_)
            | AdminError::Invalid(_)
            | AdminError::OtherRound { .. }
            | AdminError::NotSigned(_) => Self::invalid(detail),
        }
    }
}

/// Returns 503 for every store error, because the request did not cause it. The detail is the text
/// of the error where it names no hosts and says what to set.
fn store_problem(error: &StoreError) -> Problem {
    let cause = error.to_string();
    match error {
        StoreError::Unavailable(_) => unavailable(&cause),
        StoreError::StaleEpoch(_) => {
            tracing::warn!(component = COMPONENT, error = cause, "admin call failed");
            Problem::unavailable("another scheduler leads now, try again")
        }
        StoreError::InvalidUrl(_) => unusable(
            &cause,
            "the store rejects the URL or the login of this scheduler; its log has the cause, correct --store (DAEGI_STORE) and restart it",
        ),
        StoreError::Corrupt(_) => unusable(
            &cause,
            "the store holds data that this version cannot read; the log of this scheduler has the cause, upgrade it if a newer version wrote the data, otherwise correct the data",
        ),
        StoreError::UnsupportedVersion { .. } => unusable(&cause, &format!("{cause}: upgrade it")),
        StoreError::Eviction { .. } | StoreError::PartitionMismatch { .. } => {
            unusable(&cause, &cause)
        }
    }
}

/// The store does not answer. Logs the cause and hides it from the response, because it may name
/// hosts.
fn unavailable(cause: &str) -> Problem {
    tracing::warn!(component = COMPONENT, error = cause, "admin call failed");
    Problem::unavailable("the store does not answer, try again shortly")
}

/// The store answers and cannot be used. The response has no `Retry-After`, because only an operator
/// can help.
fn unusable(cause: &str, detail: &str) -> Problem {
    tracing::error!(component = COMPONENT, error = cause, "admin call failed, a retry cannot help");
    Problem { retry_after: None, ..Problem::unavailable(detail.to_owned()) }
}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        Problem::from(self).into_response()
    }
}
