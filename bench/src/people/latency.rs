//! How long a poll takes while the pod has half of what it can bear.
//!
//! Requests are due at fixed times, whether the last answer came or not, and a latency counts from
//! when its request was due: a pod that falls behind shows in the figures, and so does every
//! request that waits for its turn meanwhile. One thread sends and receives them all: a thread per
//! connection would measure how threads take turns. The bare handler has the same load in turn,
//! which shows what is the machine's doing.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::arena::{Arena, Server};
use super::moving::Moving;
use super::wrk::Polls;
use super::{HUNDRED_THOUSAND, Options, THOUSAND};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

const CONNECTIONS: usize = 64;
const NAP: Duration = Duration::from_micros(20);

pub(super) async fn at_half_load(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let moving = Moving::fill(arena, "brisk", HUNDRED_THOUSAND).await?;
    let addresses = moving.line.addresses(&arena.keys, THOUSAND);
    let most = Polls::of(&addresses)?.at(&arena.pod, options.seconds).await?.per_second;
    let rate = most / 2.0;
    let crowd = |server: &Server| {
        Arc::new(Crowd {
            server: server.address.clone(),
            addresses: addresses.clone(),
            pause: Duration::from_secs_f64(CONNECTIONS as f64 / rate),
            lasting: Duration::from_secs(options.seconds.into()),
        })
    };
    let (pod, bare) = (crowd(&arena.pod), crowd(&arena.bare));
    let (mut medians, mut p99s, mut bare_p99s) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=options.rounds {
        let (latencies, bare) = (pod.latencies().await?, bare.latencies().await?);
        let (middle, p99, bare) =
            (part(&latencies, 0.5), part(&latencies, 0.99), part(&bare, 0.99));
        progress(&format!(
            "latency at {rate:.0}/s: median {middle:.2} ms, p99 {p99:.2} ms, bare {bare:.2} ms"
        ));
        if round > 0 {
            medians.push(middle);
            p99s.push(p99);
            bare_p99s.push(bare);
        }
    }
    moving.told(arena, &arena.pod).await?;
    moving.remove(arena).await?;
    let single = p99s.clone();
    let (middle, p99, bare) = (median(medians), median(p99s), median(bare_p99s));
    Ok(vec![
        Figure::new("poll latency p99 at half load", p99, "ms", Goal::Most(5.0))
            .with(format!(
                "{rate:.0}/s; median {middle:.2} ms; p99 of the bare handler {bare:.2} ms"
            ))
            .over(single),
    ])
}

/// The latency that this part of them does not exceed, in milliseconds.
pub(super) fn part(sorted: &[Duration], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3
}

/// People who poll at a steady pace, each over a connection of their own.
struct Crowd {
    server: String,
    addresses: Vec<String>,
    /// Between two polls of one person.
    pause: Duration,
    lasting: Duration,
}

/// One of them.
struct Person<'a> {
    stream: TcpStream,
    addresses: Box<dyn Iterator<Item = &'a String> + 'a>,
    /// When the next request is due, or was, if the answer is still awaited.
    due: Instant,
    /// What has come of the answer; nothing is awaited if there is none.
    answer: Option<Vec<u8>>,
}

impl Crowd {
    async fn latencies(self: &Arc<Self>) -> anyhow::Result<Vec<Duration>> {
        let crowd = self.clone();
        tokio::task::spawn_blocking(move || crowd.poll()).await?
    }

    /// All latencies, sorted.
    fn poll(&self) -> anyhow::Result<Vec<Duration>> {
        let begin = Instant::now() + Duration::from_millis(50);
        let people: Result<Vec<_>, _> =
            (0..CONNECTIONS).map(|person| self.person(person, begin)).collect();
        let (mut people, mut all) = (people?, Vec::new());
        let end = begin + self.lasting;
        while people.iter().any(|person| person.due < end || person.answer.is_some()) {
            let mut idle = true;
            for person in &mut people {
                if person.answer.is_some() {
                    if let Some(latency) = person.listen()? {
                        all.push(latency);
                        person.due += self.pause;
                        idle = false;
                    }
                } else if person.due < end && person.due <= Instant::now() {
                    person.ask()?;
                    idle = false;
                }
            }
            // Leaves the core to the pod; wakes late by less than is worth measuring.
            if idle {
                thread::sleep(NAP);
            }
        }
        all.sort_unstable();
        Ok(all)
    }

    fn person(&self, person: usize, begin: Instant) -> anyhow::Result<Person<'_>> {
        let stream = TcpStream::connect(&self.server)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Person {
            stream,
            addresses: Box::new(self.addresses.iter().cycle().skip(person).step_by(CONNECTIONS)),
            due: begin + self.pause.mul_f64(person as f64 / CONNECTIONS as f64),
            answer: None,
        })
    }
}

impl Person<'_> {
    fn ask(&mut self) -> anyhow::Result<()> {
        let address = self.addresses.next().map_or("", |address| address);
        // So small that the socket always takes it whole.
        let request = format!("GET {address} HTTP/1.1\r\nhost: bench\r\n\r\n");
        self.stream.write_all(request.as_bytes())?;
        self.answer = Some(Vec::new());
        Ok(())
    }

    /// The latency, once the whole answer is there.
    fn listen(&mut self) -> anyhow::Result<Option<Duration>> {
        let mut buffer = [0; 2048];
        let read = match self.stream.read(&mut buffer) {
            Ok(0) => anyhow::bail!("the pod hung up"),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let answer = self.answer.get_or_insert_default();
        answer.extend_from_slice(&buffer[..read]);
        if !is_whole(std::str::from_utf8(answer)?)? {
            return Ok(None);
        }
        self.answer = None;
        Ok(Some(self.due.elapsed()))
    }
}

fn is_whole(answer: &str) -> anyhow::Result<bool> {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { return Ok(false) };
    anyhow::ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    Ok(body.len() >= length.unwrap_or("0").parse()?)
}
