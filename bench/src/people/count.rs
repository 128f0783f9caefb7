//! What a poll and a join take in instructions, counted by callgrind. A count is the same on a busy
//! machine as on a quiet one, so it tells what a change of the code gained when a clock cannot. The
//! kernel's part, which is the larger one of a small answer, is not in it. Callgrind's processor has no
//! instructions for SHA-256, so that the MAC of a token takes some 7,000 here and a few hundred elsewhere.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use super::THOUSAND;
use super::arena::{Arena, Server};
use super::moving::Moving;
use super::wrk::{Joins, Load, Polls};
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// What regularly happens in a pod anyway is little beside this.
const SECONDS: u32 = 5;
/// Before counting, for what is done once.
const WARM_UP: u32 = 1;

pub(super) async fn instructions(arena: &Arena) -> anyhow::Result<Vec<Figure>> {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        progress("VALGRIND IS MISSING: instructions are not counted");
        return Ok(Vec::new());
    }
    let moving = Moving::fill(arena, "counted", THOUSAND).await?;
    let line = &moving.line;
    let polls = Polls::of(&line.addresses(&arena.keys, THOUSAND))?;
    let (warm, count) = (Joins::at_door(&line.door(), "w")?, Joins::at_door(&line.door(), "c")?);
    let store = arena.redis.url();
    let pod = Counted::start(|address| Arena::pod_command(&store, address)).await?;
    let bare = Counted::start(Arena::bare_command).await?;
    polls.at(&pod.server, WARM_UP).await?;
    polls.at(&bare.server, WARM_UP).await?;
    warm.at(&pod.server, WARM_UP).await?;
    let poll = pod.during(polls.at(&pod.server, SECONDS)).await?;
    let join = pod.during(count.at(&pod.server, SECONDS)).await?;
    let nothing = bare.during(polls.at(&bare.server, SECONDS)).await?;
    moving.told(arena, &arena.pod).await?;
    moving.remove(arena).await?;
    progress(&format!("instructions: a poll {poll:.0}, a join {join:.0}, bare {nothing:.0}"));
    let figure = |name: &str, value: f64| {
        Figure::new(name, value / nothing, "", Goal::None)
            .with(format!("{value:.0} of {nothing:.0} by callgrind, without the kernel's"))
    };
    Ok(vec![
        figure("instructions of a poll, of a bare handler's", poll),
        figure("instructions of a join, of a bare handler's", join),
    ])
}

/// A server that runs under callgrind and counts when it is told to.
struct Counted {
    server: Server,
    directory: TempDir,
}

impl Counted {
    async fn start(command: impl Fn(&str) -> anyhow::Result<Command>) -> anyhow::Result<Self> {
        let directory = TempDir::new()?;
        let server = Server::start(|address| Ok(watched(&command(address)?, directory.path())))?;
        server.answers("/.well-known/jwks.json").await?;
        Ok(Self { server, directory })
    }

    /// Instructions per request while a load lasts.
    async fn during(
        &self,
        load: impl Future<Output = anyhow::Result<Load>>,
    ) -> anyhow::Result<f64> {
        self.control(&["-i", "on"])?;
        let load = load.await?;
        self.control(&["-i", "off"])?;
        self.control(&["-d"])?;
        Ok(self.take_dump()? / load.requests)
    }

    fn control(&self, what: &[&str]) -> anyhow::Result<()> {
        let told = Command::new("callgrind_control")
            .args(what)
            .arg(self.server.id().to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        ensure!(told.success(), "callgrind_control {what:?} failed");
        Ok(())
    }

    /// What was counted since the last dump, which begins a new count.
    fn take_dump(&self) -> anyhow::Result<f64> {
        let mut total = 0.0;
        for dump in std::fs::read_dir(self.directory.path())? {
            let path = dump?.path();
            let text = std::fs::read_to_string(&path)?;
            std::fs::remove_file(&path)?;
            let count = text.lines().find_map(|line| line.strip_prefix("totals: "));
            total += count.map_or(Ok(0.0), str::parse::<f64>).context("no count")?;
        }
        Ok(total)
    }
}

/// The same command under callgrind, which begins without counting.
fn watched(command: &Command, directory: &Path) -> Command {
    let mut watched = Command::new("valgrind");
    watched
        .args(["--tool=callgrind", "--instr-atstart=no", "--quiet"])
        .arg(format!("--callgrind-out-file={}", directory.join("count").display()))
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            watched.env(name, value);
        }
    }
    watched
}
