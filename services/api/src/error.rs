//! Errors of requests, and their mapping to problem codes and statuses.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use daegi_domain::invitation::InvitationError;
use daegi_domain::{ChallengeError, HandoverError, IdError, Millis, TokenError, rfc3339};
use daegi_identity::IdentityError;
use daegi_runtime::problem::{BlockedNotice, PlannedOpening, PresentedChallenge};
use daegi_runtime::{Code, Problem};
use daegi_store::JoinRefusal;
use metrics::counter;

use crate::app::COMPONENT;
use crate::metrics::TOO_OLD;

/// Result of a request.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// `Retry-After` of a transient error. Spread, so that clients that were refused together do not retry
/// together.
const RETRY_AFTER_SECONDS: std::ops::RangeInclusive<u32> = 1..=3;

/// `Retry-After` while the line or the store is full. Longer, because capacity is freed slowly and
/// frequent retries would only add load.
const FULL_RETRY_AFTER_SECONDS: std::ops::RangeInclusive<u32> = 10..=30;

/// The longest `Retry-After` before a lobby opens, because an operator may open it earlier: 60 s.
const MAX_OPENING_WAIT_MS: Millis = 60_000;

/// Why a request failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The request is malformed.
    #[error("{0}")]
    Invalid(Cow<'static, str>),
    /// An id of the request is invalid.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The path has `me` instead of a token, and the `Authorization` header is missing.
    #[error("\"me\" needs the header Authorization: Bearer <token>")]
    MissingToken,
    /// The token is invalid, too old, or of another item.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The `user-id` header names another user than the token.
    #[error("the token belongs to another user than the user-id header names")]
    OtherUser,
    /// The join has no signed identity, or one that proves no user.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The join names another user than its identity proves.
    #[error("the identity proves another user than the user-id header or userId names")]
    OtherIdentity,
    /// There is no such item.
    #[error("there is no such item")]
    ItemNotFound,
    /// The ticket is valid, but the store has no record of its item: it was lost and will be restored.
    #[error("the line is recovering from data loss; keep polling with the same token")]
    ItemUnknown,
    /// The item was removed while the ticket had an entry; there is no line to subscribe to.
    #[error("the item was removed, poll until the entry ends")]
    ItemRemoved,
    /// The line is disabled.
    #[error("the waiting queue of this item is switched off")]
    Disabled,
    /// The item has no stock.
    #[error("this item is sold out")]
    SoldOut,
    /// The lobby is not open yet.
    #[error("the line is not open yet, join when the lobby opens")]
    NotOpenYet {
        /// When the line opens, if that is planned.
        opens_at: Option<Millis>,
        /// When joins are accepted.
        lobby_at: Option<Millis>,
        /// Milliseconds until then.
        wait_ms: Millis,
    },
    /// The line has closed.
    #[error("the line has closed")]
    LineClosed,
    /// The item's line has no draw.
    #[error("the line of this item is not drawn")]
    NoDraw,
    /// The line or the store has reached its maximum of waiting tickets.
    #[error("the line is full, try again later")]
    LineFull,
    /// The store has little memory left.
    #[error("the waiting room is full, try again later")]
    StoreFull,
    /// The invitation code is invalid, or of another item, or expired.
    #[error(transparent)]
    Invitation(#[from] InvitationError),
    /// As many users as the invitation code allows have joined with it.
    #[error("the invitation code is used up")]
    InvitationUsed,
    /// The handover code is invalid, of another item, or expired.
    #[error(transparent)]
    Handover(#[from] HandoverError),
    /// The handover code, or a newer one of the same ticket, was used.
    #[error("the handover code was used")]
    HandoverUsed,
    /// The join needs a solved challenge.
    #[error("{}", refused.as_ref().map_or("this line takes new users who solve the challenge".to_owned(), ToString::to_string))]
    ChallengeRequired {
        /// Why the sent solution was refused, if there was one.
        refused: Option<ChallengeError>,
        /// A new challenge.
        challenge: Box<PresentedChallenge>,
    },
    /// The line challenges new users with a widget whose provider does not reply, or this pod has none.
    #[error("new users cannot be checked now, try again")]
    WidgetUnavailable,
    /// A rule of the block list applies to the user, the address or the user agent.
    #[error("access is blocked: {}", .0.reason)]
    Blocked(Box<BlockedNotice>),
    /// The block list cannot be used; the last one stays in force.
    #[error("the block list cannot be used: {0}")]
    AccessList(Arc<str>),
    /// The user left this line too often within ten minutes.
    #[error("this user left the line too often, join again in {} s", wait_ms.div_ceil(1000))]
    LeftTooOften {
        /// Milliseconds until the user may join again.
        wait_ms: u64,
    },
    /// The source, user or ticket sent more requests than this pod permits.
    #[error("too many {what}, try again in {} s", wait_seconds(wait))]
    TooOften {
        /// What there is too much of.
        what: &'static str,
        /// How long until another one is permitted.
        wait: Duration,
    },
    /// The ticket was issued before the line was restarted, or its line was lost.
    #[error("the line was restarted, join again")]
    Restarted,
    /// A store call failed.
    #[error(transparent)]
    Store(#[from] daegi_store::Error),
    /// A store call timed out.
    #[error("the store did not reply in time")]
    StoreTimeout,
    /// The operating system has no random number for a new user id.
    #[error("no random user id can be made: {0}")]
    NoRandomness(getrandom::Error),
    /// The pod has queued its maximum of requests.
    #[error("this pod is overloaded, retry after Retry-After")]
    Overloaded,
    /// A newer connection of the same ticket replaced this one.
    #[error("the ticket has too many connections, a newer one replaced this one: poll instead")]
    Superseded,
    /// The pod has reached its maximum of streams.
    #[error("this pod has reached its maximum number of streams, poll instead")]
    TooManyStreams,
}

impl Error {
    /// Returns a 400 with this detail.
    pub(crate) fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(detail.into())
    }

    /// Returns whether a retry can succeed.
    pub(crate) fn is_transient(&self) -> bool {
        self.code() == Code::Unavailable
    }

    /// Returns the problem code, which determines the status.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Invalid(_) | Self::Id(_) => Code::InvalidRequest,
            Self::MissingToken | Self::Token(TokenError::Invalid) => Code::InvalidToken,
            Self::Token(TokenError::WrongItem) | Self::OtherUser | Self::OtherIdentity => {
                Code::TokenMismatch
            }
            Self::Identity(IdentityError::KeysUnavailable) => Code::Unavailable,
            Self::Identity(_) => Code::InvalidIdentity,
            Self::ItemNotFound => Code::ItemNotFound,
            Self::Disabled => Code::QueueDisabled,
            Self::SoldOut => Code::SoldOut,
            Self::NotOpenYet { .. } => Code::NotOpenYet,
            Self::LineClosed => Code::LineClosed,
            Self::NoDraw => Code::NoDraw,
            Self::LineFull => Code::LineFull,
            Self::Invitation(_) | Self::InvitationUsed | Self::Handover(_) | Self::HandoverUsed => {
                Code::InvalidCode
            }
            Self::ChallengeRequired { .. } => Code::ChallengeRequired,
            Self::Blocked(_) => Code::Blocked,
            Self::StoreFull => Code::StoreFull,
            Self::Restarted | Self::Token(TokenError::TooOld) => Code::LineRestarted,
            Self::Superseded | Self::LeftTooOften { .. } | Self::TooOften { .. } => {
                Code::RateLimited
            }
            // The client is not at fault and may retry.
            Self::Store(_)
            | Self::StoreTimeout
            | Self::NoRandomness(_)
            | Self::WidgetUnavailable
            | Self::AccessList(_)
            | Self::Overloaded
            | Self::TooManyStreams
            | Self::ItemRemoved
            | Self::ItemUnknown => Code::Unavailable,
        }
    }

    /// Returns the detail of the problem. Details of internal errors are only logged.
    fn detail(&self) -> Cow<'static, str> {
        match self {
            Self::Store(_) | Self::StoreTimeout | Self::NoRandomness(_) | Self::AccessList(_) => {
                "the waiting room cannot answer now, try again".into()
            }
            error => error.to_string().into(),
        }
    }

    /// Logs at error level what a retry cannot resolve and a failed random generator, and all others
    /// at debug level, because the refresher logs the begin and the end of an outage once per line.
    /// Counts tickets past their maximum age.
    fn log(&self) {
        if matches!(self, Self::Token(TokenError::TooOld)) {
            counter!(TOO_OLD).increment(1);
        }
        match self {
            Self::Store(error) if !error.is_transient() => {
                let component = COMPONENT;
                tracing::error!(component, %error, "store call failed, a retry cannot help");
            }
            Self::NoRandomness(error) => {
                let component = COMPONENT;
                tracing::error!(component, %error, "random generator failed, join refused");
            }
            error => tracing::debug!(%error, code = error.code().as_str(), "request refused"),
        }
    }
}

