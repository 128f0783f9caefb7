//! One person: comes, waits, is let in, and orders, or not.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep, sleep_until};

use super::pods::{Heard, Place, Pods, Who};
use crate::history::Outcome;

/// The pause after an answer that was none.
const AGAIN: Duration = Duration::from_millis(300);

/// The longest pause between two polls, so that a run ends soon after its faults.
const LONGEST: Duration = Duration::from_secs(3);

/// A person with a mind of their own, which a seed has given them.
pub(crate) struct Person {
    pub(crate) who: Who,
    pub(crate) pods: Arc<Pods>,
    pub(crate) chance: Rng,
    pub(crate) comes: Instant,
    pub(crate) deadline: Instant,
}

/// What a person does when they are let in.
enum Mind {
    Completes,
    Orders,
    GivesBack,
    Forgets,
}

impl Person {
    pub(crate) async fn live(mut self) {
        sleep_until(self.comes).await;
        let Some(mut place) = self.join().await else { return };
        // Some lose patience, some lose their token and ask for it again.
        if self.chance.f64() < 0.05 {
            sleep(self.a_while(0..4_000)).await;
            self.leave(&place).await;
            return;
        }
        if self.chance.f64() < 0.10 {
            let Some(again) = self.join().await else { return };
            place = again;
        }
        if self.until(&place, |status| status != "WAITING").await.as_deref() == Some("ENTERABLE") {
            sleep(self.a_while(200..2_500)).await;
            self.enter(&place).await;
            self.until(&place, |status| status != "WAITING" && status != "ENTERABLE").await;
        }
    }

    async fn enter(&mut self, place: &Place) {
        let mind = match self.chance.u8(0..10) {
            0..6 => Mind::Completes,
            6..8 => Mind::Orders,
            8 => Mind::GivesBack,
            _ => Mind::Forgets,
        };
        match mind {
            Mind::Completes => self.complete(place).await,
            Mind::Orders => self.order(place).await,
            Mind::GivesBack => self.leave(place).await,
            Mind::Forgets => {}
        }
    }

    /// Asks until there is a place, or none to be had.
    async fn join(&mut self) -> Option<Place> {
        while self.has_time() {
            let pod = self.pod();
            let heard = self.pods.join(pod, &self.who).await;
            match heard {
                Heard { place: Some(place), .. } => return Some(place),
                // An item that was lost comes back.
                Heard { outcome: Outcome::Refused { status, .. }, .. } if status != 404 => {
                    return None;
                }
                Heard { .. } => sleep(AGAIN).await,
            }
        }
        None
    }

    /// Polls until the status is one that was waited for; none if time is over or the ticket is
    /// refused, which the history tells.
    async fn until(&mut self, place: &Place, enough: impl Fn(&str) -> bool) -> Option<String> {
        while self.has_time() {
            let pod = self.pod();
            let heard = self.pods.poll(pod, &self.who, place).await;
            match (&heard.outcome, heard.status()) {
                (_, Some(status)) if enough(status) => return Some(status.to_owned()),
                (Outcome::Refused { .. }, _) => return None,
                (Outcome::Ok(_), _) => sleep(heard.poll_after.clamp(AGAIN, LONGEST)).await,
                _ => sleep(AGAIN * 2).await,
            }
        }
        None
    }

    async fn leave(&mut self, place: &Place) {
        while self.has_time() {
            let pod = self.pod();
            let heard = self.pods.leave(pod, &self.who, place).await;
            if !heard.outcome.is_unsure() {
                return;
            }
            sleep(AGAIN).await;
        }
    }

    async fn complete(&mut self, place: &Place) {
        while self.has_time() {
            let pod = self.pod();
            if self.pods.complete(pod, &self.who, place).await.is_done() {
                return;
            }
            sleep(AGAIN).await;
        }
    }

    async fn order(&mut self, place: &Place) {
        while self.has_time() && !matches!(self.pods.order(&self.who, place).await, Outcome::Ok(_))
        {
            sleep(AGAIN).await;
        }
    }

    fn pod(&mut self) -> usize {
        self.chance.usize(..)
    }

    fn a_while(&mut self, millis: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.chance.u64(millis))
    }

    fn has_time(&self) -> bool {
        Instant::now() < self.deadline
    }
}
