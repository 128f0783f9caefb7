//! A store that lost data: whoever comes back with a number it gave stands where they stood.

use std::sync::Arc;

use daegi_domain::{EndReason, ItemId, LineEvent, Number, Policy, RECOVERY_HOLD_MS, UserId};
use daegi_store::{
    Catalogue, Closing, DepartedCursor, Epoch, Joined, MemoryStore, Place, Reentry, Replica,
    SharedStore, Standing, TAKE_BACK_MS,
};

use crate::support::{PARTITIONS, SETTINGS, START, Setup, change, item, user, users};

/// A store that can be made to lose what it has.
struct Frail {
    name: &'static str,
    store: SharedStore,
    of: Of,
}

enum Of {
    Memory(Arc<MemoryStore>, Option<Replica>),
    Redis(Setup),
}

impl Frail {
    async fn both() -> Vec<Self> {
        let memory = Arc::new(MemoryStore::new(PARTITIONS, SETTINGS));
        let of = Of::Memory(Arc::clone(&memory), None);
        let mut both = vec![Self { name: "memory", store: memory, of }];
        if let Some(server) = daegi_testkit::redis_or_loud().await {
            let setup = Setup::One(server);
            both.push(Self { name: "redis", store: setup.store().await, of: Of::Redis(setup) });
        }
        for frail in &both {
            frail.open(START).await;
        }
        both
    }

    async fn open(&self, now: u64) -> Epoch {
        let policy = Policy { grace_seconds: 0, ..Policy::default() };
        self.store.put_item(&change("concert", policy), now).await.unwrap();
        self.store.begin_term(0).await.unwrap()
    }

    /// From now on a replica gets nothing.
    async fn cut_off_replica(&mut self) {
        match &mut self.of {
            Of::Memory(memory, replica) => *replica = Some(memory.replica()),
            Of::Redis(setup) => assert!(setup.replicate().await),
        }
    }

    async fn fail_over(&mut self) {
        match &mut self.of {
            Of::Memory(memory, replica) => memory.lose(replica.take()),
            Of::Redis(setup) => setup.fail_over().await,
        }
    }

    async fn lose_everything(&self) {
        match &self.of {
            Of::Memory(memory, _) => memory.lose(None),
            Of::Redis(setup) => setup.flush().await,
        }
    }

    async fn join(&self, who: &[UserId], now: u64) -> Vec<(UserId, Number)> {
        let joined = self.store.join(&concert(), who, &SETTINGS, now).await.unwrap();
        let number = |joined: &Joined| match joined {
            Joined::At { number, .. } => *number,
            Joined::Refused(refusal) => panic!("{refusal:?}"),
        };
        who.iter().cloned().zip(joined.iter().map(number)).collect()
    }

    async fn standings(&self, tickets: &[(UserId, Number)], now: u64) -> Vec<Standing> {
        self.store.resolve(&concert(), tickets, now).await.unwrap()
    }

    async fn admit(&self, epoch: Epoch, quota: u32, now: u64) -> u32 {
        let admission =
            self.store.admit(epoch, &concert(), quota, 0, 1_000_000, now).await.unwrap();
        admission.admitted
    }

