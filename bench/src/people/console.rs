//! The operator's console while a thousand lines have a million people in them: how long an overview
//! takes for one who watches and for fifty, and what the fifty cost Redis.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use daegi_runtime::http::{Limits, guarded, serve};
use daegi_runtime::{AdminToken, Clock, Health, Shutdown, Traces};
use daegi_scheduler::{Outlet, SchedulerDeps};
use daegi_store::{RedisStore, Store};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::Options;
use super::arena::{Arena, SETTINGS};
use super::latency::part;
use super::line::Line;
use crate::figure::{Figure, Goal};
use crate::report::progress;

const LINES: usize = 1_000;
const VIEWERS: u32 = 50;
/// As often as the page asks.
const EVERY: Duration = Duration::from_secs(1);
const LOOKS: usize = 10;
const TOKEN: &str = "admin-token-of-the-bench";
/// Longer than everything a scheduler gives back at its end.
const GOODBYE: Duration = Duration::from_secs(10);

pub(super) async fn watch(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let people = options.people / LINES;
    progress(&format!("filling {LINES} lines with {people} people each"));
    let mut lines = Vec::with_capacity(LINES);
    for line in 0..LINES {
        lines.push(arena.line(&format!("show-{line:04}"), people).await?);
    }
    let desk = Desk::open(arena).await?;
    // The first picture has to be taken before anybody can see it.
    let first = desk.look().await?;
    let idle = desk.commands_per_second(arena, sleep(EVERY * LOOKS as u32)).await?.1;
    let (one, with_one) = desk.commands_per_second(arena, desk.viewers(1)).await?;
    let (many, with_many) = desk.commands_per_second(arena, desk.viewers(VIEWERS)).await?;
    desk.close().await?;
    remove(arena, &lines).await?;
    let (one, many) = (one?, many?);
    let ms = first.as_secs_f64() * 1e3;
    Ok(vec![
        Figure::new(
            "console, overview p99 with fifty viewers",
            part(&many, 0.99),
            "ms",
            Goal::Most(100.0),
        )
        .with(format!(
            "{LINES} lines, {} waiting; median {:.1} ms; with one viewer median {:.1} ms, \
                 slowest {:.1} ms; the first after a while {ms:.0} ms",
            people * LINES,
            part(&many, 0.5),
            part(&one, 0.5),
            part(&one, 1.0),
        )),
        Figure::new(
            "console, Redis commands, fifty viewers vs one",
            (with_many - idle) / (with_one - idle),
            "",
            Goal::Most(2.0),
        )
        .with(format!("{with_many:.0}/s, {with_one:.0}/s, nobody watching {idle:.0}/s")),
    ])
}

async fn remove(arena: &Arena, lines: &[Line]) -> anyhow::Result<()> {
    for line in lines {
        arena.store.remove_item(&line.item).await?;
    }
    Ok(())
}

/// A scheduler with its admin API, in this process.
struct Desk {
    http: reqwest::Client,
    overview: String,
    shutdown: Shutdown,
}

impl Desk {
    async fn open(arena: &Arena) -> anyhow::Result<Self> {
        let shutdown = Shutdown::new();
        let partitions = arena.store.partitions();
        let store = RedisStore::open(&arena.redis.url(), partitions, SETTINGS).await?;
        let deps = SchedulerDeps {
            store: Arc::new(store),
            admin_token: AdminToken::parse(TOKEN)?,
            clock: Clock::system(),
            health: Health::new(&shutdown).part("scheduler"),
            lease: Duration::from_secs(3),
            outbox_max: u64::MAX,
            outlet: Outlet::Nowhere,
            traces: Traces::default(),
        };
        let router = daegi_scheduler::start(deps, &shutdown);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let serving = serve(listener, guarded(router), Limits::default(), shutdown.clone());
        shutdown.spawn("internal", serving);
        let overview = format!("http://{address}/internal/admin/v1/overview");
        Ok(Self { http: reqwest::Client::new(), overview, shutdown })
    }

    /// One look, and how long it took.
    async fn look(&self) -> anyhow::Result<Duration> {
        look(&self.http, &self.overview).await
    }

    /// All latencies of so many who watch, sorted.
    async fn viewers(&self, viewers: u32) -> anyhow::Result<Vec<Duration>> {
        let mut watching = JoinSet::new();
        for viewer in 0..viewers {
            let (http, overview) = (self.http.clone(), self.overview.clone());
            watching.spawn(async move {
                sleep(EVERY * viewer / viewers).await;
                let mut pace = interval(EVERY);
                pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
                let mut latencies = Vec::with_capacity(LOOKS);
                for _ in 0..LOOKS {
                    pace.tick().await;
                    latencies.push(look(&http, &overview).await?);
                }
                anyhow::Ok(latencies)
            });
        }
        let mut all = Vec::new();
        while let Some(latencies) = watching.join_next().await {
            all.extend(latencies??);
        }
        all.sort_unstable();
        Ok(all)
    }

    /// What Redis does meanwhile, all that scripts call included.
    async fn commands_per_second<T>(
        &self,
        arena: &Arena,
        work: impl Future<Output = T>,
    ) -> anyhow::Result<(T, f64)> {
        let (before, began) =
            (arena.info("stats", "total_commands_processed").await?, Instant::now());
        let done = work.await;
        let commands = arena.info("stats", "total_commands_processed").await? - before;
        Ok((done, commands / began.elapsed().as_secs_f64()))
    }

    async fn close(self) -> anyhow::Result<()> {
        drop(self.http);
        self.shutdown.begin().await;
        Ok(self.shutdown.wait(GOODBYE).await?)
    }
}

async fn look(http: &reqwest::Client, overview: &str) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let answer = http.get(overview).bearer_auth(TOKEN).send().await?;
    ensure!(answer.status().is_success(), "{}", answer.status());
    let text = answer.text().await?;
    let took = began.elapsed();
    ensure!(text.contains("show-"), "no lines in {text}");
    Ok(took)
}
