//! Leaders, relays and people in one thread, on a memory store that fails, under a clock of its own.
//!
//! Every call to the store waits a while before it is carried out, and a seed decides whose turn it
//! is next: a leader may be overtaken by two others between two calls of a tick, or end in the
//! middle of it. In some histories the store loses everything, or goes on with what it had a while
//! ago. Nothing else is random, so a seed always brings the same history.

mod actor;
mod flaky;
mod leader;
mod person;
mod world;

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::History;
use crate::history::{Entry, Final, ItemSetup, Setup};
use actor::Actor;
use world::World;

/// How many people come, in turn to each item.
const PEOPLE: usize = 6;
const LEADERS: usize = 3;

/// So many turns are taken while the store fails and leaders end, and at most so many in all.
const STORM: usize = 500;
const MOST: usize = 40_000;

/// The clock goes on by less than this with every turn.
const TURN_MS: u64 = 12;

/// What people wait for.
fn items() -> Vec<ItemSetup> {
    let item = |item: &str, max_active, stock| ItemSetup { item: item.into(), max_active, stock };
    vec![item("arena", Some(2), 100), item("opera", None, 2)]
}

/// One history.
///
/// # Panics
/// Outside of a Tokio runtime with a timer, which some futures want to see though none waits for it.
#[must_use]
pub fn simulate(seed: u64) -> History {
    let world = Arc::new(World::new(seed, items()));
    let mut people: Vec<_> =
        (0..PEOPLE).map(|number| Actor::new(person::live(world.clone(), number))).collect();
    let mut leaders: Vec<_> = (0..LEADERS).map(|_| lead(&world)).collect();
    for turn in 0..MOST {
        world.tick(TURN_MS);
        if turn < STORM {
            world.shake();
        } else if turn == STORM {
            world.calm();
        }
        if people.is_empty() && turn > STORM && now_or_never(world.is_quiet()) {
            break;
        }
        let of_leader = people.is_empty() || world.chance(0.5);
        let actors = if of_leader { &mut leaders } else { &mut people };
        let at = world.pick(actors.len());
        if actors[at].takes_turn(&world) {
            drop(actors.swap_remove(at));
        } else if of_leader && world.storms() && world.chance(0.01) {
            // It dies in the middle of whatever it did, and another one starts.
            actors[at] = lead(&world);
        }
    }
    finish(&world, seed)
}

fn lead(world: &Arc<World>) -> Actor {
    Actor::new(leader::live(world.clone()))
}

fn finish(world: &World, seed: u64) -> History {
    let to = world.now();
    let (from, calm, lease) = (world::START, to, 0);
    let mut entries = world.take();
    for counts in now_or_never(world.counts()) {
        entries.push(Entry::Final(Final {
            item: counts.item.to_string(),
            version: None,
            stock: 0,
            waiting: counts.waiting + counts.returning,
            entered: counts.entered,
        }));
    }
    // There are no pods here that could tell what was.
    let old_news = 0;
    // Chance may keep every relay from its work as long as there are storms.
    let on_its_way = STORM as u64 * TURN_MS;
    let (people, items) = (0, items());
    let setup = Setup { seed, from, calm, to, lease, old_news, on_its_way, people, items };
    entries.push(Entry::Setup(setup));
    entries.into_iter().collect()
}

/// The memory store itself never waits.
fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store does not wait"),
    }
}
