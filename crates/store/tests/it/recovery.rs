//! A store that lost data: a user who returns with a lost number gets the old position.

mod control;

use std::sync::Arc;

use daegi_domain::{
    EndReason, ItemId, Lane, LaneName, LanePolicy, Number, Policy, RECOVERY_HOLD_MS, Ticket,
    TicketEvent, UserId,
};
use daegi_store::{
    ChangeCursor, EndOutcome, EntryProof, Epoch, JoinOutcome, LaneJoin, LiveState, MemoryStore,
    RECLAIM_WINDOW_MS, ReplayState, SharedStore, StoreImage, TicketState,
};

use crate::support::{
    PARTITIONS, SETTINGS, START, Topology, change, item, ticket_of, tickets_of, user, users,
    waiting,
};

/// A store that can lose data on request.
struct LossyStore {
    name: &'static str,
    store: SharedStore,
    backend: Backend,
}

enum Backend {
    Memory(Arc<MemoryStore>, Option<Box<StoreImage>>),
    Redis(Topology),
}

impl LossyStore {
    async fn both() -> Vec<Self> {
        let memory = Arc::new(MemoryStore::new(PARTITIONS, SETTINGS));
        let backend = Backend::Memory(Arc::clone(&memory), None);
        let mut both = vec![Self { name: "memory", store: memory, backend }];
        if let Some(server) = daegi_testkit::redis_or_skip().await {
            let topology = Topology::One(server);
            both.push(Self {
                name: "redis",
                store: topology.store().await,
                backend: Backend::Redis(topology),
            });
        }
        for lossy in &both {
            lossy.open(START).await;
        }
        both
    }

    async fn open(&self, now: u64) -> Epoch {
        let policy = Policy { grace_seconds: 0, ..Policy::default() };
        self.store.put_item(&change("concert", policy), now).await.unwrap();
        self.store.begin_term(0).await.unwrap()
    }

    /// Writes from now on do not reach the replica.
    async fn stop_replication(&mut self) {
        match &mut self.backend {
            Backend::Memory(memory, replica) => *replica = Some(Box::new(memory.image())),
            Backend::Redis(topology) => assert!(topology.replicate().await),
        }
    }

    async fn fail_over(&mut self) {
        match &mut self.backend {
            Backend::Memory(memory, replica) => memory.restore(replica.take().map(|image| *image)),
            Backend::Redis(topology) => topology.fail_over().await,
        }
    }

    async fn lose_everything(&self) {
        match &self.backend {
            Backend::Memory(memory, _) => memory.restore(None),
            Backend::Redis(topology) => topology.flush().await,
        }
    }

    async fn join(&self, who: &[UserId], now: u64) -> Vec<(UserId, Number)> {
        let joined = self.store.join(&concert(), who, &SETTINGS, now).await.unwrap();
        let number = |joined: &JoinOutcome| match joined {
            JoinOutcome::Ticket { number, .. } => *number,
            JoinOutcome::Refused(refusal) => panic!("{refusal:?}"),
        };
        who.iter().cloned().zip(joined.iter().map(number)).collect()
    }

    async fn ticket_states(&self, tickets: &[(UserId, Number)], now: u64) -> Vec<TicketState> {
        self.store.resolve(&tickets_of(&concert(), tickets), now).await.unwrap()
    }

    async fn admit(&self, epoch: Epoch, quota: u32, now: u64) -> u32 {
        let admission =
            self.store.admit(epoch, &concert(), quota, 0, 1_000_000, now).await.unwrap();
        admission.admitted
    }

    /// The admitted numbers in the order of their events.
    async fn admitted(&self) -> Vec<Number> {
        let mut numbers = Vec::new();
        for partition in 0..PARTITIONS {
            for batch in self.store.outbox_read(partition, None, 1000).await.unwrap() {
                let activated = |event: &TicketEvent| match event {
                    TicketEvent::Admitted { number, .. } => Some(*number),
                    TicketEvent::Ended { .. } => None,
                };
                numbers.extend(batch.events.iter().filter_map(activated));
            }
        }
        numbers
    }
}

fn concert() -> ItemId {
    item("concert")
}

fn numbers(tickets: &[(UserId, Number)]) -> Vec<Number> {
    tickets.iter().map(|(_, number)| *number).collect()
}

