//! What stops admission and joins, on both stores: quota, full outbox, leave limit, reserved slots, absence.

use daegi_domain::line_rules::line_state;
use daegi_domain::{EndReason, Guard, ItemId, Lane, LineState, Mode, Number, Policy, Settings};
use daegi_store::{
    ChangeCursor, JoinOutcome, JoinRefusal, LEAVE_WINDOW_MS, LeaveLimit, LiveState, SharedStore,
    TicketState, partition_of,
};

use crate::support::{
    PARTITIONS, SETTINGS, START, both, change, item, join_number, open_concert, ticket_of,
    tickets_of, user, users,
};

async fn join(
    store: &SharedStore,
    id: &ItemId,
    who: &str,
    settings: &Settings,
    now: u64,
) -> JoinOutcome {
    store.join(id, &[user(who)], settings, now).await.unwrap()[0].clone()
}

fn is_entered(joined: &JoinOutcome) -> bool {
    matches!(joined, JoinOutcome::Ticket { state: LiveState::Entered { .. }, .. })
}

#[tokio::test]
async fn the_quota_of_the_store_counts_for_direct_admissions_and_not_that_of_a_pod() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let policy = Policy { mode: Mode::Auto, tokens_per_tick: Some(5), ..Policy::default() };
        for id in ["stopped", "raised"] {
            store.put_item(&change(id, policy.clone()), START).await.unwrap();
        }
        store.set_settings(Some(0), None).await.unwrap();
        let outdated = Settings { token_count_to_move: 9, ..SETTINGS };
        let joined = join(&store, &item("stopped"), "kim", &outdated, START).await;
        assert!(!is_entered(&joined), "{name}: quota 0, {joined:?}");
        store.set_settings(Some(4), None).await.unwrap();
        let outdated = Settings { token_count_to_move: 0, ..SETTINGS };
        let joined = join(&store, &item("raised"), "kim", &outdated, START).await;
        assert!(is_entered(&joined), "{name}: quota 4, {joined:?}");
    }
}

#[tokio::test]
async fn a_round_that_began_before_the_quota_was_0_admits_no_ticket() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        store.join(&id, &users(3), &SETTINGS, START).await.unwrap();
        store.set_settings(Some(0), None).await.unwrap();
        let admission = store.admit(epoch, &id, 2, 0, 100, START).await.unwrap();
        assert_eq!((admission.admitted, admission.remaining), (0, 0), "{name}");
        store.set_settings(Some(2), None).await.unwrap();
        let admission = store.admit(epoch, &id, 2, 0, 100, START).await.unwrap();
        assert_eq!(admission.admitted, 2, "{name}");
    }
}

/// An item in the partition of `concert`.
fn item_beside_concert() -> String {
    let partition = partition_of(&item("concert"), PARTITIONS);
    let shares = |id: &String| partition_of(&item(id), PARTITIONS) == partition;
    (0..).map(|n| format!("other-{n}")).find(shares).unwrap()
}

#[tokio::test]
async fn unpublished_ends_do_not_hold_another_line() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (busy, id) = (item_beside_concert(), item("concert"));
        for id in [busy.as_str(), "concert"] {
            store.put_item(&change(id, Policy::default()), START).await.unwrap();
        }
        let epoch = store.begin_term(0).await.unwrap();
        let (busy, leavers) = (item(&busy), users(30));
        for (who, joined) in
            leavers.iter().zip(store.join(&busy, &leavers, &SETTINGS, START).await.unwrap())
        {
            let JoinOutcome::Ticket { number, .. } = joined else { panic!("{name}: {joined:?}") };
            assert!(
                store.leave(&ticket_of(&busy, who, number), START).await.unwrap().is_ended(),
                "{name}"
            );
        }
        store.join(&id, &users(12), &SETTINGS, START).await.unwrap();
        let admission = store.admit(epoch, &id, 12, 0, 10, START).await.unwrap();
        assert_eq!((admission.admitted, admission.outbox_full), (10, false), "{name}");
        let admission = store.admit(epoch, &id, 2, 0, 10, START).await.unwrap();
        assert_eq!((admission.admitted, admission.outbox_full), (0, true), "{name}");
    }
}

