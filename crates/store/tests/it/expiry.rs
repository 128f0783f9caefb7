//! Expiry of entries and retention of ends, on both stores.

use daegi_domain::{EndReason, ItemId, Lane, LivenessPage, Mode, Number, Policy, Settings, UserId};
use daegi_store::{
    EndOutcome, Epoch, JoinOutcome, LiveState, MAX_USERS_PER_CALL, SharedStore, TicketState,
};

use crate::support::{START, both, change, item, open_concert, ticket_of, tickets_of, user, users};

/// A quota that no test reaches.
const UNLIMITED: Settings = Settings { token_count_to_move: 100_000, tick_ms: 1000 };
/// Expiry of entries that are admitted at `START`.
const END: u64 = START + 600_000;

/// A line that admits every join directly.
async fn open_without_waiting(store: &SharedStore) -> (ItemId, Epoch) {
    store.set_settings(Some(UNLIMITED.token_count_to_move), None).await.unwrap();
    open_concert(store, Policy { mode: Mode::Auto, ..Policy::default() }).await
}

/// Admits users in one call.
async fn enter(store: &SharedStore, id: &ItemId, users: &[UserId], now: u64) -> Vec<Number> {
    let number = |joined: &JoinOutcome| match joined {
        JoinOutcome::Ticket { number, state: LiveState::Entered { .. }, .. } => *number,
        other => panic!("not entered: {other:?}"),
    };
    store.join(id, users, &UNLIMITED, now).await.unwrap().iter().map(number).collect()
}

async fn complete(store: &SharedStore, id: &ItemId, who: &UserId, number: Number, now: u64) {
    let closing =
        store.complete(&ticket_of(id, who, number), EndReason::Completed, now).await.unwrap();
    assert_eq!(closing, EndOutcome::Ended);
}

/// Calls `expire` until no entry is left that has expired; returns how many did. Which entries a call ends is
/// up to the store.
async fn expire_all(store: &SharedStore, epoch: Epoch, id: &ItemId, now: u64) -> u32 {
    let mut expired = 0;
    loop {
        let expiry = store.expire(epoch, id, Lane::STANDARD, now).await.unwrap();
        assert!(expiry.expired <= MAX_USERS_PER_CALL, "{expiry:?}");
        expired += expiry.expired;
        if !expiry.more {
            return expired;
        }
    }
}

#[tokio::test]
async fn entries_expire_at_their_time_in_bounded_calls() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_without_waiting(&store).await;
        let all = users(2 * MAX_USERS_PER_CALL as usize + 10);
        for some in all.chunks(MAX_USERS_PER_CALL as usize - 40) {
            enter(&store, &id, some, START).await;
        }
        assert_eq!(expire_all(&store, epoch, &id, END - 1).await, 0, "{name}");
        assert_eq!(expire_all(&store, epoch, &id, END).await as usize, all.len(), "{name}");
        assert_eq!(expire_all(&store, epoch, &id, END).await, 0, "{name}: once");
    }
}

#[tokio::test]
async fn entries_that_ended_before_do_not_expire() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_without_waiting(&store).await;
        let all = users(MAX_USERS_PER_CALL as usize + 50);
        let numbers = enter(&store, &id, &all, START).await;
        for (who, number) in all.iter().zip(numbers).take(MAX_USERS_PER_CALL as usize) {
            complete(&store, &id, who, number, START).await;
        }
        assert_eq!(expire_all(&store, epoch, &id, END).await, 50, "{name}");
    }
}

#[tokio::test]
async fn a_user_who_is_admitted_again_has_the_full_time() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_without_waiting(&store).await;
        let (kim, lee) = (user("kim"), user("lee"));
        let numbers = enter(&store, &id, &[kim.clone(), lee], START).await;
        complete(&store, &id, &kim, numbers[0], START + 1).await;
        let again = enter(&store, &id, std::slice::from_ref(&kim), START + 300_000).await[0];
        assert_eq!(expire_all(&store, epoch, &id, END).await, 1, "{name}: lee");
        let entered = store.resolve(&tickets_of(&id, &[(kim, again)]), END).await.unwrap()[0];
        assert!(
            matches!(entered, TicketState::Live(LiveState::Entered { .. })),
            "{name}: {entered:?}"
        );
        let end = END + 300_000;
        assert_eq!(expire_all(&store, epoch, &id, end).await, 1, "{name}: kim");
    }
}