/// Returns a wait in whole seconds, at least 1.
fn wait_seconds(wait: &Duration) -> u32 {
    u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1)
}

impl From<JoinRefusal> for Error {
    fn from(refusal: JoinRefusal) -> Self {
        match refusal {
            JoinRefusal::NotFound => Self::ItemNotFound,
            JoinRefusal::Disabled => Self::Disabled,
            JoinRefusal::SoldOut => Self::SoldOut,
            JoinRefusal::NotOpenYet => {
                Self::NotOpenYet { opens_at: None, lobby_at: None, wait_ms: MAX_OPENING_WAIT_MS }
            }
            JoinRefusal::LineClosed => Self::LineClosed,
            JoinRefusal::LineFull => Self::LineFull,
            JoinRefusal::StoreFull => Self::StoreFull,
            JoinRefusal::InvitationUsed => Self::InvitationUsed,
            JoinRefusal::LeftTooOften { wait_ms } => Self::LeftTooOften { wait_ms },
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        error.log();
        let problem = Self::new(error.code(), error.detail());
        if let Error::LeftTooOften { wait_ms } = error {
            let seconds = u32::try_from(wait_ms.div_ceil(1000)).unwrap_or(u32::MAX);
            return problem.retry_after(seconds);
        }
        if let Error::TooOften { wait, .. } = error {
            return problem.retry_after(wait_seconds(&wait));
        }
        if let Error::ChallengeRequired { challenge, .. } = error {
            return Self { challenge: Some(challenge), ..problem };
        }
        if let Error::Blocked(notice) = error {
            return Self { blocked: Some(notice), ..problem };
        }
        if let Error::NotOpenYet { opens_at, lobby_at, wait_ms } = error {
            let seconds = wait_ms.div_ceil(1000).clamp(1, MAX_OPENING_WAIT_MS / 1000);
            let (opens_at, lobby_at) = (opens_at.map(rfc3339), lobby_at.map(rfc3339));
            let opening = Some(Box::new(PlannedOpening { opens_at, lobby_at }));
            let problem = Self { opening, ..problem };
            return problem.retry_after(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
        match error.code() {
            Code::Unavailable => problem.retry_after(fastrand::u32(RETRY_AFTER_SECONDS)),
            Code::LineFull | Code::StoreFull => {
                problem.retry_after(fastrand::u32(FULL_RETRY_AFTER_SECONDS))
            }
            _ => problem,
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        Problem::from(self).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_error_has_retry_after_and_no_internal_details() {
        let error = daegi_store::Error::Unavailable("10.0.0.7:6379 refused".into());
        let problem = Problem::from(Error::Store(error));
        assert_eq!(problem.code, Code::Unavailable);
        assert!(RETRY_AFTER_SECONDS.contains(&problem.retry_after.unwrap()));
        assert!(!problem.detail.contains("10.0.0.7"));
    }

    #[test]
    fn a_failed_random_generator_is_not_reported_as_a_store_timeout() {
        let error = Error::NoRandomness(getrandom::Error::UNSUPPORTED);
        assert!(error.to_string().starts_with("no random user id can be made"), "{error}");
        let problem = Problem::from(error);
        assert_eq!((problem.status, problem.code), (503, Code::Unavailable));
        assert!(problem.retry_after.is_some());
    }

    #[test]
    fn a_user_who_left_too_often_gets_the_time_to_rejoin() {
        let problem = Problem::from(Error::from(JoinRefusal::LeftTooOften { wait_ms: 1_001 }));
        assert_eq!((problem.status, problem.retry_after), (429, Some(2)));
    }

    #[test]
    fn a_bad_id_is_explained() {
        let problem = Problem::from(Error::from(IdError::Empty { what: "userId" }));
        assert_eq!((problem.status, &*problem.detail), (400, "userId is empty"));
    }
}
