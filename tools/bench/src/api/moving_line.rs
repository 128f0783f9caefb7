//! A line in the middle of a sale: it is open, it has admitted for the last minutes, and users have left its middle. A poll of such
//! a line has to compute a position and an ETA.

use anyhow::{Context, ensure};
use daegi_domain::draw::Cohort;
use daegi_domain::rate::{BUCKET_MS, BUCKETS};
use daegi_domain::{Drawn, Opening, Policy};
use daegi_store::{AdmissionStore, Epoch, OpeningStore, TicketStore};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::fixture::{ApiFixture, Server, now_ms};
use super::line::{Line, draw_at};
use crate::report::progress;

/// One of so many users was admitted, and one of so many has left.
const SHARE: usize = 10;
/// Users at the front, who are admitted during the run, are not polled.
const FRONT: usize = 64;
const MAX_CONCURRENT: usize = 64;
/// No limit.
const MAX_OUTBOX: u64 = u64::MAX >> 1;

impl Line {
    /// Creates such a line. Its tickets are those of the users who stay in it.
    pub(super) async fn fill_moving(
        fixture: &ApiFixture,
        name: &str,
        users: usize,
    ) -> anyhow::Result<Self> {
        progress(&format!("filling a moving line with {users} users"));
        let line = fixture.line(name, users + 2 * (users / SHARE)).await?;
        line.set_moving(fixture, users, None).await
    }

    /// Creates such a line whose tickets were all drawn in a lobby. They are in the order of their numbers, as in
    /// [`Line::fill_moving`].
    pub(super) async fn fill_drawn(
        fixture: &ApiFixture,
        name: &str,
        users: usize,
    ) -> anyhow::Result<Self> {
        progress(&format!("filling a drawn line with {users} users"));
        let (store, opens_at) = (&fixture.store, now_ms() - 2 * BUCKETS * BUCKET_MS);
        let mut line = Self::fill_lobby(store, name, users + 2 * (users / SHARE), opens_at).await?;
        let epoch = store.begin_term(0).await?;
        let cohort = store.freeze_cohort(epoch, &line.item, opens_at).await?;
        let cohort = cohort.context("no draw is due")?;
        let drawn = Drawn { root: [0; 32], beacon: None, seed: [9; 32] };
        ensure!(store.open_line(epoch, &line.item, Some(drawn), opens_at).await?, "not opened");
        let ranks = Cohort::new(cohort.first, cohort.size, drawn.seed);
        line.tickets.sort_by_cached_key(|ticket| ranks.rank(ticket.number));
        let mut line = line.set_moving(fixture, users, Some(draw_at(opens_at))).await?;
        line.tickets.sort_by_key(|ticket| ticket.number);
        Ok(line)
    }

    /// Makes a line move whose tickets are in the order of service.
    async fn set_moving(
        mut self,
        fixture: &ApiFixture,
        users: usize,
        opening: Option<Opening>,
    ) -> anyhow::Result<Self> {
        let share = users / SHARE;
        // 1 day: entries must not expire while another scenario runs.
        let policy = Policy {
            grace_seconds: 0,
            pass_ttl_seconds: 86_400,
            tokens_per_tick: Some(u32::try_from(share)?),
            opening,
            ..Policy::default()
        };
        self.set_policy(&fixture.store, &policy).await?;
        let behind = self.tickets.split_off(share);
        // One of eleven leaves, so that ten of twelve joined users stay.
        let (leave, stay): (Vec<_>, Vec<_>) =
            behind.into_iter().enumerate().partition(|(index, _)| index % (SHARE + 1) == SHARE / 2);
        let leave = leave.iter().map(|(_, ticket)| async move {
            let left = fixture.store.leave(ticket, now_ms()).await?;
            ensure!(left.is_ended(), "a ticket had ended before: {ticket:?}");
            Ok(())
        });
        stream::iter(leave).buffer_unordered(MAX_CONCURRENT).try_collect::<()>().await?;
        self.tickets = stay.into_iter().skip(FRONT).map(|(_, ticket)| ticket).collect();
        self.admit_over_rate_window(fixture, share as u64).await?;
        Ok(self)
    }

    /// Admits users spread over the whole window from which a line computes its rate.
    async fn admit_over_rate_window(&self, fixture: &ApiFixture, users: u64) -> anyhow::Result<()> {
        let (epoch, now) = (fixture.store.begin_term(0).await?, now_ms());
        for bucket in 0..BUCKETS {
            let quota = users * (bucket + 1) / BUCKETS - users * bucket / BUCKETS;
            let at = now - (BUCKETS - bucket) * BUCKET_MS;
            self.admit(fixture, epoch, u32::try_from(quota)?, at).await?;
        }
        Ok(())
    }

    /// Admits one user between two rounds of load, so that the rate of the line does not fall to 0.
    pub(super) async fn admit_one(&self, fixture: &ApiFixture) -> anyhow::Result<()> {
        // Another line may have begun a newer term.
        let epoch = fixture.store.begin_term(0).await?;
        self.admit(fixture, epoch, 1, now_ms()).await
    }

    async fn admit(
        &self,
        fixture: &ApiFixture,
        epoch: Epoch,
        quota: u32,
        at: u64,
    ) -> anyhow::Result<()> {
        let mut left = quota;
        while left > 0 {
            let report = fixture.store.admit(epoch, &self.item, left, 0, MAX_OUTBOX, at).await?;
            ensure!(report.admitted > 0, "{report:?}");
            left = report.remaining;
        }
        Ok(())
    }

    /// Checks that a user in the middle receives an ETA, and returns the size of that response in bytes.
    pub(super) async fn check_eta(
        &self,
        fixture: &ApiFixture,
        server: &Server,
    ) -> anyhow::Result<usize> {
        let path = &self.poll_paths(&fixture.keys, 2)[1];
        let response = reqwest::get(format!("http://{}{path}", server.address)).await?;
        let text = response.error_for_status()?.text().await?;
        let ticket: Value = serde_json::from_str(&text)?;
        let moves = ticket["lineState"] == "OPEN" && ticket["etaSeconds"].is_object();
        ensure!(moves && ticket["status"] == "WAITING", "the line does not move: {text}");
        Ok(text.len())
    }
}
