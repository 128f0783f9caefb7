use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use daegi_domain::ItemId;
use daegi_runtime::Clock;
use daegi_store::SharedStore;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::View;
use super::absent::Absent;
use super::answers::Answers;
use super::seen::Marks;
use super::settings::SharedSettings;
use crate::Error;
use crate::meters::Meters;

/// A line is kept fresh for this long after the last request of a waiting ticket. Requests that
/// come more rarely refresh it themselves.
const WANTED: Duration = Duration::from_secs(1);
/// How exactly the last request is noted. Coarse, so that ten thousand polls per second write the
/// shared cache line four times and not ten thousand times.
const ASKED_STEP_MS: u64 = 250;

/// What all lines of a pod share.
pub(crate) struct Context {
    pub(super) store: SharedStore,
    pub(super) clock: Clock,
    pub(super) settings: SharedSettings,
    pub(super) meters: Arc<Meters>,
    pub(super) absent: Absent,
    pub(super) answers: Answers,
}

/// What the requests for one line and its task share.
pub(crate) struct Core {
    pub(super) id: ItemId,
    pub(super) context: Arc<Context>,
    pub(super) view: ArcSwap<View>,
    pub(super) marks: Marks,
    /// The item was not there at the last look.
    pub(super) gone: AtomicBool,
    /// How many rounds have begun.
    pub(super) begun: AtomicU64,
    /// The last round that has ended, whatever it brought.
    pub(super) rounds: watch::Sender<Round>,
    /// Told only when something changed that a waiting person can see.
    pub(super) moves: watch::Sender<()>,
    /// Told when tickets have ended, which may be entries.
    pub(super) ends: watch::Sender<()>,
    /// Ends the refresher's rest early.
    pub(super) wake: Notify,
    paused: AtomicBool,
    /// One more than the step of the last request of a waiting ticket; 0 while there was none.
    asked: AtomicU64,
    born: Instant,
}

/// How one look at the store went.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) number: u64,
    pub(super) outcome: Result<(), Error>,
}

impl Core {
    pub(super) fn new(id: ItemId, context: Arc<Context>, view: View) -> Self {
        let first = Round { number: 0, outcome: Ok(()) };
        Self {
            id,
            context,
            view: ArcSwap::from_pointee(view),
            marks: Marks::default(),
            gone: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            rounds: watch::Sender::new(first),
            moves: watch::Sender::new(()),
            ends: watch::Sender::new(()),
            wake: Notify::new(),
            paused: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            born: Instant::now(),
        }
    }

    /// Notes a request of a waiting ticket, and wakes the refresher if it rests for want of any.
    pub(super) fn ask(&self) {
        let step = self.step() + 1;
        if self.asked.load(Ordering::Relaxed) != step {
            self.asked.store(step, Ordering::SeqCst);
        }
        if self.paused.load(Ordering::SeqCst) {
            self.wake.notify_one();
        }
    }

    /// Whether a waiting ticket asked lately, or a connection is held for a ticket now.
    pub(super) fn is_wanted(&self) -> bool {
        (self.asked.load(Ordering::SeqCst) > 0 && self.idle() < WANTED)
            || self.rounds.receiver_count() > 0
            || self.moves.receiver_count() > 0
    }

    /// How long no waiting ticket has asked.
    pub(super) fn idle(&self) -> Duration {
        let steps = (self.step() + 1).saturating_sub(self.asked.load(Ordering::SeqCst).max(1));
        Duration::from_millis(steps * ASKED_STEP_MS)
    }

    /// Whether the refresher rests: the view is only as new as the last request needed it.
    pub(super) fn is_resting(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Announces a rest before looking once more whether it is wanted: a request either sees the
    /// announcement, or was noted before that look.
    pub(super) fn pause(&self) -> bool {
        self.paused.store(true, Ordering::SeqCst);
        let may_rest = !self.is_wanted();
        if !may_rest {
            self.resume();
        }
        may_rest
    }

    pub(super) fn resume(&self) {
        self.paused.store(false, Ordering::SeqCst);
    }

    fn step(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX) / ASKED_STEP_MS
    }
}