#[tokio::test]
async fn after_a_complete_loss_reclaimed_tickets_keep_their_order_ahead_of_new_ones() {
    for lossy in LossyStore::both().await {
        let name = lossy.name;
        let old = lossy.join(&users(5), START).await;
        lossy.lose_everything().await;
        let later = START + 60_000;
        assert_eq!(
            lossy.ticket_states(&old[..1], later).await,
            [TicketState::ItemUnknown],
            "{name}"
        );
        let epoch = lossy.open(later).await;
        let new = lossy.join(&[user("new")], later).await;
        assert!(new[0].1 > old[4].1, "{name}");
        // Users poll in any order.
        for (index, position) in [(3, 1), (0, 1), (4, 3), (1, 2)] {
            let state = lossy.ticket_states(&old[index..=index], later).await;
            assert_eq!(state, [waiting(position)], "{name}: {index}");
        }
        assert_eq!(lossy.ticket_states(&new, later).await, [waiting(5)], "{name}");
        let line = lossy
            .store
            .snapshot(&concert(), Lane::STANDARD, ChangeCursor::default())
            .await
            .unwrap();
        let line = line.unwrap();
        assert_eq!((line.waiting, line.front), (5, old[0].1.rank()), "{name}");
        assert_eq!(line.item.recovering_until, later + RECOVERY_HOLD_MS, "{name}");

        assert_eq!(lossy.admit(epoch, 9, later + RECOVERY_HOLD_MS - 1).await, 0, "{name}: held");
        let after = later + RECOVERY_HOLD_MS;
        assert_eq!(lossy.ticket_states(&old[2..3], after - 1).await, [waiting(3)], "{name}");
        assert_eq!(lossy.admit(epoch, 9, after).await, 6, "{name}");
        let in_order: Vec<_> = numbers(&old).into_iter().chain(numbers(&new)).collect();
        assert_eq!(lossy.admitted().await, in_order, "{name}");
    }
}

#[tokio::test]
async fn new_tickets_after_a_fail_over_wait_behind_the_lost_ones() {
    for mut lossy in LossyStore::both().await {
        let name = lossy.name;
        let kept = lossy.join(&users(3), START).await;
        lossy.stop_replication().await;
        let lost = lossy.join(&[user("lost-1"), user("lost-2")], START).await;
        lossy.fail_over().await;
        let epoch = lossy.store.begin_term(0).await.unwrap();
        let new = lossy.join(&[user("new")], START).await;
        assert!(new[0].1 > lost[1].1, "{name}: no number is issued twice");
        assert_eq!(lossy.ticket_states(&new, START).await, [waiting(4)], "{name}");

        // Tickets may have been lost, so new ones are held although none has been reclaimed yet.
        assert_eq!(lossy.admit(epoch, 2, START).await, 2, "{name}");
        assert_eq!(lossy.ticket_states(&lost[1..], START).await, [waiting(2)], "{name}");
        assert_eq!(lossy.ticket_states(&lost[..1], START).await, [waiting(2)], "{name}");
        assert_eq!(lossy.ticket_states(&new, START).await, [waiting(4)], "{name}");
        assert_eq!(lossy.admit(epoch, 9, START + 1).await, 0, "{name}: held");
        assert_eq!(lossy.admit(epoch, 9, START + RECOVERY_HOLD_MS).await, 4, "{name}");
        let in_order = [numbers(&kept), numbers(&lost), numbers(&new)].concat();
        assert_eq!(lossy.admitted().await, in_order, "{name}");
    }
}

#[tokio::test]
async fn a_short_line_admits_no_new_ticket_before_the_recovery_hold_ends() {
    for mut lossy in LossyStore::both().await {
        let name = lossy.name;
        lossy.stop_replication().await;
        let lost = lossy.join(&[user("lost")], START).await;
        lossy.fail_over().await;
        let epoch = lossy.store.begin_term(0).await.unwrap();
        let new = lossy.join(&[user("new")], START).await;
        assert_eq!(lossy.admit(epoch, 9, START + RECOVERY_HOLD_MS - 1).await, 0, "{name}");
        assert_eq!(lossy.ticket_states(&lost, START + 9).await, [waiting(1)], "{name}");
        assert_eq!(lossy.admit(epoch, 9, START + RECOVERY_HOLD_MS + 9).await, 2, "{name}");
        assert_eq!(lossy.admitted().await, [lost[0].1, new[0].1], "{name}");
    }
}

#[tokio::test]
async fn a_user_who_joined_again_without_their_token_has_only_the_old_ticket() {
    for lossy in LossyStore::both().await {
        let name = lossy.name;
        let old = lossy.join(&users(2), START).await;
        lossy.lose_everything().await;
        lossy.open(START + 1000).await;
        let new = lossy.join(&[user("user-0")], START + 1000).await;
        assert_eq!(lossy.ticket_states(&old[..1], START + 1000).await, [waiting(1)], "{name}");
        let replaced = TicketState::Ended(EndReason::Replaced);
        assert_eq!(lossy.ticket_states(&new, START + 1000).await, [replaced], "{name}");
        let again = lossy.join(&[user("user-0")], START + 1000).await;
        assert_eq!(again, old[..1], "{name}");
        assert_eq!(lossy.ticket_states(&old[1..], START + 1000).await, [waiting(2)], "{name}");
    }
}

