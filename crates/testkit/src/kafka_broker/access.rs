//! TLS and users of a broker: how daegi connects to it. The tests themselves use its listener without both.

use std::path::{Path, PathBuf};

use super::Kafka;
use crate::certificates::{Certificate, CertificateAuthority};

/// The password of the user `daegi`.
const PASSWORD: &str = "password-of-the-tests";

/// How daegi logs in at a secured broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KafkaLogin {
    /// TLS and SASL PLAIN.
    Plain,
    /// TLS and SASL SCRAM-SHA-512.
    Scram,
    /// TLS and SASL OAUTHBEARER with a token in a file.
    OauthBearer,
    /// TLS with a client certificate.
    Mutual,
}

/// The listeners of a secured broker, and the files of daegi.
#[derive(Debug)]
pub(super) struct SecuredListeners {
    pub(super) sasl: String,
    pub(super) mutual: String,
    pub(super) dir: PathBuf,
}

impl KafkaLogin {
    /// Returns the login that `DAEGI_TEST_KAFKA` chooses; `None` is a broker without TLS.
    ///
    /// # Panics
    /// If it is none of `plain`, `scram`, `oauthbearer` and `mutual`.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "how tests run is no configuration of daegi")]
    pub fn chosen() -> Option<Self> {
        match std::env::var("DAEGI_TEST_KAFKA").as_deref() {
            Ok("plain") => Some(Self::Plain),
            Ok("scram") => Some(Self::Scram),
            Ok("oauthbearer") => Some(Self::OauthBearer),
            Ok("mutual") => Some(Self::Mutual),
            Ok("") | Err(_) => None,
            Ok(other) => {
                panic!("DAEGI_TEST_KAFKA is plain, scram, oauthbearer or mutual, not {other}")
            }
        }
    }
}

impl Kafka {
    /// Returns the address and the file of properties with which daegi connects to a secured broker.
    ///
    /// # Panics
    /// If the broker is not secured, or the file cannot be written.
    #[must_use]
    pub fn secured(&self, login: KafkaLogin) -> (String, PathBuf) {
        let secured = self.secured.as_ref().unwrap_or_else(|| panic!("start a secured broker"));
        let file = |name: &str| secured.dir.join(name).display().to_string();
        let ca = format!("ssl.ca.location={}\n", file("ca.pem"));
        let sasl = |mechanism: &str| {
            format!("{ca}security.protocol=sasl_ssl\nsasl.mechanism={mechanism}\n")
        };
        let with_password = |mechanism: &str| {
            let password = file("password");
            sasl(mechanism) + &format!("sasl.username=daegi\nsasl.password=file:{password}\n")
        };
        let (address, properties) = match login {
            KafkaLogin::Plain => (&secured.sasl, with_password("PLAIN")),
            KafkaLogin::Scram => (&secured.sasl, with_password("SCRAM-SHA-512")),
            KafkaLogin::OauthBearer => {
                let config = format!("sasl.oauthbearer.config=token_file={}\n", file("token"));
                (&secured.sasl, sasl("OAUTHBEARER") + &config)
            }
            KafkaLogin::Mutual => {
                let (cert, key) = (file("client.pem"), file("client.key"));
                let files = format!("ssl.certificate.location={cert}\nssl.key.location={key}\n");
                (&secured.mutual, format!("{ca}security.protocol=ssl\n{files}"))
            }
        };
        let path = secured.dir.join(format!("{login:?}.properties"));
        std::fs::write(&path, properties).unwrap_or_else(|error| panic!("{error}"));
        (address.clone(), path)
    }
}

/// Writes the certificates of broker and client, the password and a token into a new directory, which the
/// script removes.
pub(super) fn write_files() -> anyhow::Result<PathBuf> {
    let dir = tempfile::tempdir()?.keep();
    let authority = CertificateAuthority::new("CA of the tests")?;
    let write = |name: &str, text: &str| std::fs::write(Path::join(&dir, name), text);
    write("ca.pem", &authority.pem())?;
    let Certificate { cert, key } = authority.issue(&["127.0.0.1", "localhost"])?;
    write("server.pem", &format!("{key}{cert}"))?;
    let client = authority.issue(&["daegi"])?;
    write("client.pem", &client.cert)?;
    write("client.key", &client.key)?;
    write("password", PASSWORD)?;
    // The broker accepts tokens without a signature: {"alg":"none"} and
    // {"sub":"daegi","iat":1577836800,"exp":4102444800}.
    write(
        "token",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJkYWVnaSIsImlhdCI6MTU3NzgzNjgwMCwiZXhwIjo0MTAyNDQ0ODAwfQ.",
    )?;
    Ok(dir)
}