#[tokio::test]
async fn a_line_is_held_while_the_outbox_is_full_of_admissions() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        store.join(&id, &users(3), &SETTINGS, START).await.unwrap();
        let state = async |now| {
            let cursor = ChangeCursor::default();
            let line = store.snapshot(&id, Lane::STANDARD, cursor).await.unwrap().unwrap();
            line_state(&line.item, line.front_is_above_base(), &SETTINGS, now)
        };
        store.admit(epoch, &id, 1, 900, 1, START).await.unwrap();
        assert_eq!(state(START).await, LineState::Open, "{name}");
        let now = START + 1_000;
        assert!(store.admit(epoch, &id, 1, 900, 1, now).await.unwrap().outbox_full, "{name}");
        assert_eq!(state(now).await, LineState::Held, "{name}");
        assert_eq!(state(now + 12_699).await, LineState::Held, "{name}: leader may be slow");
        assert_eq!(state(now + 12_700).await, LineState::Open, "{name}: the mark has expired");

        let partition = partition_of(&id, PARTITIONS);
        let batches = store.outbox_read(partition, None, 10).await.unwrap();
        let ids: Vec<_> = batches.into_iter().map(|batch| batch.id).collect();
        store.outbox_ack(partition, &ids).await.unwrap();
        let now = START + 2_000;
        assert_eq!(store.admit(epoch, &id, 1, 900, 1, now).await.unwrap().admitted, 1, "{name}");
        assert_eq!(state(now).await, LineState::Open, "{name}");
    }
}

#[tokio::test]
async fn a_user_who_leaves_too_often_must_wait_to_join_again() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, _) = open_concert(&store, Policy::default()).await;
        let mut now = START;
        for _ in 0..LeaveLimit::default().0 {
            let number = join_number(&store, &id, "kim", now).await;
            assert!(
                store.leave(&ticket_of(&id, &user("kim"), number), now).await.unwrap().is_ended(),
                "{name}"
            );
            now += 10;
        }
        let refused = join(&store, &id, "kim", &SETTINGS, now).await;
        let JoinOutcome::Refused(JoinRefusal::LeftTooOften { wait_ms }) = refused else {
            panic!("{name}: {refused:?}");
        };
        assert_eq!(wait_ms, LeaveLimit::default().cost_ms() - 50, "{name}");
        let other = join(&store, &id, "lee", &SETTINGS, now).await;
        assert!(matches!(other, JoinOutcome::Ticket { .. }), "{name}: other users join");
        let joined = join(&store, &id, "kim", &SETTINGS, now + wait_ms).await;
        assert!(matches!(joined, JoinOutcome::Ticket { is_new: true, .. }), "{name}: {joined:?}");
        assert!(wait_ms < LEAVE_WINDOW_MS, "{name}");
    }
}

#[tokio::test]
async fn an_entry_given_back_keeps_its_slot_until_its_pass_expires() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let policy = Policy { max_active: Some(1), pass_ttl_seconds: 60, ..Policy::default() };
        let (id, epoch) = open_concert(&store, policy).await;
        let mut passes = Vec::new();
        for round in 0..LeaveLimit::default().0 {
            let now = START + u64::from(round) * 1_000;
            let number = join_number(&store, &id, "kim", now).await;
            if store.admit(epoch, &id, 1, 0, 100, now).await.unwrap().admitted == 1 {
                passes.push(number);
            }
            store.leave(&ticket_of(&id, &user("kim"), number), now).await.unwrap();
        }
        assert_eq!(passes.len(), 1, "{name}: one pass is valid at a time");
        let entered = store.counts(std::slice::from_ref(&id)).await.unwrap()[0].entered;
        assert_eq!(entered, 0, "{name}: no entry");

        store.join(&id, &[user("lee")], &SETTINGS, START + 6_000).await.unwrap();
        let admit = async |now| store.admit(epoch, &id, 1, 0, 100, now).await.unwrap().admitted;
        assert_eq!(admit(START + 59_999).await, 0, "{name}");
        store.expire(epoch, &id, Lane::STANDARD, START + 60_000).await.unwrap();
        assert_eq!(admit(START + 60_000).await, 1, "{name}: the pass has expired");
    }
}

