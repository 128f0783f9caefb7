//! The rules of a line, one test each, on both stores.

use daegi_domain::{
    EndReason, ItemId, Lane, LivenessPage, Mode, Number, OnRejoin, Policy, TicketEvent, UserId,
};
use daegi_store::{
    ENDED_RETENTION_MS, EndOutcome, JoinOutcome, JoinRefusal, LiveState, MAX_USERS_PER_CALL,
    SharedStore, TicketState,
};

use crate::support::{
    SETTINGS, START, both, change, item, open_concert, ticket_of, tickets_of, user, users, waiting,
};

/// Joins one user; returns number and position.
async fn join(store: &SharedStore, id: &ItemId, who: &UserId, now: u64) -> (Number, u64) {
    match store.join(id, std::slice::from_ref(who), &SETTINGS, now).await.unwrap()[0] {
        JoinOutcome::Ticket {
            number,
            state: LiveState::Waiting { position: Some(position) },
            ..
        } => (number, position),
        ref other => panic!("not waiting: {other:?}"),
    }
}

async fn ticket_state(
    store: &SharedStore,
    id: &ItemId,
    who: &UserId,
    number: Number,
    now: u64,
) -> TicketState {
    store.resolve(&tickets_of(id, &[(who.clone(), number)]), now).await.unwrap()[0]
}

#[tokio::test]
async fn numbers_are_consecutive_and_joining_again_keeps_the_ticket() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, _) = open_concert(&store, Policy::default()).await;
        let base = Number::base_at(START);
        for (index, who) in users(40).iter().enumerate() {
            let place = join(&store, &id, who, START).await;
            assert_eq!(place, (Number(base.0 + 1 + index as u64), index as u64 + 1), "{name}");
        }
        assert_eq!(join(&store, &id, &user("user-6"), START + 9).await, (Number(base.0 + 7), 7));
        let twice = [user("new"), user("new")];
        let answers = store.join(&id, &twice, &SETTINGS, START).await.unwrap();
        assert!(matches!(answers[0], JoinOutcome::Ticket { is_new: true, .. }), "{name}");
        assert!(matches!(answers[1], JoinOutcome::Ticket { is_new: false, .. }), "{name}");
    }
}

#[tokio::test]
async fn an_item_records_when_it_was_created_and_when_it_was_changed() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let id = item("concert");
        let times = async || {
            let item = store.item(&id).await.unwrap().unwrap();
            (item.created_at.unwrap() - START, item.updated_at.unwrap() - START)
        };
        store.put_item(&change("concert", Policy::default()), START).await.unwrap();
        assert_eq!(times().await, (0, 0), "{name}: created");
        store.put_item(&change("concert", Policy::default()), START + 1).await.unwrap();
        assert_eq!(times().await, (0, 1), "{name}: changed");
        store.set_paused(&id, true, START + 2).await.unwrap();
        assert_eq!(times().await, (0, 2), "{name}: paused");
        let revision = store.item(&id).await.unwrap().unwrap().revision;
        store.set_policy(&id, &Policy::default().into(), revision, START + 3).await.unwrap();
        assert_eq!(times().await, (0, 3), "{name}: policy set");
        store.reset(&id, START + 4).await.unwrap();
        assert_eq!(times().await, (0, 4), "{name}: reset");
        store.remove_item(&id, START).await.unwrap();
        store.put_item(&change("concert", Policy::default()), START + 5).await.unwrap();
        assert_eq!(times().await, (5, 5), "{name}: created again");
    }
}

#[tokio::test]
async fn a_sold_out_line_keeps_its_tickets_and_continues() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        let first = join(&store, &id, &user("a"), START).await.0;
        join(&store, &id, &user("b"), START).await;
        let sold_out =
            daegi_domain::ItemChange { stock: 0, ..change("concert", Policy::default()) };
        store.put_item(&sold_out, START).await.unwrap();
        assert_eq!(store.admit(epoch, &id, 5, 0, 100, START).await.unwrap().admitted, 0, "{name}");
        let newcomer = store.join(&id, &[user("c")], &SETTINGS, START).await.unwrap();
        assert_eq!(newcomer, [JoinOutcome::Refused(JoinRefusal::SoldOut)], "{name}");
        assert_eq!(join(&store, &id, &user("a"), START).await, (first, 1), "{name}: ticket kept");
        store.put_item(&change("concert", Policy::default()), START).await.unwrap();
        assert_eq!(store.admit(epoch, &id, 1, 0, 100, START).await.unwrap().admitted, 1, "{name}");
        let entered = ticket_state(&store, &id, &user("a"), first, START).await;
        assert!(
            matches!(entered, TicketState::Live(LiveState::Entered { .. })),
            "{name}: {entered:?}"
        );
    }
}

