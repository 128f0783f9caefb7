//! What a poll and a join take in instructions, which tells what a change of the code gained. The
//! kernel's part, which is not counted, is the larger one of a small answer. Callgrind's processor has no
//! instructions for SHA-256, so that the MAC of a token takes some 7,000 here and a few hundred elsewhere.

use std::process::Command;

use tempfile::TempDir;

use super::arena::{Arena, Server};
use super::moving::Moving;
use super::wrk::{Joins, Load, Polls};
use super::{THOUSAND, callgrind};
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// What regularly happens in a pod anyway is little beside this.
const SECONDS: u32 = 5;
/// Before counting, for what is done once.
const WARM_UP: u32 = 1;

pub(super) async fn instructions(arena: &Arena) -> anyhow::Result<Vec<Figure>> {
    if !callgrind::is_there("instructions are not counted") {
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
        let server = Server::start(|address| {
            Ok(callgrind::watched(&command(address)?, &[], directory.path()))
        })?;
        server.answers("/.well-known/jwks.json").await?;
        Ok(Self { server, directory })
    }

    /// Instructions per request while a load lasts.
    async fn during(
        &self,
        load: impl Future<Output = anyhow::Result<Load>>,
    ) -> anyhow::Result<f64> {
        callgrind::control(self.server.id(), &["-i", "on"])?;
        let load = load.await?;
        callgrind::control(self.server.id(), &["-i", "off"])?;
        callgrind::control(self.server.id(), &["-d"])?;
        let counted: f64 = callgrind::take_counts(self.directory.path())?.iter().sum();
        Ok(counted / load.requests)
    }
}