#[tokio::test]
async fn an_order_closed_after_its_entry_was_given_back_frees_the_slot() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        for (id, guard) in [("offline", Guard::Offline), ("online", Guard::Online)] {
            let policy = Policy { max_active: Some(1), guard, ..Policy::default() };
            store.put_item(&change(id, policy), START).await.unwrap();
            let (id, epoch) = (item(id), store.begin_term(0).await.unwrap());
            let number = join_number(&store, &id, "kim", START).await;
            let admit = async || store.admit(epoch, &id, 1, 0, 100, START).await.unwrap().admitted;
            assert_eq!(admit().await, 1, "{name}");
            store.leave(&ticket_of(&id, &user("kim"), number), START).await.unwrap();
            store.join(&id, &[user("lee")], &SETTINGS, START).await.unwrap();
            if guard == Guard::Offline {
                assert_eq!(admit().await, 0, "{name}: the pass is valid");
                let kim = user("kim");
                store
                    .complete(&ticket_of(&id, &kim, number), EndReason::Completed, START)
                    .await
                    .unwrap();
            }
            assert_eq!(admit().await, 1, "{name}: the slot is free");
        }
    }
}

#[tokio::test]
async fn absence_does_not_count_while_a_line_can_admit_no_ticket() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        store.join(&id, &users(4), &SETTINGS, START).await.unwrap();
        let admit = async |quota, now| store.admit(epoch, &id, quota, 0, 100, now).await.unwrap();
        let sweep = async |now| {
            store.sweep(epoch, &id, Lane::STANDARD, Number(0), now).await.unwrap().abandoned
        };
        store.set_paused(&id, true, START).await.unwrap();
        let resumed = START + 390_000;
        for now in [START + 1_000, resumed] {
            assert_eq!((admit(0, now).await.missed, sweep(now).await), (0, 0), "{name}: paused");
        }
        store.set_paused(&id, false, START).await.unwrap();
        assert_eq!(sweep(resumed).await, 0, "{name}: resumed");
        let first = admit(1, resumed + 1_000).await;
        assert_eq!((first.admitted, first.missed), (1, 0), "{name}: a full grace period");
        let servable = resumed + 1_000;
        assert_eq!(sweep(servable + 359_000).await, 0, "{name}: before the limit");
        let late = admit(1, servable + 90_000).await;
        assert_eq!((late.admitted, late.missed), (0, 3), "{name}: unseen since it resumed");
    }
}

#[tokio::test]
async fn a_missed_turn_does_not_end_while_the_line_is_paused() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        let number = join_number(&store, &id, "kim", START).await;
        let missed = START + 90_000;
        assert_eq!(store.admit(epoch, &id, 1, 0, 100, missed).await.unwrap().missed, 1, "{name}");
        store.set_paused(&id, true, START).await.unwrap();
        let now = missed + 400_000;
        assert_eq!(
            store.expire(epoch, &id, Lane::STANDARD, now).await.unwrap().abandoned,
            0,
            "{name}"
        );
        let state =
            store.resolve(&tickets_of(&id, &[(user("kim"), number)]), now).await.unwrap()[0];
        assert_eq!(state, TicketState::Live(LiveState::Waiting { position: Some(1) }), "{name}");
    }
}

#[tokio::test]
async fn a_handover_code_works_once_and_voids_those_before_it() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let id = item("concert");
        let ticket = ticket_of(&id, &user("kim"), Number(START << 4));
        let other = ticket_of(&id, &user("lee"), Number((START << 4) + 1));
        let used = async |now| store.used_handover(&ticket, now).await.unwrap();
        let take = async |issued_at| store.use_handover(&ticket, issued_at, START).await.unwrap();
        assert_eq!(used(START).await, None, "{name}");
        assert!(take(START - 10).await, "{name}");
        assert!(!take(START - 10).await, "{name}: of two devices one gets the ticket");
        assert!(!take(START - 11).await, "{name}: an older code of the same ticket");
        assert!(take(START).await, "{name}: a newer one");
        assert_eq!(used(START).await, Some(START), "{name}");
        assert!(store.use_handover(&other, START, START).await.unwrap(), "{name}");
    }
}
