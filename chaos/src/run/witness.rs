//! Notes when the machine itself stalls: on a busy one a leader may lose its lease without anybody's
//! fault, and the judge must be told.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::recorder::{Recorder, now};
use super::stage::Stage;
use crate::history::{Entry, Fault, FaultKind};

const EVERY: Duration = Duration::from_millis(100);

/// Slower than this is a stall: a lease is renewed after a third of it and asked for again after 700 ms,
/// so that nothing shorter can cost one.
const SLOW: Duration = Duration::from_millis(800);

/// Asks a Redis again and again, on a way that nobody breaks, for ever.
pub(super) async fn watch(stage: Arc<Stage>, redis: u16, recorder: Arc<Recorder>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let (from, asked) = (now(), Instant::now());
        let answered = ping(redis).await.is_ok();
        // Whoever breaks Redis holds it, and writes that down.
        let broken = stage.redis.try_lock().is_err();
        if answered && !broken && asked.elapsed() > SLOW {
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
