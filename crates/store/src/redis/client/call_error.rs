//! Classification of the Redis library's errors.

use std::error::Error as _;
use std::io;
use std::sync::Arc;

use ::redis::{ErrorKind, RedisError, ServerErrorKind};

use rustls::{AlertDescription, CertificateError, Error as TlsError};

use crate::{Epoch, Error};

/// Why a call has no usable reply.
#[derive(Debug)]
pub(in crate::redis) enum CallError {
    /// The server is unavailable; a retry can help.
    Unavailable(String),
    /// The server replied with an error.
    Reply(RedisError),
    /// Only another configuration can help.
    Config(Error),
}

/// The state of the server that an error indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// The server works: the error is its reply to this command.
    Reply,
    /// The server works and refuses this command for now; other commands may succeed.
    TemporarilyRefused,
    /// The server works, and its ACL forbids this command or key to the user.
    Forbidden,
    /// The server reports that it cannot serve.
    NodeUnavailable,
    /// The connection is broken.
    ConnectionLost,
}

/// Codes with which a server refuses writes but serves reads: out of memory, a full disk, too few
/// replicas, a slot in migration.
const REFUSED_CODES: [&str; 4] = ["OOM", "MISCONF", "NOREPLICAS", "TRYAGAIN"];

/// Codes of a server that cannot serve: it loads its data, became a replica, lost its master or its
/// cluster, is blocked by a script, or does not know who is connected.
const UNAVAILABLE_CODES: [&str; 6] =
    ["LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "BUSY", "NOAUTH"];

pub(super) fn classify(error: &RedisError) -> ErrorClass {
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => {
            let code = error_code(error);
            if REFUSED_CODES.contains(&code) {
                ErrorClass::TemporarilyRefused
            } else if code == "NOPERM" || is_forbidden_in_script(error) {
                ErrorClass::Forbidden
            } else if UNAVAILABLE_CODES.contains(&code) || is_max_clients(error) {
                ErrorClass::NodeUnavailable
            } else {
                ErrorClass::Reply
            }
        }
        ErrorKind::UnexpectedReturnType => ErrorClass::Reply,
        _ => ErrorClass::ConnectionLost,
    }
}

/// Returns the code of an error. Redis 6 wraps the error of a command inside a script:
/// `-ERR Error running script (call to f_…): @user_script:1: -READONLY You can't write …`
fn error_code(error: &RedisError) -> &str {
    let inner = error.detail().filter(|detail| detail.starts_with("Error running script"));
    let inner = inner.and_then(|detail| detail.split(": -").nth(1));
    match inner.and_then(|reply| reply.split(' ').next()) {
        Some(code) => code,
        None => error.code().unwrap_or_default(),
    }
}

/// Matches `-ERR max number of clients reached`, the only `ERR` that a retry can help.
fn is_max_clients(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.contains("max number of clients"))
}

/// Redis replies with another code if the ACL forbids a command inside a script.
fn is_forbidden_in_script(error: &RedisError) -> bool {
    // The texts of Redis 7.2 and newer, and of earlier ones.
    let texts = ["ACL failure in script", "The user executing the script can't"];
    error.detail().is_some_and(|detail| texts.iter().any(|text| detail.contains(text)))
}

/// Returns the text of an error. If a certificate, a login or an ACL is the cause, it says what to correct.
pub(super) fn describe(error: &RedisError) -> String {
    if let Some(reason) = tls_error(error).map(describe_tls) {
        return reason;
    }
    let login = "correct the user in the URL and the password (--redis-password-file), or the ACL";
    if error.kind() == ErrorKind::AuthenticationFailed {
        return format!("redis rejects the user or the password; {login}");
    }
    match (error.code(), classify(error)) {
        (Some("NOAUTH"), _) => format!("redis requires a user or a password; {login}"),
        (_, ErrorClass::Forbidden) => {
            format!("the ACL of redis forbids a command, see infra/redis/daegi.acl: {error}")
        }
        _ => error.to_string(),
    }
}

fn describe_tls(error: &TlsError) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, UnknownIssuer,
    };
    let cause = match error {
        TlsError::InvalidCertificate(UnknownIssuer) => {
            "the server's certificate is from an unknown CA; correct --redis-ca or the certificate"
        }
        TlsError::InvalidCertificate(Expired | ExpiredContext { .. }) => {
            "the server's certificate has expired; renew it"
        }
        TlsError::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            "the server's certificate is for another host; issue it for the host that daegi connects to"
        }
        TlsError::AlertReceived(AlertDescription::CertificateExpired) => {
            "redis rejects the client certificate because it has expired; renew it (--redis-cert)"
        }
        TlsError::AlertReceived(AlertDescription::CertificateRequired) => {
            "redis requires a client certificate; set --redis-cert and --redis-key"
        }
        TlsError::AlertReceived(_) => {
            "redis rejects the client certificate; correct --redis-cert and --redis-key"
        }
        _ => "no TLS connection",
    };
    format!("{cause} ({error})")
}

