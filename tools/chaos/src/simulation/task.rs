//! A task that runs in turns.

use std::pin::Pin;
use std::task::{Context, Waker};

use super::state::SimState;

/// A task of the simulation. Turns in which it is idle are only counted, which most are.
pub(super) struct SimTask {
    future: Pin<Box<dyn Future<Output = ()>>>,
    turns: u64,
    /// The next turn in which it has work.
    idle_until: u64,
}

impl SimTask {
    pub(super) fn new(future: impl Future<Output = ()> + 'static) -> Self {
        Self { future: Box::pin(future), turns: 0, idle_until: 0 }
    }

    /// Returns whether the task has ended.
    pub(super) fn run_turn(&mut self, state: &SimState) -> bool {
        self.turns += 1;
        if self.turns < self.idle_until {
            return false;
        }
        state.begin_turn(self.turns);
        let ended = self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        self.idle_until = state.end_turn();
        ended
    }
}
