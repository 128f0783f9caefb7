//! Why a request is not answered as it wished, and the one place where that becomes a status.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use daegi_domain::{IdError, TokenError};
use daegi_runtime::{Code, Problem};
use daegi_store::Refusal;
use metrics::counter;

use crate::meters::TOO_OLD;

/// What the api answers.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// When to come back after trouble, in seconds. Spread out, so that a crowd that was refused
/// together does not return together.
const COME_BACK: std::ops::RangeInclusive<u32> = 1..=3;

/// When to try again where the line or the store is full, in seconds: places get free slowly, and a
/// crowd that tries every few seconds would cost more than it gains.
const TRY_AGAIN: std::ops::RangeInclusive<u32> = 10..=30;

/// Why a request is not answered as it wished.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The request cannot be understood.
    #[error("{0}")]
    Invalid(Cow<'static, str>),
    /// An id in the request is no id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// `me` stands for a token in a header that is not there.
    #[error("\"me\" needs the header Authorization: Bearer <token>")]
    NoToken,
    /// The token is not genuine, or of another item.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token is genuine, but the `user-id` header names somebody else.
    #[error("the token belongs to another person than the user-id header says")]
    OtherUser,
    /// There is no such item.
    #[error("there is no such item")]
    ItemNotFound,
    /// The ticket is genuine, but the store knows nothing of its item: it was lost, and comes back.
    #[error("the line is being put together again, keep asking")]
    Forgotten,
    /// The item was removed while the ticket had an entry; there is no line to follow.
    #[error("the item was removed, poll until the entry ends")]
    ItemRemoved,
    /// The line is switched off.
    #[error("the waiting queue of this item is switched off")]
    Disabled,
    /// Nothing left.
    #[error("this item is sold out")]
    SoldOut,
    /// As many tickets wait as the line or the whole store takes.
    #[error("the line is full, try again later")]
    LineFull,
    /// The store has little memory left.
    #[error("the waiting room is full, try again later")]
    StoreFull,
    /// The user left this line too often within ten minutes.
    #[error("this user left the line too often, join again in {} s", wait_ms.div_ceil(1000))]
    LeftTooOften {
        /// How long until they may join again.
        wait_ms: u64,
    },
    /// The ticket is from before the line was restarted, or of a line that is lost.
    #[error("the line was restarted, join again")]
    Restarted,
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] daegi_store::Error),
    /// The store did not answer in time.
    #[error("the store does not answer in time")]
    Slow,
    /// More people at once than this pod can queue.
    #[error("too many requests at once")]
    Overloaded,
    /// A newer connection of the same ticket took the slot of this one.
    #[error("the ticket has too many connections, a newer one replaced this one: poll instead")]
    Superseded,
    /// Every stream this pod may have is taken.
    #[error("too many people listen here at once, poll instead")]
    TooManyListen,
}

impl Error {
    /// A 400 with these words.
    pub(crate) fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(detail.into())
    }

    /// Whether the same may well be answered a little later.
    pub(crate) fn passes(&self) -> bool {
        self.code() == Code::Unavailable
    }

    /// The code, and with it the status, of each error.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Invalid(_) | Self::Id(_) => Code::InvalidRequest,
            Self::NoToken | Self::Token(TokenError::Invalid) => Code::InvalidToken,
            Self::Token(TokenError::OtherItem) | Self::OtherUser => Code::TokenMismatch,
            Self::ItemNotFound => Code::ItemNotFound,
            Self::Disabled => Code::QueueDisabled,
            Self::SoldOut => Code::SoldOut,
            Self::LineFull => Code::LineFull,
            Self::StoreFull => Code::StoreFull,
            Self::Restarted | Self::Token(TokenError::TooOld) => Code::LineRestarted,
            Self::Superseded | Self::LeftTooOften { .. } => Code::RateLimited,
            // Whatever is wrong with the store, the person did nothing wrong and may try again.
            Self::Store(_)
            | Self::Slow
            | Self::Overloaded
            | Self::TooManyListen
            | Self::ItemRemoved
            | Self::Forgotten => Code::Unavailable,
        }
    }

    /// What people read; the store's own words stay in the log.
    fn detail(&self) -> Cow<'static, str> {
        match self {
            Self::Store(_) | Self::Slow => "the waiting room cannot answer now, try again".into(),
            told => told.to_string().into(),
        }
    }

    /// Once per request and quietly: an outage is told loudly once per line, where it begins and
    /// ends, not once per person who asks. What cannot pass by waiting is always loud.
    fn log(&self) {
        if matches!(self, Self::Token(TokenError::TooOld)) {
            counter!(TOO_OLD).increment(1);
        }
        match self {
            Self::Store(error) if !error.is_transient() => {
                tracing::error!(%error, "the store gave an answer that cannot be used");
            }
            error => tracing::debug!(%error, code = error.code().as_str(), "request refused"),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound => Self::ItemNotFound,
            Refusal::Disabled => Self::Disabled,
            Refusal::SoldOut => Self::SoldOut,
            Refusal::LineFull => Self::LineFull,
            Refusal::StoreFull => Self::StoreFull,
            Refusal::LeftTooOften { wait_ms } => Self::LeftTooOften { wait_ms },
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
        match error.code() {
            Code::Unavailable => problem.retry_after(fastrand::u32(COME_BACK)),
            Code::LineFull | Code::StoreFull => problem.retry_after(fastrand::u32(TRY_AGAIN)),
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
    fn trouble_with_the_store_says_when_to_come_back_and_nothing_about_itself() {
        let error = daegi_store::Error::Unavailable("10.0.0.7:6379 refused".into());
        let problem = Problem::from(Error::Store(error));
        assert_eq!(problem.code, Code::Unavailable);
        assert!(COME_BACK.contains(&problem.retry_after.unwrap()));
        assert!(!problem.detail.contains("10.0.0.7"));
    }

    #[test]
    fn a_user_who_left_too_often_reads_when_to_join_again() {
        let problem = Problem::from(Error::from(Refusal::LeftTooOften { wait_ms: 1_001 }));
        assert_eq!((problem.status, problem.retry_after), (429, Some(2)));
    }

    #[test]
    fn a_bad_id_is_explained() {
        let problem = Problem::from(Error::from(IdError::Empty { what: "userId" }));
        assert_eq!((problem.status, &*problem.detail), (400, "userId is empty"));
    }
}