#[tokio::test]
async fn ended_reset_and_late_tickets_are_not_reclaimed() {
    for lossy in LossyStore::both().await {
        let name = lossy.name;
        let old = lossy.join(&users(4), START).await;
        lossy.lose_everything().await;
        let later = START + 1000;
        lossy.open(later).await;
        // A lost ticket can be left, and a lost entry completed.
        let left =
            lossy.store.leave(&ticket_of(&concert(), &old[0].0, old[0].1), later).await.unwrap();
        assert_eq!(left, EndOutcome::Ended, "{name}");
        let ((user, number), id) = (&old[1], concert());
        let done =
            lossy.store.complete(&ticket_of(&id, user, *number), EndReason::Completed, later).await;
        assert_eq!(done.unwrap(), EndOutcome::Ended, "{name}");
        let ends = [EndReason::Left, EndReason::Completed].map(TicketState::Ended);
        assert_eq!(lossy.ticket_states(&old[..2], later).await, ends, "{name}");
        let too_late = later + RECLAIM_WINDOW_MS;
        assert_eq!(
            lossy.ticket_states(&old[2..3], too_late).await,
            [TicketState::Restarted],
            "{name}"
        );
        assert_eq!(lossy.ticket_states(&old[2..3], too_late - 1).await, [waiting(1)], "{name}");
        lossy.store.reset(&concert(), later).await.unwrap();
        let away = [TicketState::Restarted; 2];
        assert_eq!(lossy.ticket_states(&old[2..], later).await, away, "{name}: a reset counts");
    }
}

#[tokio::test]
async fn a_pass_proves_an_admission_that_the_store_lost() {
    for mut lossy in LossyStore::both().await {
        let name = lossy.name;
        let old = lossy.join(&users(3), START).await;
        lossy.stop_replication().await;
        let epoch = lossy.store.begin_term(0).await.unwrap();
        assert_eq!(lossy.admit(epoch, 1, START).await, 1, "{name}");
        lossy.fail_over().await;
        // On the replica the ticket waits; after the complete loss it is unknown.
        let (user, number) = old[0].clone();
        let ticket = ticket_of(&concert(), &user, number);
        let entry = EntryProof { ticket, at: START, expires_at: START + 600_000 };
        let entry_state = TicketState::Live(LiveState::Entered {
            admitted_at: START,
            expires_at: START + 600_000,
        });
        let now = START + 5000;
        assert_eq!(lossy.store.restore_entry(&entry, now).await.unwrap(), entry_state, "{name}");
        assert_eq!(lossy.ticket_states(&old[1..2], now).await, [waiting(1)], "{name}");
        lossy.lose_everything().await;
        lossy.open(now).await;
        assert_eq!(lossy.store.restore_entry(&entry, now).await.unwrap(), entry_state, "{name}");
        assert_eq!(lossy.ticket_states(&old[..1], now).await, [entry_state], "{name}");
        assert_eq!(lossy.admitted().await, [old[0].1], "{name}: published again with the same id");

        let left = lossy.store.leave(&entry.ticket, now).await.unwrap();
        assert_eq!(left, EndOutcome::Ended, "{name}");
        let again = lossy.store.restore_entry(&entry, now).await.unwrap();
        assert_eq!(
            again,
            TicketState::Ended(EndReason::Left),
            "{name}: an ended ticket stays ended"
        );
    }
}

#[tokio::test]
async fn a_ticket_that_the_replica_never_received_can_be_ended() {
    for mut lossy in LossyStore::both().await {
        let name = lossy.name;
        lossy.stop_replication().await;
        let old = lossy.join(&users(2), START).await;
        lossy.fail_over().await;
        let (id, now) = (concert(), START + 1000);
        let done = lossy
            .store
            .complete(&ticket_of(&id, &old[0].0, old[0].1), EndReason::Completed, now)
            .await;
        assert_eq!(done.unwrap(), EndOutcome::Ended, "{name}");
        let ticket_states = lossy.ticket_states(&old, now).await;
        let expected = [TicketState::Ended(EndReason::Completed), waiting(1)];
        assert_eq!(ticket_states, expected, "{name}: not reclaimed");
    }
}

#[tokio::test]
async fn a_ticket_of_a_lost_item_is_not_reported_as_ended() {
    for lossy in LossyStore::both().await {
        let old = lossy.join(&users(2), START).await;
        lossy.lose_everything().await;
        let (id, now, reason) = (concert(), START + 1000, EndReason::Completed);
        let done = lossy.store.complete(&ticket_of(&id, &old[0].0, old[0].1), reason, now).await;
        assert_eq!(done.unwrap(), EndOutcome::ItemUnknown, "{}", lossy.name);
        let left = lossy.store.leave(&ticket_of(&id, &old[1].0, old[1].1), now).await;
        assert_eq!(left.unwrap(), EndOutcome::ItemUnknown, "{}", lossy.name);
    }
}

