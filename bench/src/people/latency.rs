//! How long a poll takes while the pod has half of what it can bear.
//!
//! Requests are sent when their time has come, not when the last answer has: a pod that falls
//! behind shows in the figures, and so does every request that waits for its turn meanwhile.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::arena::Arena;
use super::wrk::Polls;
use super::{Options, THOUSAND};
use crate::figure::{Figure, Goal};
use crate::report::progress;

const CONNECTIONS: usize = 64;

pub(super) async fn at_half_load(arena: &Arena, options: &Options) -> anyhow::Result<Figure> {
    let line = arena.line("big", THOUSAND).await?;
    let addresses = line.addresses(&arena.keys, THOUSAND);
    let most = Polls::of(&addresses)?.at(&arena.pod, options.seconds).await?.per_second;
    let rate = most / 2.0;
    let mut latencies = polls(arena, Arc::new(addresses), rate, options.seconds).await?;
    latencies.sort_unstable();
    let at =
        |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    let (median, p99, p999) = (at(0.5), at(0.99), at(0.999));
    progress(&format!("latency at {rate:.0}/s: median {median:.2} ms, p99 {p99:.2} ms"));
    Ok(Figure::new("poll latency p99 at half load", p99, "ms", Goal::Most(5.0))
        .with(format!("{rate:.0}/s; median {median:.2} ms, p99.9 {p999:.2} ms")))
}

async fn polls(
    arena: &Arena,
    addresses: Arc<Vec<String>>,
    rate: f64,
    seconds: u32,
) -> anyhow::Result<Vec<Duration>> {
    let (begin, pause) = (Instant::now(), Duration::from_secs_f64(CONNECTIONS as f64 / rate));
    let end = begin + Duration::from_secs(seconds.into());
    let mut people = JoinSet::new();
    for person in 0..CONNECTIONS {
        let stream = TcpStream::connect(&arena.pod.address).await?;
        let first = begin + pause.mul_f64(person as f64 / CONNECTIONS as f64);
        people.spawn(person_polls(stream, addresses.clone(), person, first, pause, end));
    }
    let mut all = Vec::new();
    while let Some(latencies) = people.join_next().await {
        all.extend(latencies??);
    }
    Ok(all)
}

async fn person_polls(
    mut stream: TcpStream,
    addresses: Arc<Vec<String>>,
    person: usize,
    first: Instant,
    pause: Duration,
    end: Instant,
) -> anyhow::Result<Vec<Duration>> {
    stream.set_nodelay(true)?;
    let (mut latencies, mut due, mut at) = (Vec::new(), first, person);
    while due < end {
        tokio::time::sleep_until(due).await;
        // Timers are a millisecond coarse, which is not the pod's fault.
        let sent = due.max(Instant::now().checked_sub(pause).unwrap_or(due));
        let address = &addresses[at % addresses.len()];
        let request = format!("GET {address} HTTP/1.1\r\nhost: bench\r\n\r\n");
        let begun = if sent > due { due } else { Instant::now() };
        stream.write_all(request.as_bytes()).await?;
        answer(&mut stream).await?;
        latencies.push(begun.elapsed());
        (due, at) = (due + pause, at + CONNECTIONS);
    }
    Ok(latencies)
}

/// Reads one whole answer.
async fn answer(stream: &mut TcpStream) -> anyhow::Result<()> {
    let (mut buffer, mut read) = ([0; 4096], 0);
    loop {
        let more = stream.read(&mut buffer[read..]).await?;
        anyhow::ensure!(more > 0, "the pod hung up");
        read += more;
        let text = std::str::from_utf8(&buffer[..read])?;
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            anyhow::ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap_or("0").parse()? {
                return Ok(());
            }
        }
    }
}
