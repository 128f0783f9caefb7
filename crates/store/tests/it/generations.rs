//! A new store and a store that lost data: tickets are reclaimed only with evidence of a loss.

use std::sync::Arc;

use daegi_domain::{EndReason, Lane, MAX_CLOCK_LAG_MS, Number, Policy, UserId};
use daegi_store::{
    ChangeCursor, EndOutcome, EntryProof, JoinOutcome, MemoryStore, RECLAIM_WINDOW_MS, SharedStore,
    Store, TicketState,
};

use crate::support::{
    PARTITIONS, SETTINGS, START, Topology, change, ended_tickets, item, ticket_of, tickets_of,
    user, users, waiting,
};

/// Ten minutes between the earlier store and the new one.
const LATER: u64 = START + 600_000;

/// One of the two stores, and how to start a new one.
enum Fixture {
    Memory,
    Redis(Topology),
}

impl Fixture {
    async fn both() -> Vec<Self> {
        let redis = daegi_testkit::redis_or_skip().await;
        let mut both = vec![Self::Memory];
        both.extend(redis.map(|server| Self::Redis(Topology::One(server))));
        both
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redis(_) => "redis",
        }
    }

    /// A store without data, opened by a new process.
    async fn fresh(&self, now: u64) -> SharedStore {
        let store: SharedStore = match self {
            Self::Memory => Arc::new(MemoryStore::new(PARTITIONS, SETTINGS)),
            Self::Redis(topology) => {
                topology.flush().await;
                topology.store().await
            }
        };
        open(&*store, now).await;
        store
    }
}

async fn open(store: &dyn Store, now: u64) {
    let policy = Policy { grace_seconds: 0, ..Policy::default() };
    store.put_item(&change("concert", policy), now).await.unwrap();
}

async fn join(store: &dyn Store, who: &[UserId], now: u64) -> Vec<(UserId, Number)> {
    let joined = store.join(&item("concert"), who, &SETTINGS, now).await.unwrap();
    let number = |joined: &JoinOutcome| match joined {
        JoinOutcome::Ticket { number, .. } => *number,
        JoinOutcome::Refused(refusal) => panic!("{refusal:?}"),
    };
    who.iter().cloned().zip(joined.iter().map(number)).collect()
}

async fn ticket_states(
    store: &dyn Store,
    tickets: &[(UserId, Number)],
    now: u64,
) -> Vec<TicketState> {
    store.resolve(&tickets_of(&item("concert"), tickets), now).await.unwrap()
}

async fn recovering_until(store: &dyn Store) -> u64 {
    store.item(&item("concert")).await.unwrap().unwrap().recovering_until
}

#[tokio::test]
async fn a_new_store_restores_no_ticket_of_an_earlier_one() {
    for fixture in Fixture::both().await {
        let name = fixture.name();
        let earlier = fixture.fresh(START).await;
        let mut old = join(&*earlier, &users(3), START).await;
        let epoch = earlier.begin_term(START).await.unwrap();
        earlier.admit(epoch, &item("concert"), 1, 0, 1000, START).await.unwrap();
        let (id, (who, number)) = (item("concert"), old[0].clone());
        let completed =
            earlier.complete(&ticket_of(&id, &who, number), EndReason::Completed, START).await;
        assert_eq!(completed.unwrap(), EndOutcome::Ended, "{name}");
        let left = earlier.leave(&ticket_of(&id, &old[1].0, old[1].1), START).await.unwrap();
        assert_eq!(left, EndOutcome::Ended, "{name}");
        old.push((user("long-ago"), Number::base_at(START - 200 * 86_400_000)));
        old.push((user("ahead"), Number::base_at(LATER + 60_000)));

        let store = fixture.fresh(LATER).await;
        let new = join(&*store, &[user("new")], LATER).await;
        let refused = vec![TicketState::Restarted; old.len()];
        assert_eq!(ticket_states(&*store, &old, LATER).await, refused, "{name}");
        for (user, number) in &old {
            let left = store.leave(&ticket_of(&id, user, *number), LATER).await.unwrap();
            assert_eq!(left, EndOutcome::AlreadyEnded, "{name}: {user}");
            let entry = EntryProof {
                ticket: ticket_of(&id, user, *number),
                at: START,
                expires_at: LATER + 600_000,
            };
            let state = store.restore_entry(&entry, LATER).await.unwrap();
            assert_eq!(state, TicketState::Restarted, "{name}: {user}");
        }
        assert_eq!(ticket_states(&*store, &new, LATER).await, [waiting(1)], "{name}");
        assert_eq!(recovering_until(&*store).await, 0, "{name}: the line stays open");
        let line =
            store.snapshot(&id, Lane::STANDARD, ChangeCursor::default()).await.unwrap().unwrap();
        assert_eq!((line.waiting, line.item.hold_new_until), (1, 0), "{name}");
    }
}