#[tokio::test]
async fn a_loss_while_a_line_recovers_renews_the_hold() {
    for mut lossy in LossyStore::both().await {
        let name = lossy.name;
        let old = lossy.join(&users(3), START).await;
        lossy.lose_everything().await;
        let epoch = lossy.open(START).await;
        assert_eq!(lossy.ticket_states(&old[2..], START).await, [waiting(1)], "{name}");
        lossy.stop_replication().await;
        assert_eq!(lossy.ticket_states(&old[1..2], START).await, [waiting(1)], "{name}");
        lossy.fail_over().await;
        // The leader detects another server; users whose reclaim the replica did not receive may poll later.
        let noticed = START + RECOVERY_HOLD_MS - 1;
        lossy.store.expire(epoch, &concert(), Lane::STANDARD, noticed).await.unwrap();
        assert_eq!(lossy.admit(epoch, 9, noticed + 1).await, 0, "{name}: held again");
        assert_eq!(lossy.ticket_states(&old[1..2], noticed + 2).await, [waiting(1)], "{name}");
        assert_eq!(lossy.admit(epoch, 9, noticed + RECOVERY_HOLD_MS).await, 2, "{name}");
    }
}

#[tokio::test]
async fn a_log_that_was_read_before_a_fail_over_is_replayed() {
    for mut lossy in LossyStore::both().await {
        let name = lossy.name;
        lossy.store.begin_replay("items/0").await.unwrap();
        assert!(lossy.store.complete_replay("items/0").await.unwrap(), "{name}");
        lossy.stop_replication().await;
        lossy.fail_over().await;
        let store = &lossy.store;
        assert_eq!(store.replay_state("items/0").await.unwrap(), ReplayState::NotStarted, "{name}");
        assert!(!store.complete_replay("items/0").await.unwrap(), "{name}: no replay has begun");
        store.begin_replay("items/0").await.unwrap();
        assert_eq!(store.replay_state("items/0").await.unwrap(), ReplayState::InProgress, "{name}");
        assert!(store.complete_replay("items/0").await.unwrap(), "{name}");
        assert_eq!(store.replay_state("items/0").await.unwrap(), ReplayState::Complete, "{name}");
    }
}

#[tokio::test]
async fn a_term_that_begins_after_a_loss_has_a_new_epoch() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let topology = Topology::One(server);
    let (before, after) = (topology.store().await, topology.store().await);
    let old = before.begin_term(START).await.unwrap();
    topology.flush().await;
    // Another process, which has not seen that term.
    assert!(after.begin_term(START + 1).await.unwrap() > old);
}

#[tokio::test]
async fn the_first_tickets_of_a_lane_that_the_replica_never_received_are_reclaimed() {
    for mut lossy in LossyStore::both().await {
        let (name, opera) = (lossy.name, item("opera"));
        let members =
            LanePolicy { name: LaneName::parse("members").unwrap(), weight: 20, first: false };
        let policy = Policy { grace_seconds: 0, lanes: vec![members], ..Policy::default() };
        lossy.store.put_item(&change("opera", policy), START).await.unwrap();
        lossy.stop_replication().await;
        let lane = Lane::numbered(1).unwrap();
        let joins = ["kim", "lee"].map(|id| LaneJoin { user: user(id), invitation: None });
        let joined = lossy.store.join_lane(&opera, lane, &joins, &SETTINGS, START + 100).await;
        let tickets: Vec<_> = joins
            .iter()
            .zip(joined.unwrap())
            .map(|(join, joined)| match joined {
                JoinOutcome::Ticket { number, lane, .. } => {
                    Ticket { lane, ..ticket_of(&opera, &join.user, number) }
                }
                JoinOutcome::Refused(refusal) => panic!("{refusal:?}"),
            })
            .collect();
        lossy.fail_over().await;

        let (first, second) = tickets.split_at(1);
        let states = lossy.store.resolve(first, START + 200).await.unwrap();
        assert_eq!(states, [waiting(1)], "{name}: the line of the lane is unknown");
        // A newcomer is behind all lost tickets.
        let newcomer = [LaneJoin { user: user("park"), invitation: None }];
        let joined = lossy.store.join_lane(&opera, lane, &newcomer, &SETTINGS, START + 300).await;
        let JoinOutcome::Ticket { number, .. } = joined.unwrap()[0] else { panic!("{name}") };
        assert!(number > tickets[1].number, "{name}");
        let states = lossy.store.resolve(second, START + 400).await.unwrap();
        assert_eq!(states, [waiting(2)], "{name}");
    }
}