#[tokio::test]
async fn a_user_who_is_admitted_again_for_less_time_expires_earlier_and_once() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_without_waiting(&store).await;
        let (kim, lee) = (user("kim"), user("lee"));
        let numbers = enter(&store, &id, &[kim.clone(), lee], START).await;
        complete(&store, &id, &kim, numbers[0], START).await;
        let brief = Policy { mode: Mode::Auto, pass_ttl_seconds: 60, ..Policy::default() };
        let revision = store.item(&id).await.unwrap().unwrap().revision;
        store.set_policy(&id, &brief.clone().into(), revision, START).await.unwrap();
        enter(&store, &id, std::slice::from_ref(&kim), START).await;
        assert_eq!(expire_all(&store, epoch, &id, END).await, 2, "{name}");
        assert_eq!(expire_all(&store, epoch, &id, END).await, 0, "{name}");
        assert_eq!(store.counts(std::slice::from_ref(&id)).await.unwrap()[0].entered, 0, "{name}");
    }
}

/// Indices of absent users. The first number is the second of its liveness page, so these are at the borders
/// of bytes, batches and a page.
const ABSENT: [usize; 10] = [0, 6, 7, 14, 99, 100, 4_094, 8_190, 8_191, 8_199];

#[tokio::test]
async fn exactly_the_absent_users_miss_their_turn() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        let all = users(8_250);
        for some in all.chunks(1_000) {
            store.join(&id, some, &UNLIMITED, START).await.unwrap();
        }
        let later = START + 100_000;
        let number = |index: usize| Number(Number::base_at(START).0 + 1 + index as u64);
        let present = (0..all.len()).filter(|index| !ABSENT.contains(index));
        // In two slices, neither of which contains all users.
        let (even, odd): (Vec<_>, Vec<_>) = present.partition(|index| index % 2 == 0);
        for (some, when) in [(even, later - 20_000), (odd, later)] {
            let pages = LivenessPage::of(some.into_iter().map(number));
            store.mark_seen(&id, Lane::STANDARD, &pages, when).await.unwrap();
        }
        let (mut admitted, mut missed) = (0, 0);
        loop {
            let admission = store.admit(epoch, &id, 100_000, 0, 100_000, later).await.unwrap();
            (admitted, missed) = (admitted + admission.admitted, missed + admission.missed);
            if !admission.more {
                break;
            }
        }
        assert_eq!((admitted as usize, missed as usize), (8_240, ABSENT.len()), "{name}");
        let tickets = ABSENT.map(|index| (all[index].clone(), number(index)));
        for state in store.resolve(&tickets_of(&id, &tickets), later).await.unwrap() {
            assert!(matches!(state, TicketState::Live(LiveState::Waiting { .. })), "{name}");
        }
    }
}

#[tokio::test]
async fn ends_of_tickets_that_were_never_admitted_are_deleted_earlier() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        store.put_item(&change("concert", Policy::default()), START).await.unwrap();
        let concert = item("concert");
        // Later than a loss could extend the lost range that begins with the line.
        let now = START + 2_200_000;
        let all = users(2);
        let joined = store.join(&concert, &all, &UNLIMITED, now).await.unwrap();
        let numbers: Vec<Number> = joined
            .iter()
            .map(|joined| match joined {
                JoinOutcome::Ticket { number, .. } => *number,
                JoinOutcome::Refused(why) => panic!("{why:?}"),
            })
            .collect();
        let epoch = store.begin_term(now).await.unwrap();
        store.admit(epoch, &concert, 1, 0, 1000, now).await.unwrap();
        for (user, number) in all.iter().zip(&numbers) {
            assert!(
                store.leave(&ticket_of(&concert, user, *number), now).await.unwrap().is_ended(),
                "{name}"
            );
        }
        let states = async |at| {
            store.expire(epoch, &concert, Lane::STANDARD, at).await.unwrap();
            let tickets: Vec<_> = all.iter().cloned().zip(numbers.iter().copied()).collect();
            store.resolve(&tickets_of(&concert, &tickets), at).await.unwrap()
        };
        let left = TicketState::Ended(EndReason::Left);
        assert_eq!(states(now + 599_000).await, [left, left], "{name}");
        // An end past its retention is reported as expired.
        let forgotten = TicketState::Ended(EndReason::Expired);
        assert_eq!(states(now + 601_000).await, [left, forgotten], "{name}");
        assert_eq!(states(now + 3_601_000).await, [forgotten, forgotten], "{name}");
    }
}