#[tokio::test]
async fn an_operator_can_declare_that_a_new_store_lost_data() {
    for fixture in Fixture::both().await {
        let name = fixture.name();
        let old = join(&*fixture.fresh(START).await, &users(2), START).await;
        let store = fixture.fresh(LATER).await;
        let new = join(&*store, &[user("new")], LATER).await;
        assert_eq!(
            ticket_states(&*store, &old[..1], LATER).await,
            [TicketState::Restarted],
            "{name}"
        );
        store.declare_loss(LATER).await.unwrap();
        assert_eq!(ticket_states(&*store, &old, LATER).await, [waiting(1), waiting(2)], "{name}");
        assert_eq!(ticket_states(&*store, &new, LATER).await, [waiting(3)], "{name}");
        assert!(recovering_until(&*store).await > LATER, "{name}");
        let late = (user("late"), Number::base_at(START));
        let state = ticket_states(&*store, &[late], LATER + RECLAIM_WINDOW_MS).await;
        assert_eq!(state, [TicketState::Restarted], "{name}: the window is over");
    }
}

#[tokio::test]
async fn a_process_that_ran_before_the_loss_is_evidence_for_a_process_that_started_after_it() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let topology = Topology::One(server);
    let before = topology.store().await;
    open(&*before, START).await;
    let old = join(&*before, &users(2), START).await;
    topology.flush().await;
    let after = topology.store().await;
    open(&*after, LATER).await;
    assert_eq!(ticket_states(&*after, &old[..1], LATER).await, [TicketState::Restarted]);
    // Each call of the earlier process passes the generation that it knows.
    assert_eq!(ticket_states(&*before, &old[1..], LATER).await, [waiting(1)]);
    assert_eq!(ticket_states(&*after, &old[..1], LATER).await, [waiting(1)]);
    // One generation is declared lost once.
    let late = (user("late"), Number::base_at(START));
    assert_eq!(
        ticket_states(&*before, &[late], LATER + RECLAIM_WINDOW_MS).await,
        [TicketState::Restarted]
    );
}

#[tokio::test]
async fn a_number_tells_when_it_was_issued_also_in_a_line_that_is_a_month_old() {
    for fixture in Fixture::both().await {
        let name = fixture.name();
        let store = fixture.fresh(START).await;
        let first = join(&*store, &users(3), START).await;
        let left = store
            .leave(&ticket_of(&item("concert"), &first[1].0, first[1].1), START)
            .await
            .unwrap();
        assert_eq!(left, EndOutcome::Ended, "{name}");

        let within = join(&*store, &[user("within")], START + MAX_CLOCK_LAG_MS).await;
        assert_eq!(within[0].1, first[2].1.next(), "{name}");
        let month = START + 30 * 86_400_000;
        let later = join(&*store, &[user("later")], month).await;
        assert_eq!(later[0].1, Number::base_at(month).next(), "{name}");
        assert_eq!(later[0].1.issued_at_ms(), month, "{name}");

        let waits = [first[0].clone(), first[2].clone(), within[0].clone(), later[0].clone()];
        let positions = [waiting(1), waiting(2), waiting(3), waiting(4)];
        assert_eq!(ticket_states(&*store, &waits, month).await, positions, "{name}");
        let gone = ticket_states(&*store, &first[1..2], month).await;
        assert_eq!(gone, [TicketState::Ended(EndReason::Left)], "{name}: nothing was lost");
        assert_eq!(recovering_until(&*store).await, 0, "{name}");
        let epoch = store.begin_term(month).await.unwrap();
        let admitted = store.admit(epoch, &item("concert"), 9, 0, 1000, month).await.unwrap();
        assert_eq!(admitted.admitted, 4, "{name}: no ticket is held");
    }
}

#[tokio::test]
async fn tickets_that_ended_before_the_loss_leave_the_line_when_that_becomes_known() {
    for fixture in Fixture::both().await {
        let name = fixture.name();
        let old = join(&*fixture.fresh(START).await, &users(3), START).await;
        let (store, id) = (fixture.fresh(LATER).await, item("concert"));
        store.declare_loss(LATER).await.unwrap();
        assert_eq!(
            ticket_states(&*store, &old[..2], LATER).await,
            [waiting(1), waiting(2)],
            "{name}"
        );
        let ended = [(0, EndReason::Completed), (2, EndReason::Left)];
        let ended = ended.map(|(index, reason)| (old[index].0.clone(), old[index].1, reason));
        assert!(store.note_ended(&ended_tickets(&id, &ended), LATER).await.unwrap(), "{name}");
        assert!(
            store.note_ended(&ended_tickets(&id, &ended), LATER).await.unwrap(),
            "{name}: again"
        );
        let (completed, left) = (EndReason::Completed, EndReason::Left);
        let expected = [TicketState::Ended(completed), waiting(1), TicketState::Ended(left)];
        assert_eq!(ticket_states(&*store, &old, LATER).await, expected, "{name}");
        let counts = store.counts(std::slice::from_ref(&id)).await.unwrap().remove(0);
        assert_eq!(
            (counts.waiting, counts.totals.joined, counts.totals.ended),
            (1, 2, 1),
            "{name}"
        );
        for partition in 0..PARTITIONS {
            assert_eq!(store.outbox_len(partition).await.unwrap(), 0, "{name}: no event");
        }
        assert!(
            !store.note_ended(&ended_tickets(&item("other"), &ended), LATER).await.unwrap(),
            "{name}"
        );
    }
}
