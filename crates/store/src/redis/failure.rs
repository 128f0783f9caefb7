//! What an error of the library means: decided here, once for the crate.

use ::redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::{Epoch, Error};

/// Why a call brought no answer that can be used.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server is away; waiting may help.
    Away(String),
    /// The server answered with an error.
    Answered(RedisError),
    /// Only another configuration can help.
    Wrong(Error),
}

/// What an error says about the server it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is well: the error is its answer.
    Answered,
    /// It is well and cannot do this now, but perhaps other things.
    NotNow,
    /// It says itself that it cannot serve.
    Refuses,
    /// Nothing can be heard on this connection any more.
    Lost,
}

/// Codes with which a server refuses writes for a while and goes on with reads: out of memory, a
/// full disk, too few replicas, a slot that is being moved.
const NOT_NOW: [&str; 4] = ["OOM", "MISCONF", "NOREPLICAS", "TRYAGAIN"];

/// Codes of a server that cannot serve: it reads its data, became a replica, lost its master or its
/// cluster, or is stuck in a script.
const REFUSES: [&str; 5] = ["LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "BUSY"];

pub(super) fn verdict(error: &RedisError) -> Verdict {
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => {
            let code = spoken_code(error);
            if NOT_NOW.contains(&code) {
                Verdict::NotNow
            } else if REFUSES.contains(&code) || is_crowded(error) {
                Verdict::Refuses
            } else {
                Verdict::Answered
            }
        }
        ErrorKind::UnexpectedReturnType => Verdict::Answered,
        _ => Verdict::Lost,
    }
}

/// The code an error is about. Redis 6 wraps what a command inside a script was told:
/// `-ERR Error running script (call to f_…): @user_script:1: -READONLY You can't write …`
fn spoken_code(error: &RedisError) -> &str {
    let inner = error.detail().filter(|detail| detail.starts_with("Error running script"));
    let inner = inner.and_then(|detail| detail.split(": -").nth(1));
    match inner.and_then(|told| told.split(' ').next()) {
        Some(code) => code,
        None => error.code().unwrap_or_default(),
    }
}

/// `-ERR max number of clients reached`, the one plain error that passes by itself.
fn is_crowded(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.contains("max number of clients"))
}

pub(super) fn is_unknown_script(failure: &Failure) -> bool {
    let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
    matches!(failure, Failure::Answered(error) if error.kind() == unknown)
}

impl Failure {
    /// What could not be done, and why.
    pub(super) fn away(who: impl std::fmt::Display, why: impl std::fmt::Display) -> Self {
        Self::Away(format!("{who}: {why}"))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Away(why) => f.write_str(why),
            Self::Answered(error) => error.fmt(f),
            Self::Wrong(error) => error.fmt(f),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Away(why) => Self::Unavailable(why.into()),
            Failure::Wrong(error) => error,
            Failure::Answered(error) => answered(&error),
        }
    }
}

/// An answer that is an error, in the words of the crate.
pub(super) fn answered(error: &RedisError) -> Error {
    let told = || error.to_string();
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Error::corrupt(told()),
        ErrorKind::InvalidClientConfig | ErrorKind::AuthenticationFailed => {
            Error::Address(told().into())
        }
        ErrorKind::Server(ServerErrorKind::NoPerm) => Error::Address(told().into()),
        ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask) => {
            Error::Address("the server is part of a cluster, give redis+cluster://".into())
        }
        _ => match error.code() {
            Some("STALE") => Error::StaleEpoch(0),
            Some("NOAUTH" | "WRONGPASS") => Error::Address(told().into()),
            Some("ERR" | "WRONGTYPE" | "CROSSSLOT") if verdict(error) == Verdict::Answered => {
                Error::corrupt(told())
            }
            _ => Error::Unavailable(told().into()),
        },
    }
}

/// Names the epoch that was refused.
pub(super) fn at(epoch: Epoch, error: Error) -> Error {
    match error {
        Error::StaleEpoch(_) => Error::StaleEpoch(epoch.0),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use ::redis::{Value, parse_redis_value};

    use super::*;

    fn told(line: &str) -> RedisError {
        let value = parse_redis_value(format!("-{line}\r\n").as_bytes());
        value.and_then(Value::extract_error).unwrap_err()
    }

    #[test]
    fn a_server_that_cannot_serve_is_told_from_an_answer() {
        let cases = [
            ("LOADING Redis is loading the dataset in memory", Verdict::Refuses),
            ("READONLY You can't write against a read only replica.", Verdict::Refuses),
            ("MASTERDOWN Link with MASTER is down", Verdict::Refuses),
            ("CLUSTERDOWN The cluster is down", Verdict::Refuses),
            ("BUSY Redis is busy running a script", Verdict::Refuses),
            ("ERR max number of clients reached", Verdict::Refuses),
            (
                "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't",
                Verdict::Refuses,
            ),
            ("OOM command not allowed when used memory > 'maxmemory'.", Verdict::NotNow),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Verdict::NotNow),
            ("MOVED 3999 127.0.0.1:6381", Verdict::Answered),
            ("NOSCRIPT No matching script.", Verdict::Answered),
            ("STALE another leader", Verdict::Answered),
            ("WRONGTYPE Operation against a key", Verdict::Answered),
        ];
        for (line, expected) in cases {
            assert_eq!(verdict(&told(line)), expected, "{line}");
        }
    }

    #[test]
    fn what_passes_by_itself_is_told_from_what_does_not() {
        let waits = ["LOADING x", "READONLY x", "OOM x", "TRYAGAIN x", "NOREPLICAS x", "BUSY x"];
        for line in waits {
            assert!(answered(&told(line)).is_transient(), "{line}");
        }
        assert!(matches!(answered(&told("WRONGTYPE x")), Error::Corrupt(_)));
        assert!(matches!(answered(&told("ERR unknown command")), Error::Corrupt(_)));
        assert!(matches!(answered(&told("STALE x")), Error::StaleEpoch(_)));
        assert!(answered(&told("NOAUTH x")).is_misconfigured());
        assert!(answered(&told("MOVED 1 a:1")).to_string().contains("redis+cluster://"));
    }
}
