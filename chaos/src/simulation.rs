//! Leaders, relays and people in one thread, on a memory store that fails, under a clock of its own.
//!
//! Every call to the store waits a while before it is carried out, and a seed decides whose turn it
//! is next: a leader may be overtaken by two others between two calls of a tick, or end in the
//! middle of it. Nothing else is random, so a seed always brings the same history.

mod flaky;
mod leader;
mod person;
mod world;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use crate::History;
use crate::history::{Entry, Final, ItemSetup, Setup};
use world::World;

/// How many people come, in turn to each item.
const PEOPLE: usize = 6;
const LEADERS: usize = 3;

/// So many turns are taken while the store fails and leaders end, and at most so many in all.
const STORM: usize = 500;
const MOST: usize = 40_000;

/// The clock goes on by less than this with every turn.
const TURN_MS: u64 = 12;

type Task = Pin<Box<dyn Future<Output = ()>>>;

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
    let world = Arc::new(World::new(seed));
    now_or_never(world.open(&items()));
    let mut people: Vec<Task> = (0..PEOPLE).map(|n| task(person::live(world.clone(), n))).collect();
    let mut leaders: Vec<Task> = (0..LEADERS).map(|_| lead(&world)).collect();
    for turn in 0..MOST {
        world.tick(TURN_MS);
        if turn == STORM {
            world.calm();
        }
        if people.is_empty() && turn > STORM && now_or_never(world.is_quiet()) {
            break;
        }
        let of_leader = people.is_empty() || world.chance(0.5);
        let tasks = if of_leader { &mut leaders } else { &mut people };
        let at = world.pick(tasks.len());
        if tasks[at].as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            drop(tasks.swap_remove(at));
        } else if of_leader && world.storms() && world.chance(0.01) {
            // It dies in the middle of whatever it did, and another one starts.
            tasks[at] = lead(&world);
        }
    }
    finish(&world, seed)
}

fn task(future: impl Future<Output = ()> + 'static) -> Task {
    Box::pin(future)
}

fn lead(world: &Arc<World>) -> Task {
    task(leader::live(world.clone()))
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
    entries.push(Entry::Setup(Setup { seed, from, calm, to, lease, items: items() }));
    entries.into_iter().collect()
}

/// The memory store itself never waits.
fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the memory store does not wait"),
    }
}
