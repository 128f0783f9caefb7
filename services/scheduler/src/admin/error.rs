//! The errors of admin calls and their HTTP responses.

use axum::response::{IntoResponse, Response};
use daegi_domain::{ItemId, PolicyError};
use daegi_runtime::{Code, Problem};
use daegi_store::Error as StoreError;

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
    #[error(transparent)]
    Policy(#[from] PolicyError),
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
            AdminError::ItemExists(_) | AdminError::Conflict(_) => {
                Self::new(Code::Conflict, detail)
            }
            AdminError::Policy(_) | AdminError::Invalid(_) => Self::invalid(detail),
        }
    }
}

/// Returns 503 for every store error, because the request did not cause it: the store recovers
/// without help, or the operator finds the cause in the log.
fn store_problem(error: &StoreError) -> Problem {
    match error {
        StoreError::Unavailable(_)
        | StoreError::InvalidUrl(_)
        | StoreError::UnsupportedVersion { .. }
        | StoreError::Eviction { .. }
        | StoreError::PartitionMismatch { .. }
        | StoreError::Corrupt(_)
        | StoreError::StaleEpoch(_) => unavailable(&error.to_string()),
    }
}

/// Logs the cause and hides it from the response, because it may name hosts.
fn unavailable(cause: &str) -> Problem {
    tracing::warn!(error = cause, "admin call failed");
    Problem::unavailable("the store does not answer, try again shortly")
}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        Problem::from(self).into_response()
    }
}