#[tokio::test]
async fn a_user_who_returns_in_time_after_a_missed_turn_is_admitted_first() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        let away = join(&store, &id, &user("away"), START).await.0;
        let here = join(&store, &id, &user("here"), START).await.0;
        let later = START + 100_000;
        store.mark_seen(&id, Lane::STANDARD, &LivenessPage::of([here]), later).await.unwrap();
        let admission = store.admit(epoch, &id, 1, 0, 100, later).await.unwrap();
        assert_eq!((admission.admitted, admission.missed), (1, 1), "{name}");
        let third = join(&store, &id, &user("third"), later).await;
        assert_eq!(third.1, 1, "{name}");
        assert_eq!(
            ticket_state(&store, &id, &user("away"), away, later + 9).await,
            waiting(1),
            "{name}"
        );
        assert_eq!(join(&store, &id, &user("third"), later).await.1, 2, "{name}");
        let admission = store.admit(epoch, &id, 1, 0, 100, later + 10).await.unwrap();
        assert_eq!((admission.admitted, admission.missed), (1, 0), "{name}");
        let back = ticket_state(&store, &id, &user("away"), away, later + 20).await;
        assert!(matches!(back, TicketState::Live(LiveState::Entered { .. })), "{name}: {back:?}");
    }
}

#[tokio::test]
async fn a_user_who_stays_absent_is_abandoned_with_one_event() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        let away = join(&store, &id, &user("away"), START).await.0;
        let later = START + 100_000;
        assert_eq!(store.admit(epoch, &id, 1, 0, 100, later).await.unwrap().missed, 1, "{name}");
        let end = later + 300_000;
        assert_eq!(
            store.expire(epoch, &id, Lane::STANDARD, end).await.unwrap().abandoned,
            1,
            "{name}"
        );
        let ended = TicketState::Ended(EndReason::Abandoned);
        assert_eq!(ticket_state(&store, &id, &user("away"), away, end).await, ended, "{name}");
        assert!(!store.expire(epoch, &id, Lane::STANDARD, end).await.unwrap().active, "{name}");
        assert!(store.active_lines().await.unwrap().is_empty(), "{name}");
        assert_eq!(events(&store).await.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn the_sweep_ends_absent_tickets_in_the_middle_of_a_line() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        let all = users(10);
        store.join(&id, &all, &SETTINGS, START).await.unwrap();
        let base = Number::base_at(START).0;
        let later = START + 400_000;
        let seen = [1, 4, 10].map(|index| Number(base + index));
        store.mark_seen(&id, Lane::STANDARD, &LivenessPage::of(seen), later).await.unwrap();
        let sweep = store.sweep(epoch, &id, Lane::STANDARD, Number(0), later).await.unwrap();
        assert_eq!((sweep.abandoned, sweep.cursor), (7, Number(0)), "{name}");
        assert_eq!(join(&store, &id, &all[9], later).await.1, 3, "{name}");
        let snapshot =
            store.snapshot(&id, Lane::STANDARD, Default::default()).await.unwrap().unwrap();
        assert_eq!((snapshot.waiting, snapshot.departed.len()), (3, 7), "{name}");
    }
}

#[tokio::test]
async fn an_expired_entry_frees_its_slot_with_an_event() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let policy = Policy { max_active: Some(1), pass_ttl_seconds: 30, ..Policy::default() };
        let (id, epoch) = open_concert(&store, policy).await;
        let first = join(&store, &id, &user("a"), START).await.0;
        join(&store, &id, &user("b"), START).await;
        assert_eq!(store.admit(epoch, &id, 9, 0, 100, START).await.unwrap().admitted, 1, "{name}");
        let end = START + 30_000;
        assert_eq!(
            store.admit(epoch, &id, 9, 0, 100, end - 1).await.unwrap().admitted,
            0,
            "{name}"
        );
        assert_eq!(
            store.expire(epoch, &id, Lane::STANDARD, end).await.unwrap().expired,
            1,
            "{name}"
        );
        assert_eq!(store.admit(epoch, &id, 9, 0, 100, end).await.unwrap().admitted, 1, "{name}");
        let events: Vec<_> =
            events(&store).await.into_iter().map(|event| event.number().0).collect();
        assert_eq!(
            events,
            [first.0, first.0, first.0 + 1],
            "{name}: admitted, expired, next admitted"
        );
    }
}

