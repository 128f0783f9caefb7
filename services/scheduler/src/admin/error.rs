//! Every way an admin call can fail, and the one place where that becomes an answer.

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
    Slow,
    #[error("there is no item {0}")]
    NoItem(ItemId),
    #[error("there is an item {0} already")]
    Exists(ItemId),
    #[error("item {0} was changed by others at the same time, try again")]
    Contended(ItemId),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("{0}")]
    Invalid(String),
    /// The request did not even parse; the extractor has said why.
    #[error(transparent)]
    Request(#[from] Problem),
}

impl From<AdminError> for Problem {
    fn from(error: AdminError) -> Self {
        let detail = error.to_string();
        match error {
            AdminError::Request(problem) => problem,
            AdminError::Store(error) => of_store(&error),
            AdminError::Slow => away(&detail),
            AdminError::NoItem(_) => Self::new(Code::ItemNotFound, detail),
            AdminError::Exists(_) | AdminError::Contended(_) => Self::new(Code::Conflict, detail),
            AdminError::Policy(_) | AdminError::Invalid(_) => Self::invalid(detail),
        }
    }
}

/// Trouble of the store is never the operator's fault and never a 500: all of it can pass, by
/// itself or once somebody has seen the log.
fn of_store(error: &StoreError) -> Problem {
    match error {
        StoreError::Unavailable(_)
        | StoreError::Address(_)
        | StoreError::Version { .. }
        | StoreError::Eviction { .. }
        | StoreError::Partitions { .. }
        | StoreError::Corrupt(_)
        | StoreError::StaleEpoch(_) => away(&error.to_string()),
    }
}

/// What the store said is for the log; it may name hosts.
fn away(cause: &str) -> Problem {
    tracing::warn!(error = cause, "admin call failed");
    Problem::unavailable("the store does not answer, try again shortly")
}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        Problem::from(self).into_response()
    }
}
