//! One user: joins, polls, is admitted, and completes, orders, leaves or lets the entry expire.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep};

use super::arrival::Arrival;
use super::client::{HeldTicket, RecordingClient, Reply, UserRef};
use crate::history::Outcome;

/// Delay after a failed call.
const RETRY_INTERVAL: Duration = Duration::from_millis(300);

/// Maximum delay between two polls, so that a run ends soon after its faults.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(3);

/// A user whose behaviour is decided by a seeded rng.
pub(crate) struct VirtualUser {
    pub(crate) user_ref: UserRef,
    pub(crate) client: Arc<RecordingClient>,
    pub(crate) rng: Rng,
    pub(crate) arrival: Arrival,
    pub(crate) deadline: Instant,
    /// The invitation code, if the user has one.
    pub(crate) code: Option<String>,
    /// Whether the user joins without the code first, and then moves to its lane.
    pub(crate) moves: bool,
}

/// What a user does with an entry.
enum Behaviour {
    Complete,
    Order,
    Leave,
    LetExpire,
}

impl VirtualUser {
    pub(crate) async fn run(mut self) {
        let arrival = tokio::time::timeout_at(self.deadline, self.arrival.clone().wait());
        if !arrival.await.unwrap_or(false) {
            return;
        }
        if self.moves {
            let code = self.code.take();
            self.join().await;
            sleep(self.random_delay(0..3_000)).await;
            self.code = code;
        }
        let Some(mut ticket) = self.join_with_or_without_code().await else { return };
        // 5 % leave, 10 % join again to get the token again.
        if self.rng.f64() < 0.05 {
            sleep(self.random_delay(0..4_000)).await;
            self.leave(&ticket).await;
            return;
        }
        if self.rng.f64() < 0.10 {
            // A code that others have used after a data loss is refused; the user keeps the ticket then.
            match self.join().await {
                Some(rejoined) => ticket = rejoined,
                None if self.code.is_some() => {}
                None => return,
            }
        }
        if self.poll_until(&ticket, |status| status != "WAITING").await.as_deref()
            == Some("ENTERABLE")
        {
            sleep(self.random_delay(200..2_500)).await;
            self.enter(&ticket).await;
            self.poll_until(&ticket, |status| status != "WAITING" && status != "ENTERABLE").await;
        }
    }

    async fn enter(&mut self, ticket: &HeldTicket) {
        let mind = match self.rng.u8(0..10) {
            0..6 => Behaviour::Complete,
            6..8 => Behaviour::Order,
            8 => Behaviour::Leave,
            _ => Behaviour::LetExpire,
        };
        match mind {
            Behaviour::Complete => self.complete(ticket).await,
            Behaviour::Order => self.order(ticket).await,
            Behaviour::Leave => self.leave(ticket).await,
            Behaviour::LetExpire => {}
        }
    }

    /// Joins with the code, or without it if another user has used it.
    async fn join_with_or_without_code(&mut self) -> Option<HeldTicket> {
        if let Some(ticket) = self.join().await {
            return Some(ticket);
        }
        self.code.take()?;
        self.join().await
    }

    /// Joins until there is a ticket; `None` if the join is refused.
    async fn join(&mut self) -> Option<HeldTicket> {
        while self.has_time_left() {
            let pod = self.pod();
            let reply = self.client.join(pod, &self.user_ref, self.code.as_deref()).await;
            match reply {
                Reply { ticket: Some(ticket), .. } => return Some(ticket),
                // A lost item comes back.
                Reply { outcome: Outcome::Refused { status, .. }, .. } if status != 404 => {
                    return None;
                }
                Reply { .. } => sleep(RETRY_INTERVAL).await,
            }
        }
        None
    }

    /// Polls until the status fulfils the condition; `None` if the time is up or the ticket is refused.
    async fn poll_until(
        &mut self,
        ticket: &HeldTicket,
        is_done: impl Fn(&str) -> bool,
    ) -> Option<String> {
        while self.has_time_left() {
            let pod = self.pod();
            let reply = self.client.poll(pod, &self.user_ref, ticket).await;
            match (&reply.outcome, reply.status()) {
                (_, Some(status)) if is_done(status) => return Some(status.to_owned()),
                (Outcome::Refused { .. }, _) => return None,
                (Outcome::Ok(_), _) => {
                    sleep(reply.poll_after.clamp(RETRY_INTERVAL, MAX_POLL_INTERVAL)).await
                }
                _ => sleep(RETRY_INTERVAL * 2).await,
            }
        }
        None
    }

    async fn leave(&mut self, ticket: &HeldTicket) {
        while self.has_time_left() {
            let pod = self.pod();
            let reply = self.client.leave(pod, &self.user_ref, ticket).await;
            if !reply.outcome.has_unknown_effect() {
                return;
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    async fn complete(&mut self, ticket: &HeldTicket) {
        while self.has_time_left() {
            let pod = self.pod();
            if self.client.complete(pod, &self.user_ref, ticket).await.is_done() {
                return;
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    async fn order(&mut self, ticket: &HeldTicket) {
        while self.has_time_left()
            && !matches!(self.client.order(&self.user_ref, ticket).await, Outcome::Ok(_))
        {
            sleep(RETRY_INTERVAL).await;
        }
    }

    fn pod(&mut self) -> usize {
        self.rng.usize(..)
    }

    fn random_delay(&mut self, millis: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.rng.u64(millis))
    }

    fn has_time_left(&self) -> bool {
        Instant::now() < self.deadline
    }
}