/// Returns the error of the TLS library, which the Redis library wraps twice.
fn tls_error(error: &RedisError) -> Option<&TlsError> {
    let source = error.source()?;
    let shared = source.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>();
    let inner = shared.map_or(source, |shared| &**shared);
    inner.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
}

pub(super) fn is_unknown_script(error: &CallError) -> bool {
    let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
    matches!(error, CallError::Reply(error) if error.kind() == unknown)
}

impl CallError {
    pub(super) fn is_reply(&self) -> bool {
        matches!(self, Self::Reply(_))
    }

    pub(super) fn unavailable(
        server: impl std::fmt::Display,
        reason: impl std::fmt::Display,
    ) -> Self {
        Self::Unavailable(format!("{server}: {reason}"))
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unavailable(reason) => f.write_str(reason),
            Self::Reply(error) => error.fmt(f),
            Self::Config(error) => error.fmt(f),
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Unavailable(reason) => Self::Unavailable(reason.into()),
            CallError::Config(error) => error,
            CallError::Reply(error) => into_store_error(&error),
        }
    }
}

/// Converts an error reply into an error of this crate.
pub(super) fn into_store_error(error: &RedisError) -> Error {
    let text = || describe(error);
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Error::corrupt(text()),
        ErrorKind::InvalidClientConfig => Error::InvalidUrl(text().into()),
        ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask) => {
            Error::InvalidUrl("the server is part of a cluster, give redis+cluster://".into())
        }
        _ => match error.code() {
            Some("STALE") => Error::StaleEpoch(0),
            Some("ERR" | "WRONGTYPE" | "CROSSSLOT") if classify(error) == ErrorClass::Reply => {
                Error::corrupt(text())
            }
            _ => Error::Unavailable(text().into()),
        },
    }
}

/// Whether Redis refused to write because `maxmemory` is reached.
pub(in crate::redis) fn is_out_of_memory(error: &Error) -> bool {
    matches!(error, Error::Unavailable(reason) if reason.contains("command not allowed when used memory"))
}

/// Adds the refused epoch to the error.
pub(in crate::redis) fn with_epoch(epoch: Epoch, error: Error) -> Error {
    match error {
        Error::StaleEpoch(_) => Error::StaleEpoch(epoch.0),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use ::redis::{Value, parse_redis_value};

    use super::*;

    fn error_reply(line: &str) -> RedisError {
        let value = parse_redis_value(format!("-{line}\r\n").as_bytes());
        value.and_then(Value::extract_error).unwrap_err()
    }

    #[test]
    fn errors_are_classified_by_their_code() {
        let cases = [
            ("LOADING Redis is loading the dataset in memory", ErrorClass::NodeUnavailable),
            ("READONLY You can't write against a read only replica.", ErrorClass::NodeUnavailable),
            ("MASTERDOWN Link with MASTER is down", ErrorClass::NodeUnavailable),
            ("CLUSTERDOWN The cluster is down", ErrorClass::NodeUnavailable),
            ("BUSY Redis is busy running a script", ErrorClass::NodeUnavailable),
            ("ERR max number of clients reached", ErrorClass::NodeUnavailable),
            (
                "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't",
                ErrorClass::NodeUnavailable,
            ),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                ErrorClass::TemporarilyRefused,
            ),
            (
                "TRYAGAIN Multiple keys request during rehashing of slot",
                ErrorClass::TemporarilyRefused,
            ),
            ("NOAUTH Authentication required.", ErrorClass::NodeUnavailable),
            (
                "NOPERM User daegi has no permissions to run the 'xadd' command",
                ErrorClass::Forbidden,
            ),
            ("ERR ACL failure in script: User daegi has no permissions", ErrorClass::Forbidden),
            (
                "ERR The user executing the script can't run this command or subcommand",
                ErrorClass::Forbidden,
            ),
            ("MOVED 3999 127.0.0.1:6381", ErrorClass::Reply),
            ("NOSCRIPT No matching script.", ErrorClass::Reply),
            ("STALE another leader", ErrorClass::Reply),
            ("WRONGTYPE Operation against a key", ErrorClass::Reply),
        ];
        for (line, expected) in cases {
            assert_eq!(classify(&error_reply(line)), expected, "{line}");
        }
    }

    #[test]
    fn transient_errors_are_distinguished_from_permanent_ones() {
        let transient =
            ["LOADING x", "READONLY x", "OOM x", "TRYAGAIN x", "BUSY x", "NOAUTH x", "NOPERM x"];
        for line in transient {
            assert!(into_store_error(&error_reply(line)).is_transient(), "{line}");
        }
        assert!(matches!(into_store_error(&error_reply("WRONGTYPE x")), Error::Corrupt(_)));
        assert!(matches!(into_store_error(&error_reply("ERR unknown command")), Error::Corrupt(_)));
        assert!(matches!(into_store_error(&error_reply("STALE x")), Error::StaleEpoch(_)));
        assert!(
            into_store_error(&error_reply("MOVED 1 a:1")).to_string().contains("redis+cluster://")
        );
    }
}
