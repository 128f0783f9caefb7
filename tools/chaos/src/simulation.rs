//! Leaders, relays and users in one thread on a faulty memory store with a simulated clock.
//!
//! Every store call waits before it is executed, and the seed decides which task runs next: two other leaders may overtake a leader
//! between two calls of a tick, or it may die in between. In some histories the store loses all data, or continues with an older state; in
//! others lines open, or have lanes. Nothing else is random, so a seed always gives the same history.

mod faulty_store;
mod leader;
mod observed;
mod scenario;
mod sink;
mod state;
mod task;
mod virtual_user;

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::History;
use crate::history::{Entry, FinalState, Setup};
use scenario::{LEADER_SKEW, Scenario};
use state::{OPENING_POINTS, SimState};
use task::SimTask;

const LEADERS: usize = 3;

/// Turns with faults, and maximum number of turns.
const FAULT_TURNS: usize = 500;
const MAX_TURNS: usize = 40_000;

/// Maximum time per turn.
const TURN_MS: u64 = 12;

/// Simulates one history.
///
/// # Panics
/// Outside of a Tokio runtime with a timer, which some futures require although none waits for it.
#[must_use]
pub fn simulate(seed: u64) -> History {
    run(seed, SimState::new(seed, Scenario::choose, None))
}

/// Simulates an opening in which a leader dies: before or after each call of the opening in turn.
///
/// # Panics
/// As [`simulate`].
#[must_use]
pub fn simulate_opening(seed: u64) -> History {
    let point = usize::try_from(seed % OPENING_POINTS as u64).ok();
    run(seed, SimState::new(seed, Scenario::opening, point))
}

fn run(seed: u64, state: SimState) -> History {
    let state = Arc::new(state);
    let users = 0..state.scenario.users;
    let mut users: Vec<_> =
        users.map(|number| SimTask::new(virtual_user::run(state.clone(), number))).collect();
    let mut leaders: Vec<_> = (0..LEADERS).map(|_| start_leader(&state)).collect();
    for turn in 0..MAX_TURNS {
        state.tick(TURN_MS);
        if turn < FAULT_TURNS {
            state.maybe_lose_data();
        } else if turn == FAULT_TURNS {
            state.stop_faults();
        }
        if users.is_empty() && turn > FAULT_TURNS && now_or_never(state.is_quiet()) {
            break;
        }
        let of_leader = users.is_empty() || state.chance(0.5);
        let tasks = if of_leader { &mut leaders } else { &mut users };
        let at = state.pick(tasks.len());
        if tasks[at].run_turn(&state) {
            drop(tasks.swap_remove(at));
        } else if of_leader && (state.take_death() || state.fails(0.01)) {
            // The leader dies between two store calls, and another one starts.
            tasks[at] = start_leader(&state);
        }
    }
    finish(&state, seed)
}

fn start_leader(state: &Arc<SimState>) -> SimTask {
    SimTask::new(leader::run(state.clone()))
}

fn finish(state: &SimState, seed: u64) -> History {
    let to = state.now();
    let (from, calm_from, lease) = (state::START, to, 0);
    let mut entries = state.take();
    for counts in now_or_never(state.counts()) {
        entries.push(Entry::Final(FinalState {
            item: counts.item.to_string(),
            version: None,
            stock: 0,
            waiting: counts.waiting + counts.returning,
            entered: counts.entered,
        }));
    }
    // Without pods there are no stale replies.
    let max_staleness = 0;
    // The schedule may delay every relay while faults are active.
    let max_delivery = FAULT_TURNS as u64 * TURN_MS;
    let (users, items) = (0, state.scenario.items.clone());
    let setup = Setup {
        seed,
        from,
        calm_from,
        to,
        lease,
        max_staleness,
        max_delivery,
        clock_skew: LEADER_SKEW,
        users,
        items,
    };
    entries.push(Entry::Setup(setup));
    entries.into_iter().collect()
}

/// Polls a future that never waits, such as a call of the memory store.
fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store returned Pending"),
    }
}
