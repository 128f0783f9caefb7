//! Records stalls of the machine, because a leader on a stalled machine loses its lease without a fault, and the checker must know.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fleet::ChaosFleet;
use super::recorder::{Recorder, now};
use crate::history::{Entry, Fault, FaultKind};

const PING_INTERVAL: Duration = Duration::from_millis(100);

/// A slower ping is a stall. A lease of 2 s is renewed after a third of it, with a call timeout of 700 ms, so nothing shorter can
/// cost a lease.
const STALL_THRESHOLD: Duration = Duration::from_millis(800);

/// Pings Redis without a proxy until the task is aborted.
pub(super) async fn run(fleet: Arc<ChaosFleet>, redis: u16, recorder: Arc<Recorder>) {
    loop {
        tokio::time::sleep(PING_INTERVAL).await;
        let (from, asked) = (now(), Instant::now());
        let answered = ping(redis).await.is_ok();
        // A fault of Redis holds the lock and is recorded as such.
        let broken = fleet.redis.try_lock().is_err();
        if answered && !broken && asked.elapsed() > STALL_THRESHOLD {
            let (what, target) = (FaultKind::Stall, "redis".to_owned());
            recorder.write(&Entry::Fault(Fault { what, target, from, to: now() }));
        }
    }
}

async fn ping(port: u16) -> io::Result<()> {
    let mut redis = TcpStream::connect(("127.0.0.1", port)).await?;
    redis.write_all(b"PING\r\n").await?;
    redis.read_exact(&mut [0; 7]).await.map(drop)
}
