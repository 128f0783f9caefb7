//! A real Kafka broker of a test's own, run by the script that `make kafka` runs for people.

mod script;
mod topics;

use anyhow::bail;
use tempfile::TempDir;
use tokio::sync::OnceCell;

use self::script::{Data, Launch, Missing, Script};
use crate::ci::in_ci;
use crate::port::free_port;

/// How often another port is tried when somebody was faster.
const ATTEMPTS: usize = 5;

/// A running broker with daegi's topics, four partitions each. Dropping it ends the broker and
/// removes its data. A test process that is killed takes its broker along.
#[derive(Debug)]
pub struct Kafka {
    // Before the directory, so that the broker has ended when its data goes.
    script: Option<Script>,
    dir: Option<TempDir>,
    port: u16,
}

/// One broker for all tests of a process; see [`shared_kafka_or_loud`].
static SHARED: OnceCell<Option<Kafka>> = OnceCell::const_new();

/// The broker that all tests of this process share, each with [`Kafka::own_topics`]: a start takes
/// seconds and a JVM takes memory. Nobody can stop it; it ends with the process.
///
/// # Panics
/// As [`kafka_or_loud`].
pub async fn shared_kafka_or_loud() -> Option<&'static Kafka> {
    // Statics are never dropped, so the script itself must clean up.
    SHARED.get_or_init(async || loud(Kafka::launched(|| Ok(None)).await)).await.as_ref()
}

/// A broker, or `None` after one loud line where Java or Maven are not installed: a laptop
/// without them still runs the other tests.
///
/// # Panics
/// If the tools are there and the broker does not start, or they are missing where `CI=true`: a
/// build that skips its tests must not be green.
pub async fn kafka_or_loud() -> Option<Kafka> {
    loud(Kafka::start().await)
}

#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn loud(started: anyhow::Result<Kafka>) -> Option<Kafka> {
    match started {
        Ok(kafka) => Some(kafka),
        Err(error) if error.is::<Missing>() && !in_ci() => {
            eprintln!("!!! SKIPPED: {error}, this test has checked NOTHING !!!");
            None
        }
        Err(error) => panic!("{error:#}"),
    }
}

impl Kafka {
    /// Starts a broker and waits until all topics can be written: some seconds, and on the very
    /// first start the time to fetch the jars.
    ///
    /// # Errors
    /// If Java or Maven are missing or the broker does not start.
    pub async fn start() -> anyhow::Result<Self> {
        Self::launched(|| Ok(Some(tempfile::tempdir()?))).await
    }

    async fn launched(dir: impl Fn() -> anyhow::Result<Option<TempDir>>) -> anyhow::Result<Self> {
        for _ in 0..ATTEMPTS {
            let mut kafka = Self { script: None, dir: dir()?, port: free_port() };
            if kafka.launch().await? {
                return Ok(kafka);
            }
        }
        bail!("kafka found no port in {ATTEMPTS} attempts")
    }

    /// The address for clients, `host:port`; it stays the same through an outage.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The port on the loopback interface; it stays the same through an outage.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops the broker as an operator does, and waits for its end. Its data stays.
    pub fn stop(&mut self) {
        if let Some(script) = self.script.take() {
            script.stop();
        }
    }

    /// Ends the broker without a goodbye, as a power cut does. Its data stays.
    pub fn kill(&mut self) {
        if let Some(script) = self.script.take() {
            script.kill();
        }
    }

    /// Starts the broker on the same port with the same data.
    ///
    /// # Errors
    /// If it does not start, or somebody took the port in the meantime.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.stop();
        if !self.launch().await? {
            bail!("port {} was taken during the outage", self.port);
        }
        Ok(())
    }

    /// Starts the broker on our port; `false` if a port was taken.
    async fn launch(&mut self) -> anyhow::Result<bool> {
        let data = self.dir.as_ref().map_or(Data::Dropped, |dir| Data::Kept(dir.path()));
        match Script::run(self.port, data).await? {
            Launch::Ready(script) => self.script = Some(script),
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