#[tokio::test]
async fn tickets_wait_once_the_quota_of_direct_admissions_is_used() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let policy = Policy { mode: Mode::Auto, ..Policy::default() };
        let (id, epoch) = open_concert(&store, policy).await;
        let answers = store.join(&id, &users(5), &SETTINGS, START).await.unwrap();
        let through = |answer: &&JoinOutcome| {
            matches!(answer, JoinOutcome::Ticket { state: LiveState::Entered { .. }, .. })
        };
        assert_eq!(answers.iter().filter(through).count(), 3, "{name}: the quota is 3");
        assert_eq!(events(&store).await.len(), 3, "{name}: a direct admission has an event");
        let admission = store.admit(epoch, &id, 3, 0, 100, START).await.unwrap();
        assert_eq!((admission.admitted, admission.remaining), (0, 0), "{name}: used up");
        assert_eq!(store.admit(epoch, &id, 3, 0, 100, START).await.unwrap().admitted, 2, "{name}");
    }
}

#[tokio::test]
async fn a_reset_ends_waiting_tickets_and_keeps_entries() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        let entry = join(&store, &id, &user("in"), START).await.0;
        let out = join(&store, &id, &user("out"), START).await.0;
        store.admit(epoch, &id, 1, 0, 100, START).await.unwrap();
        store.reset(&id, START).await.unwrap().unwrap();
        assert_eq!(
            ticket_state(&store, &id, &user("out"), out, START).await,
            TicketState::Restarted
        );
        let entered = ticket_state(&store, &id, &user("in"), entry, START).await;
        assert!(matches!(entered, TicketState::Live(LiveState::Entered { .. })), "{name}");
        let again = join(&store, &id, &user("out"), START).await;
        assert_eq!(again, (out.next(), 1), "{name}: numbers never decrease");
    }
}

#[tokio::test]
async fn requeueing_ends_the_old_ticket() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let policy = Policy { on_rejoin: OnRejoin::Requeue, ..Policy::default() };
        let (id, _) = open_concert(&store, policy).await;
        let old = join(&store, &id, &user("a"), START).await.0;
        join(&store, &id, &user("b"), START).await;
        assert_eq!(join(&store, &id, &user("a"), START).await.1, 2, "{name}");
        let replaced = TicketState::Ended(EndReason::Replaced);
        assert_eq!(ticket_state(&store, &id, &user("a"), old, START).await, replaced, "{name}");
    }
}

#[tokio::test]
async fn a_full_outbox_holds_admission_until_it_is_acknowledged() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        store.join(&id, &users(9), &SETTINGS, START).await.unwrap();
        assert_eq!(store.admit(epoch, &id, 9, 0, 4, START).await.unwrap().admitted, 4, "{name}");
        assert!(store.admit(epoch, &id, 9, 0, 4, START).await.unwrap().outbox_full, "{name}");
        for partition in 0..store.partitions() {
            let batches = store.outbox_read(partition, None, 10).await.unwrap();
            let ids: Vec<_> = batches.into_iter().map(|batch| batch.id).collect();
            store.outbox_ack(partition, &ids).await.unwrap();
        }
        assert_eq!(store.admit(epoch, &id, 9, 0, 4, START).await.unwrap().admitted, 4, "{name}");
    }
}

#[tokio::test]
async fn the_outbox_can_be_read_after_a_batch_that_was_removed() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        store.join(&id, &users(12), &SETTINGS, START).await.unwrap();
        for _ in 0..12 {
            store.admit(epoch, &id, 1, 0, 100, START).await.unwrap();
        }
        let mut found = None;
        for partition in 0..store.partitions() {
            let all = store.outbox_read(partition, None, 100).await.unwrap();
            found = (all.len() == 12).then_some((partition, all)).or(found);
        }
        let (partition, all) = found.unwrap();
        for gone in [false, true] {
            let after = Some(all[9].id.as_str());
            let rest = store.outbox_read(partition, after, 1).await.unwrap();
            assert_eq!(rest, all[10..11], "{name}, gone: {gone}");
            store.outbox_ack(partition, std::slice::from_ref(&all[9].id)).await.unwrap();
        }
        let after = Some(all[11].id.as_str());
        assert!(store.outbox_read(partition, after, 1).await.unwrap().is_empty(), "{name}");
    }
}

#[tokio::test]
async fn a_reserved_line_is_not_listed_and_leaves_no_keys() {
    let (stores, server) = both().await;
    for (name, store) in stores {
        let id = ItemId::reserved("warm-up");
        let reserved =
            daegi_domain::ItemChange { id: id.clone(), ..change("x", Policy::default()) };
        store.put_item(&reserved, START).await.unwrap();
        store.join(&id, &users(3), &SETTINGS, START).await.unwrap();
        assert!(store.items().await.unwrap().is_empty(), "{name}");
        store.purge(&id).await.unwrap();
        assert!(store.active_lines().await.unwrap().is_empty(), "{name}");
    }
    if let Some(server) = server {
        let keys: Vec<String> = redis::cmd("KEYS")
            .arg("*line*")
            .query_async(&mut server.connection().await.unwrap())
            .await
            .unwrap();
        assert_eq!(keys, Vec::<String>::new());
    }
}

