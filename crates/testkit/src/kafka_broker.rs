//! A real Kafka broker, run by the script of `make kafka`.

mod access;
mod script;
mod topics;

use anyhow::bail;
use tempfile::TempDir;
use tokio::sync::OnceCell;

pub use self::access::KafkaLogin;
use self::access::SecuredListeners;
use self::script::{BrokerScript, DataDir, Launch, ToolsMissing};
use crate::port::free_port;
use crate::skip::skip_or_panic;

/// How often another port is tried if one was taken meanwhile.
const ATTEMPTS: usize = 5;

/// A running broker with daegi's topics, four partitions each. Dropping it stops the broker and
/// removes its data. The broker also ends if the test process is killed.
#[derive(Debug)]
pub struct Kafka {
    // Before the directory, so that the broker has ended when its data is removed.
    script: Option<BrokerScript>,
    dir: Option<TempDir>,
    port: u16,
    secured: Option<SecuredListeners>,
}

/// One broker for all tests of a process; see [`shared_kafka_or_skip`].
static SHARED: OnceCell<Option<Kafka>> = OnceCell::const_new();

/// Returns the broker that all tests of this process share, each with [`Kafka::create_topics`],
/// because a start takes seconds and a JVM takes memory. It cannot be stopped; it ends with the
/// process. With `DAEGI_TEST_KAFKA` it also has secured listeners.
///
/// # Panics
/// As [`kafka_or_skip`].
pub async fn shared_kafka_or_skip() -> Option<&'static Kafka> {
    // Statics are never dropped, so the script removes the data itself.
    SHARED.get_or_init(async || started_or_skip(Kafka::launched(|| Ok(None)).await)).await.as_ref()
}

/// Starts a broker. Returns `None` if Java or Maven are not installed, so that the other tests
/// still run.
///
/// # Panics
/// If the broker does not start, or the tools are not installed and `CI=true`: a build that skips
/// its tests must not be green.
pub async fn kafka_or_skip() -> Option<Kafka> {
    started_or_skip(Kafka::start().await)
}

/// Returns what was started, or skips the test if Java or Maven are not installed.
fn started_or_skip(started: anyhow::Result<Kafka>) -> Option<Kafka> {
    match started {
        Ok(kafka) => Some(kafka),
        Err(error) if error.is::<ToolsMissing>() => skip_or_panic(error),
        Err(error) => panic!("{error:#}"),
    }
}

impl Kafka {
    /// Starts a broker and waits until all topics can be written: some seconds, and longer on the
    /// first start, which downloads the jars.
    ///
    /// # Errors
    /// If Java or Maven are missing or the broker does not start.
    pub async fn start() -> anyhow::Result<Self> {
        Self::launched(|| Ok(Some(tempfile::tempdir()?))).await
    }

    async fn launched(dir: impl Fn() -> anyhow::Result<Option<TempDir>>) -> anyhow::Result<Self> {
        for _ in 0..ATTEMPTS {
            let mut kafka = Self { script: None, dir: dir()?, port: free_port(), secured: None };
            if kafka.launch().await? {
                return Ok(kafka);
            }
        }
        bail!("kafka found no port in {ATTEMPTS} attempts")
    }

    /// Returns the address for clients, `host:port`, which stays the same over restarts.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the port on the loopback interface, which stays the same over restarts.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops the broker with SIGTERM and waits for its end. Its data stays.
    pub fn stop(&mut self) {
        if let Some(script) = self.script.take() {
            script.stop();
        }
    }

    /// Kills the broker with SIGKILL, as a power cut does. Its data stays.
    pub fn kill(&mut self) {
        if let Some(script) = self.script.take() {
            script.kill();
        }
    }

    /// Restarts the broker on the same port with the same data.
    ///
    /// # Errors
    /// If it does not start, or the port was taken meanwhile.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.stop();
        if !self.launch().await? {
            bail!("port {} was taken during the outage", self.port);
        }
        Ok(())
    }

    /// Starts the broker on its port. Returns `false` if the port was taken.
    async fn launch(&mut self) -> anyhow::Result<bool> {
        let data =
            self.dir.as_ref().map_or(DataDir::Temporary, |dir| DataDir::Persistent(dir.path()));
        let files = KafkaLogin::chosen().map(|_| access::write_files()).transpose()?;
        match BrokerScript::run(self.port, data, files.as_deref()).await? {
            Launch::Ready(script, [sasl, mutual]) => {
                self.script = Some(script);
                self.secured = files.map(|dir| SecuredListeners { sasl, mutual, dir });
            }
            Launch::PortTaken => return Ok(false),
        }
        Ok(true)
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        self.kill();
    }
}
