//! Somebody who takes turns.

use std::pin::Pin;
use std::task::{Context, Waker};

use super::world::World;

/// Somebody who acts when it is their turn. Turns they let pass are only counted: most are.
pub(super) struct Actor {
    life: Pin<Box<dyn Future<Output = ()>>>,
    turns: u64,
    /// The turn before which they have nothing to do.
    rests_until: u64,
}

impl Actor {
    pub(super) fn new(life: impl Future<Output = ()> + 'static) -> Self {
        Self { life: Box::pin(life), turns: 0, rests_until: 0 }
    }

    /// Says whether it was the last one.
    pub(super) fn takes_turn(&mut self, world: &World) -> bool {
        self.turns += 1;
        if self.turns < self.rests_until {
            return false;
        }
        world.begin_turn(self.turns);
        let ended = self.life.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        self.rests_until = world.end_turn();
        ended
    }
}