/// Between the expiry of an entry and the next round of the leader, polls already return EXPIRED.
#[tokio::test]
async fn an_expired_entry_can_neither_be_completed_nor_left() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        let numbers = [
            join(&store, &id, &user("kim"), START).await.0,
            join(&store, &id, &user("lee"), START).await.0,
        ];
        assert_eq!(store.admit(epoch, &id, 2, 0, 100, START).await.unwrap().admitted, 2, "{name}");
        let end = START + 600_000;
        let expired = TicketState::Ended(EndReason::Expired);
        assert_eq!(
            ticket_state(&store, &id, &user("kim"), numbers[0], end).await,
            expired,
            "{name}"
        );
        let completed = EndReason::Completed;
        let done = store.complete(&ticket_of(&id, &user("kim"), numbers[0]), completed, end).await;
        assert_eq!(done.unwrap(), EndOutcome::AlreadyEnded, "{name}");
        let left = store.leave(&ticket_of(&id, &user("lee"), numbers[1]), end).await;
        assert_eq!(left.unwrap(), EndOutcome::AlreadyEnded, "{name}");
        let events = events(&store).await;
        let ends = events.iter().filter_map(|event| match event {
            TicketEvent::Ended { reason, .. } => Some(*reason),
            TicketEvent::Admitted { .. } => None,
        });
        assert_eq!(ends.collect::<Vec<_>>(), [EndReason::Expired; 2], "{name}");
        assert_eq!(
            ticket_state(&store, &id, &user("kim"), numbers[0], end).await,
            expired,
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_line_has_one_round_per_tick_whichever_replica_leads() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        store.join(&id, &users(9), &SETTINGS, START).await.unwrap();
        let admit =
            async |epoch, now| store.admit(epoch, &id, 2, 900, 100, now).await.unwrap().admitted;
        assert_eq!(admit(epoch, START).await, 2, "{name}");
        assert_eq!(admit(epoch, START).await, 2, "{name}: the same round continues");
        let next = store.begin_term(0).await.unwrap();
        assert_eq!(admit(next, START + 899).await, 0, "{name}: another leader, too early");
        assert_eq!(admit(next, START + 900).await, 2, "{name}");
        let behind = START - 60_000;
        assert_eq!(
            admit(next, behind).await,
            2,
            "{name}: a clock that went back does not stop admission"
        );
    }
}

#[tokio::test]
async fn ends_past_their_retention_are_deleted_in_batches() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        let base = Number::base_at(START).0;
        let all = users(MAX_USERS_PER_CALL as usize + 1);
        store.join(&id, &all, &SETTINGS, START).await.unwrap();
        for (who, number) in all.iter().zip(base + 1..) {
            assert!(
                store.leave(&ticket_of(&id, who, Number(number)), START).await.unwrap().is_ended()
            );
        }
        let old = START + ENDED_RETENTION_MS;
        assert!(!store.expire(epoch, &id, Lane::STANDARD, old - 1).await.unwrap().more, "{name}");
        assert!(
            store.expire(epoch, &id, Lane::STANDARD, old).await.unwrap().more,
            "{name}: one is left"
        );
        assert!(!store.expire(epoch, &id, Lane::STANDARD, old).await.unwrap().more, "{name}");
    }
}

async fn events(store: &SharedStore) -> Vec<TicketEvent> {
    let mut events = Vec::new();
    for partition in 0..store.partitions() {
        let batches = store.outbox_read(partition, None, 1000).await.unwrap();
        events.extend(batches.into_iter().flat_map(|batch| batch.events));
    }
    events
}

/// Tests that run again on Sentinel and Cluster.
pub(crate) const ALL_TOPOLOGIES: &[fn()] = &[
    numbers_are_consecutive_and_joining_again_keeps_the_ticket,
    a_sold_out_line_keeps_its_tickets_and_continues,
    a_user_who_returns_in_time_after_a_missed_turn_is_admitted_first,
    a_user_who_stays_absent_is_abandoned_with_one_event,
    the_sweep_ends_absent_tickets_in_the_middle_of_a_line,
    an_expired_entry_frees_its_slot_with_an_event,
    tickets_wait_once_the_quota_of_direct_admissions_is_used,
    a_reset_ends_waiting_tickets_and_keeps_entries,
    requeueing_ends_the_old_ticket,
    an_expired_entry_can_neither_be_completed_nor_left,
    a_full_outbox_holds_admission_until_it_is_acknowledged,
    the_outbox_can_be_read_after_a_batch_that_was_removed,
    a_reserved_line_is_not_listed_and_leaves_no_keys,
];
