//! How clients reach a server: without TLS and login, or with both, as `infra/redis/daegi.acl` permits.
//!
//! With `DAEGI_TEST_REDIS=tls` all servers of a test process are secured, so that whole suites run over TLS
//! with the documented ACL.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use daegi_store::{RedisConfig, RedisFiles};
use redis::{Client, ClientTlsConfig, TlsCertificates};
use tempfile::TempDir;

use crate::certificates::{Certificate, CertificateAuthority};

/// The password of daegi's user in every secured server.
pub const REDIS_PASSWORD: &str = "password-of-the-tests";

/// The user of the tests, who may do everything, and of replicas and sentinels.
const ADMIN: &str = "admin";
const ADMIN_PASSWORD: &str = "password-of-the-administrator";

/// Rules of the documented user of daegi.
const RULES: &str = include_str!("../../../../infra/redis/daegi.acl");
const SENTINEL_RULES: &str = include_str!("../../../../infra/redis/sentinel.acl");

/// How clients reach servers. Clones share the files.
#[derive(Debug, Clone)]
pub(super) enum Access {
    /// Without TLS and login.
    Open,
    /// With TLS, client certificates and users.
    Secured(Arc<RedisAccess>),
}

/// The certificates and users of secured servers, in files that a test may replace.
#[derive(Debug)]
pub struct RedisAccess {
    authority: CertificateAuthority,
    admin: Certificate,
    dir: TempDir,
}

impl Access {
    /// Returns the access that `DAEGI_TEST_REDIS` chooses.
    #[expect(clippy::disallowed_methods, reason = "how tests run is no configuration of daegi")]
    pub(super) fn chosen() -> anyhow::Result<Self> {
        match std::env::var("DAEGI_TEST_REDIS").as_deref() {
            Ok("tls") => Self::secured(),
            Ok("plain" | "") | Err(_) => Ok(Self::Open),
            Ok(other) => anyhow::bail!("DAEGI_TEST_REDIS is plain or tls, not {other}"),
        }
    }

    pub(super) fn secured() -> anyhow::Result<Self> {
        Ok(Self::Secured(Arc::new(RedisAccess::new()?)))
    }

    /// Returns the configuration of daegi for a URL without scheme and user.
    pub(super) fn config(&self, topology: &str, rest: &str) -> RedisConfig {
        match self {
            Self::Open => RedisConfig::from(&format!("redis{topology}://{rest}")),
            Self::Secured(access) => RedisConfig {
                url: format!("rediss{topology}://daegi@{rest}"),
                files: access.files(),
            },
        }
    }

    /// Returns a client of one server that may do everything.
    pub(super) fn admin_client(&self, port: u16) -> redis::RedisResult<Client> {
        let Self::Secured(access) = self else { return Client::open(("127.0.0.1", port)) };
        let url = format!("rediss://{ADMIN}:{ADMIN_PASSWORD}@127.0.0.1:{port}");
        let client_tls = ClientTlsConfig {
            client_cert: access.admin.cert.clone().into_bytes(),
            client_key: access.admin.key.clone().into_bytes(),
        };
        let root_cert = Some(access.authority.pem().into_bytes());
        Client::build_with_tls(url, TlsCertificates { client_tls: Some(client_tls), root_cert })
    }

    pub(super) fn migrate_login(&self) -> &'static [&'static str] {
        match self {
            Self::Open => &[],
            Self::Secured(_) => &["AUTH2", ADMIN, ADMIN_PASSWORD],
        }
    }

    /// Adds the options of a server or sentinel.
    pub(super) fn configure(&self, command: &mut Command, port: u16, is_sentinel: bool) {
        let port = port.to_string();
        let Self::Secured(access) = self else {
            command.args(["--port", &port]);
            return;
        };
        command.args(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "yes"]);
        command.args(["--tls-replication", "yes"]);
        let file = |name: &str| access.path(name);
        command.arg("--tls-ca-cert-file").arg(file("server-ca.pem"));
        command.arg("--tls-cert-file").arg(file("server.pem"));
        command.arg("--tls-key-file").arg(file("server.key"));
        if is_sentinel {
            command.arg("--aclfile").arg(file("sentinel.acl"));
        } else {
            command.arg("--aclfile").arg(file("server.acl"));
            command.args(["--tls-cluster", "yes"]);
            command.args(["--masteruser", ADMIN, "--masterauth", ADMIN_PASSWORD]);
        }
    }

    /// Returns the lines with which a sentinel logs in at the servers and the other sentinels.
    pub(super) fn sentinel_settings(&self, service: &str) -> String {
        match self {
            Self::Open => String::new(),
            Self::Secured(_) => format!(
                "sentinel auth-user {service} {ADMIN}\nsentinel auth-pass {service} {ADMIN_PASSWORD}\n\
                 sentinel sentinel-user {ADMIN}\nsentinel sentinel-pass {ADMIN_PASSWORD}\n"
            ),
        }
    }
}

impl RedisAccess {
    fn new() -> anyhow::Result<Self> {
        let authority = CertificateAuthority::new("CA of the tests")?;
        let admin = authority.issue(&["admin"])?;
        let access = Self { authority, admin, dir: tempfile::tempdir()? };
        access.write("ca.pem", &access.authority.pem())?;
        access.write("server-ca.pem", &access.authority.pem())?;
        access
            .write_certificate("server", &access.authority.issue(&["127.0.0.1", "localhost"])?)?;
        access.write_certificate("client", &access.authority.issue(&["daegi"])?)?;
        access.write("password", &format!("{REDIS_PASSWORD}\n"))?;
        for (name, rules) in [("server.acl", RULES), ("sentinel.acl", SENTINEL_RULES)] {
            let daegi = rules.replace("CHANGE-ME", REDIS_PASSWORD);
            let admin = format!("user {ADMIN} on >{ADMIN_PASSWORD} ~* &* +@all");
            access.write(name, &format!("user default off\n{admin}\n{daegi}"))?;
        }
        Ok(access)
    }

    /// Returns the authority of all certificates.
    #[must_use]
    pub fn authority(&self) -> &CertificateAuthority {
        &self.authority
    }

    /// Returns the files of daegi.
    #[must_use]
    pub fn files(&self) -> RedisFiles {
        RedisFiles {
            ca: Some(self.path("ca.pem")),
            cert: Some(self.path("client.pem")),
            key: Some(self.path("client.key")),
            password: Some(self.path("password")),
        }
    }

    /// Replaces a file of daegi: `ca.pem` or `password`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        Ok(std::fs::write(self.path(name), text)?)
    }

    /// Replaces the certificate and the key of `server` or `client`.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_certificate(&self, name: &str, certificate: &Certificate) -> anyhow::Result<()> {
        self.write(&format!("{name}.pem"), &certificate.cert)?;
        self.write(&format!("{name}.key"), &certificate.key)
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::join(self.dir.path(), name)
    }
}
