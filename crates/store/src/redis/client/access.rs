//! Clients that authenticate and encrypt: what the files of a [`RedisConfig`] say at this moment.
//!
//! Every new connection reads the files, so that a replaced certificate or password is used without a
//! restart. Open connections continue with what they began with.

use std::path::{Path, PathBuf};

use ::redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates,
};

use super::call_error::{CallError, into_store_error};

/// The address of Redis, and the files that secure connections to it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RedisConfig {
    /// The URL: one server, sentinels, or a cluster; with `rediss` the connections are encrypted.
    pub url: String,
    /// Certificates and password. None is needed for a server without TLS and password.
    pub files: RedisFiles,
}

/// Paths of certificates and of the password.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedisFiles {
    /// The CAs of the servers' certificates, as PEM; without it those that the system trusts.
    pub ca: Option<PathBuf>,
    /// The certificate of this client with its intermediates, as PEM.
    pub cert: Option<PathBuf>,
    /// The key of that certificate, as PEM.
    pub key: Option<PathBuf>,
    /// The password of the user in the URL, or of the default user.
    pub password: Option<PathBuf>,
}

impl From<&str> for RedisConfig {
    fn from(url: &str) -> Self {
        Self { url: url.to_owned(), files: RedisFiles::default() }
    }
}

impl From<&String> for RedisConfig {
    fn from(url: &String) -> Self {
        url.as_str().into()
    }
}

impl From<&Self> for RedisConfig {
    fn from(config: &Self) -> Self {
        config.clone()
    }
}

/// Omits the URL, which may contain a password.
impl std::fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisConfig").field("files", &self.files).finish_non_exhaustive()
    }
}

impl RedisFiles {
    /// Returns the same files without the password.
    pub(super) fn without_password(&self) -> Self {
        Self { password: None, ..self.clone() }
    }

    /// Returns a client of one server with what the files contain now.
    ///
    /// # Errors
    /// If a file cannot be read or used. A retry can help, because the file may be corrected.
    pub(super) async fn client(&self, url: &str) -> Result<Client, CallError> {
        let (files, url) = (self.clone(), url.to_owned());
        // On its own thread, because certificates may be on a network file system.
        let read = tokio::task::spawn_blocking(move || files.read_client(&url)).await;
        read.unwrap_or_else(|error| Err(CallError::Unavailable(error.to_string())))
    }

    fn read_client(&self, url: &str) -> Result<Client, CallError> {
        let invalid = |error| CallError::Config(into_store_error(&error));
        let info = url.into_connection_info().map_err(invalid)?;
        let mut settings = info.redis_settings().clone().set_skip_set_lib_name();
        if let Some(path) = &self.password {
            let password = read(path, "password")?;
            let password = String::from_utf8(password).map_err(|_| unusable(path, "no UTF-8"))?;
            settings = settings.set_password(password.trim_end_matches(['\r', '\n']));
        }
        let info = info.set_redis_settings(settings);
        if !is_encrypted(&info) {
            return Client::open(info).map_err(invalid);
        }
        let certificates = self.certificates()?;
        Client::build_with_tls(info, certificates)
            .map_err(|error| CallError::Unavailable(format!("unusable TLS files: {error}")))
    }

    fn certificates(&self) -> Result<TlsCertificates, CallError> {
        let root_cert = self.ca.as_deref().map(|path| read_certificates(path, "CA"));
        let client_tls = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(ClientTlsConfig {
                client_cert: read_certificates(cert, "client certificate")?,
                client_key: read(key, "client key")?,
            }),
            _ => None,
        };
        Ok(TlsCertificates { client_tls, root_cert: root_cert.transpose()? })
    }
}

pub(super) fn is_encrypted(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
}

fn read(path: &Path, what: &str) -> Result<Vec<u8>, CallError> {
    std::fs::read(path).map_err(|error| unusable(path, format!("cannot read the {what}: {error}")))
}

/// Reads PEM text. A file without any certificate is an error, because it would be ignored and the reported
/// error would be that of the other side.
fn read_certificates(path: &Path, what: &str) -> Result<Vec<u8>, CallError> {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    let pem = read(path, what)?;
    if pem.windows(BEGIN.len()).any(|window| window == BEGIN) {
        Ok(pem)
    } else {
        Err(unusable(path, format!("the {what} is not PEM text with a certificate")))
    }
}

fn unusable(path: &Path, reason: impl std::fmt::Display) -> CallError {
    CallError::unavailable(path.display(), reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(files: &RedisFiles, url: &str) -> String {
        match files.read_client(url) {
            Err(CallError::Unavailable(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_password_is_the_first_line_break_shorter_than_its_file() {
        let path = std::env::temp_dir().join(format!("daegi-password-{}", std::process::id()));
        std::fs::write(&path, " p:w@\n").unwrap();
        let files = RedisFiles { password: Some(path.clone()), ..RedisFiles::default() };
        let client = files.read_client("redis://daegi@localhost").unwrap();
        let settings = client.get_connection_info().redis_settings();
        assert_eq!((settings.username(), settings.password()), (Some("daegi"), Some(" p:w@")));
        std::fs::write(&path, "another").unwrap();
        let client = files.read_client("redis://localhost").unwrap();
        assert_eq!(client.get_connection_info().redis_settings().password(), Some("another"));
        std::fs::remove_file(&path).unwrap();
        assert!(reason(&files, "redis://localhost").contains("cannot read the password"));
    }

    #[test]
    fn a_file_without_a_certificate_is_named() {
        let files = RedisFiles { ca: Some("/dev/null".into()), ..RedisFiles::default() };
        let reason = reason(&files, "rediss://localhost");
        assert_eq!(reason, "/dev/null: the CA is not PEM text with a certificate");
        assert!(files.read_client("redis://localhost").is_ok(), "it is not read without TLS");
    }

    #[test]
    fn debug_hides_the_url() {
        let config = RedisConfig::from("redis://:secret@localhost");
        assert!(!format!("{config:?}").contains("secret"));
    }
}