    /// Who was let in, in order.
    async fn let_in(&self) -> Vec<Number> {
        let mut numbers = Vec::new();
        for partition in 0..PARTITIONS {
            for batch in self.store.outbox_read(partition, None, 1000).await.unwrap() {
                let activated = |event: &LineEvent| match event {
                    LineEvent::Activated { number, .. } => Some(*number),
                    LineEvent::Closed { .. } => None,
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

fn waiting(position: u64) -> Standing {
    Standing::At(Place::Waiting { position })
}

fn numbers(tickets: &[(UserId, Number)]) -> Vec<Number> {
    tickets.iter().map(|(_, number)| *number).collect()
}

#[tokio::test]
async fn after_losing_everything_people_stand_in_the_old_order_ahead_of_newcomers() {
    for frail in Frail::both().await {
        let name = frail.name;
        let old = frail.join(&users(5), START).await;
        frail.lose_everything().await;
        let later = START + 60_000;
        assert_eq!(frail.standings(&old[..1], later).await, [Standing::Forgotten], "{name}");
        let epoch = frail.open(later).await;
        let new = frail.join(&[user("new")], later).await;
        assert!(new[0].1 > old[4].1, "{name}");
        // They ask in any order.
        for (index, position) in [(3, 1), (0, 1), (4, 3), (1, 2)] {
            let standing = frail.standings(&old[index..=index], later).await;
            assert_eq!(standing, [waiting(position)], "{name}: {index}");
        }
        assert_eq!(frail.standings(&new, later).await, [waiting(5)], "{name}");
        let line = frail.store.snapshot(&concert(), DepartedCursor::default()).await.unwrap();
        let line = line.unwrap();
        assert_eq!((line.waiting, line.front), (5, old[0].1), "{name}");
        assert_eq!(line.item.recovering_until, later + RECOVERY_HOLD_MS, "{name}");

        assert_eq!(frail.admit(epoch, 9, later + RECOVERY_HOLD_MS - 1).await, 0, "{name}: held");
        let after = later + RECOVERY_HOLD_MS;
        assert_eq!(frail.standings(&old[2..3], after - 1).await, [waiting(3)], "{name}");
        assert_eq!(frail.admit(epoch, 9, after).await, 6, "{name}");
        let everybody: Vec<_> = numbers(&old).into_iter().chain(numbers(&new)).collect();
        assert_eq!(frail.let_in().await, everybody, "{name}");
    }
}

#[tokio::test]
async fn newcomers_after_a_fail_over_stay_behind_those_it_lost() {
    for mut frail in Frail::both().await {
        let name = frail.name;
        let kept = frail.join(&users(3), START).await;
        frail.cut_off_replica().await;
        let lost = frail.join(&[user("lost-1"), user("lost-2")], START).await;
        frail.fail_over().await;
        let epoch = frail.store.begin_term(0).await.unwrap();
        let new = frail.join(&[user("new")], START).await;
        assert!(new[0].1 > lost[1].1, "{name}: nobody gets a number that was given");
        assert_eq!(frail.standings(&new, START).await, [waiting(4)], "{name}");

        // Nobody is known to be lost, but somebody may be: newcomers wait for them.
        assert_eq!(frail.admit(epoch, 2, START).await, 2, "{name}");
        assert_eq!(frail.standings(&lost[1..], START).await, [waiting(2)], "{name}");
        assert_eq!(frail.standings(&lost[..1], START).await, [waiting(2)], "{name}");
        assert_eq!(frail.standings(&new, START).await, [waiting(4)], "{name}");
        assert_eq!(frail.admit(epoch, 9, START + 1).await, 0, "{name}: held");
        assert_eq!(frail.admit(epoch, 9, START + RECOVERY_HOLD_MS).await, 4, "{name}");
        let everybody = [numbers(&kept), numbers(&lost), numbers(&new)].concat();
        assert_eq!(frail.let_in().await, everybody, "{name}");
    }
}

#[tokio::test]
async fn a_short_line_does_not_let_newcomers_in_before_the_lost_had_time_to_come() {
    for mut frail in Frail::both().await {
        let name = frail.name;
        frail.cut_off_replica().await;
        let lost = frail.join(&[user("lost")], START).await;
        frail.fail_over().await;
        let epoch = frail.store.begin_term(0).await.unwrap();
        let new = frail.join(&[user("new")], START).await;
        assert_eq!(frail.admit(epoch, 9, START + RECOVERY_HOLD_MS - 1).await, 0, "{name}");
        assert_eq!(frail.standings(&lost, START + 9).await, [waiting(1)], "{name}");
        assert_eq!(frail.admit(epoch, 9, START + RECOVERY_HOLD_MS + 9).await, 2, "{name}");
        assert_eq!(frail.let_in().await, [lost[0].1, new[0].1], "{name}");
    }
}

#[tokio::test]
async fn whoever_joined_again_without_their_token_has_one_place_and_it_is_the_old_one() {
    for frail in Frail::both().await {
        let name = frail.name;
        let old = frail.join(&users(2), START).await;
        frail.lose_everything().await;
        frail.open(START + 1000).await;
        let new = frail.join(&[user("user-0")], START + 1000).await;
        assert_eq!(frail.standings(&old[..1], START + 1000).await, [waiting(1)], "{name}");
        let replaced = Standing::Ended(EndReason::Replaced);
        assert_eq!(frail.standings(&new, START + 1000).await, [replaced], "{name}");
        let again = frail.join(&[user("user-0")], START + 1000).await;
        assert_eq!(again, old[..1], "{name}");
        assert_eq!(frail.standings(&old[1..], START + 1000).await, [waiting(2)], "{name}");
    }
}

#[tokio::test]
async fn what_ended_since_or_was_sent_away_or_comes_too_late_stays_away() {
    for frail in Frail::both().await {
        let name = frail.name;
        let old = frail.join(&users(4), START).await;
        frail.lose_everything().await;
        let later = START + 1000;
        frail.open(later).await;
        // Who leaves while nobody knows them has left, and so has a completed order.
        let left = frail.store.leave(&concert(), &old[0].0, old[0].1, later).await.unwrap();
        assert_eq!(left, Closing::Done, "{name}");
        let ((user, number), id) = (&old[1], concert());
        let done = frail.store.complete(&id, user, *number, EndReason::Completed, later);
        assert_eq!(done.await.unwrap(), Closing::Done, "{name}");
        let ends = [EndReason::Left, EndReason::Completed].map(Standing::Ended);
        assert_eq!(frail.standings(&old[..2], later).await, ends, "{name}");
        let too_late = later + TAKE_BACK_MS;
        assert_eq!(frail.standings(&old[2..3], too_late).await, [Standing::Restarted], "{name}");
        assert_eq!(frail.standings(&old[2..3], too_late - 1).await, [waiting(1)], "{name}");
        frail.store.reset(&concert(), later).await.unwrap();
        let away = [Standing::Restarted; 2];
        assert_eq!(frail.standings(&old[2..], later).await, away, "{name}: a reset counts");
    }
}

#[tokio::test]
async fn a_pass_is_proof_that_somebody_was_let_in() {
    for mut frail in Frail::both().await {
        let name = frail.name;
        let old = frail.join(&users(3), START).await;
        frail.cut_off_replica().await;
        let epoch = frail.store.begin_term(0).await.unwrap();
        assert_eq!(frail.admit(epoch, 1, START).await, 1, "{name}");
        frail.fail_over().await;
        // The replica has them in the line; after losing everything they are nowhere.
        let (user, number) = old[0].clone();
        let entry = Reentry { user, number, at: START, expires_at: START + 600_000 };
        let inside = Standing::At(Place::Entered { at: START, expires_at: START + 600_000 });
        let now = START + 5000;
        assert_eq!(frail.store.reenter(&concert(), &entry, now).await.unwrap(), inside, "{name}");
        assert_eq!(frail.standings(&old[1..2], now).await, [waiting(1)], "{name}");
        frail.lose_everything().await;
        frail.open(now).await;
        assert_eq!(frail.store.reenter(&concert(), &entry, now).await.unwrap(), inside, "{name}");
        assert_eq!(frail.standings(&old[..1], now).await, [inside], "{name}");
        assert_eq!(frail.let_in().await, [old[0].1], "{name}: told again, with the same id");

        let left = frail.store.leave(&concert(), &entry.user, number, now).await.unwrap();
        assert_eq!(left, Closing::Done, "{name}");
        let again = frail.store.reenter(&concert(), &entry, now).await.unwrap();
        assert_eq!(again, Standing::Ended(EndReason::Left), "{name}: an end is an end");
    }
}

#[tokio::test]
async fn a_ticket_that_a_replica_never_heard_of_can_be_ended() {
    for mut frail in Frail::both().await {
        let name = frail.name;
        frail.cut_off_replica().await;
        let old = frail.join(&users(2), START).await;
        frail.fail_over().await;
        let (id, now) = (concert(), START + 1000);
        let done = frail.store.complete(&id, &old[0].0, old[0].1, EndReason::Completed, now).await;
        assert_eq!(done.unwrap(), Closing::Done, "{name}");
        let standings = frail.standings(&old, now).await;
        let expected = [Standing::Ended(EndReason::Completed), waiting(1)];
        assert_eq!(standings, expected, "{name}: and is not put back");
    }
}

#[tokio::test]
async fn a_ticket_of_a_lost_item_is_not_said_to_have_ended() {
    for frail in Frail::both().await {
        let old = frail.join(&users(2), START).await;
        frail.lose_everything().await;
        let (id, now, reason) = (concert(), START + 1000, EndReason::Completed);
        let done = frail.store.complete(&id, &old[0].0, old[0].1, reason, now).await;
        assert_eq!(done.unwrap(), Closing::Forgotten, "{}", frail.name);
        let left = frail.store.leave(&id, &old[1].0, old[1].1, now).await;
        assert_eq!(left.unwrap(), Closing::Forgotten, "{}", frail.name);
    }
}

#[tokio::test]
async fn a_loss_while_a_line_recovers_renews_the_hold() {
    for mut frail in Frail::both().await {
        let name = frail.name;
        let old = frail.join(&users(3), START).await;
        frail.lose_everything().await;
        let epoch = frail.open(START).await;
        assert_eq!(frail.standings(&old[2..], START).await, [waiting(1)], "{name}");
        frail.cut_off_replica().await;
        assert_eq!(frail.standings(&old[1..2], START).await, [waiting(1)], "{name}");
        frail.fail_over().await;
        // The leader notices another server; whom the replica did not hear of may ask later.
        let noticed = START + RECOVERY_HOLD_MS - 1;
        frail.store.expire(epoch, &concert(), noticed).await.unwrap();
        assert_eq!(frail.admit(epoch, 9, noticed + 1).await, 0, "{name}: held anew");
        assert_eq!(frail.standings(&old[1..2], noticed + 2).await, [waiting(1)], "{name}");
        assert_eq!(frail.admit(epoch, 9, noticed + RECOVERY_HOLD_MS).await, 2, "{name}");
    }
}

#[tokio::test]
async fn what_was_read_of_a_log_before_a_fail_over_is_read_again() {
    for mut frail in Frail::both().await {
        let name = frail.name;
        frail.store.begin_catalogue("items/0").await.unwrap();
        assert!(frail.store.end_catalogue("items/0").await.unwrap(), "{name}");
        frail.cut_off_replica().await;
        frail.fail_over().await;
        let store = &frail.store;
        assert_eq!(store.catalogue("items/0").await.unwrap(), Catalogue::Unread, "{name}");
        assert!(!store.end_catalogue("items/0").await.unwrap(), "{name}: nobody has begun");
        store.begin_catalogue("items/0").await.unwrap();
        assert_eq!(store.catalogue("items/0").await.unwrap(), Catalogue::Reading, "{name}");
        assert!(store.end_catalogue("items/0").await.unwrap(), "{name}");
        assert_eq!(store.catalogue("items/0").await.unwrap(), Catalogue::Read, "{name}");
    }
}

#[tokio::test]
async fn who_leads_right_after_a_loss_has_an_epoch_of_their_own() {
    let Some(server) = daegi_testkit::redis_or_loud().await else { return };
    let setup = Setup::One(server);
    let (before, after) = (setup.store().await, setup.store().await);
    let old = before.begin_term(START).await.unwrap();
    setup.flush().await;
    // Another process, which has never heard of that term.
    assert!(after.begin_term(START + 1).await.unwrap() > old);
}
