//! People who keep a connection open and wait for news.

use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use daegi_store::Store;

use super::Options;
use super::arena::{Arena, now};
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// Opened at once, so that the pod's backlog takes them.
const TOGETHER: usize = 200;
/// How long the pod has to take all requests in, and to tell everybody the news.
const SETTLE: Duration = Duration::from_secs(1);

pub(super) async fn hold(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let count = options.listeners;
    let line = arena.line("news", count + 1).await?;
    let pod = arena.another_pod()?;
    let addresses = line.addresses(&arena.keys, count);
    pod.answers(&addresses[0]).await?;
    let (idle, before) = (pod.memory()?, pod.cpu()?);
    let mut open = Vec::with_capacity(count);
    for some in addresses.chunks(TOGETHER) {
        for address in some {
            let mut stream = TcpStream::connect(&pod.address).await?;
            let request = format!("GET {address}?waitMs=30000 HTTP/1.1\r\nhost: bench\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            open.push(stream);
        }
    }
    tokio::time::sleep(SETTLE).await;
    let (held, opened) = (pod.memory()?, pod.cpu()?);
    let each = (held - idle) / open.len() as f64 / 1024.0;
    progress(&format!("{} people listen, {each:.1} KB each", open.len()));

    // The first leaves: everybody else has news.
    let first = line.tickets.first().context("nobody waits")?;
    arena.store.leave(&line.item, &first.user, first.number, now()).await?;
    for stream in open.iter_mut().skip(1) {
        let mut answer = [0; 2048];
        let read = stream.read(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer[..read]);
        anyhow::ensure!(answer.starts_with("HTTP/1.1 200"), "no news but: {answer}");
    }
    let told = (pod.cpu()? - opened) * 1e3;
    Ok(vec![
        Figure::new("memory per open long poll", each, "KB", Goal::Most(20.0))
            .with(format!("{} connections to one pod", open.len())),
        Figure::new("CPU to tell all of them the news", told, "ms", Goal::None)
            .with(format!("opening them took {:.0} ms", (opened - before) * 1e3)),
    ])
}
