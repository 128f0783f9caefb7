//! Settings that were published survive a loss.

use daegi_domain::draw::{Cohort, draw_seed};
use daegi_domain::{
    Drawn, ItemChange, ItemControl, ItemUpdate, ItemUpdateKind, LaneName, LanePolicy, LineState,
    LogPosition, Millis, Number, Opening, OpeningChange, Order, Policy, PolicyChange,
    RECOVERY_HOLD_MS, Reveal, UserId, line_rules,
};
use daegi_store::{CHECKPOINT_INTERVAL_MS, Epoch, ItemUpdateOutcome, TicketState};

use super::{LossyStore, concert, numbers};
use crate::support::{
    PARTITIONS, SETTINGS, START, change, item, settings_are_restored, user, users, waiting,
};

const REVEAL: Reveal = Reveal([7; 32]);

impl LossyStore {
    /// Publishes the settings that changed, like the relay.
    async fn publish(&self) -> Vec<ItemControl> {
        let mut controls = Vec::new();
        for partition in 0..PARTITIONS {
            let changed = self.store.changed_controls(partition, 100).await.unwrap();
            for (id, version) in &changed {
                let control = self.store.control(id).await.unwrap().unwrap();
                assert_eq!(control.control_version, *version, "{}", self.name);
                controls.push(control);
            }
            self.store.controls_published(partition, &changed).await.unwrap();
            assert_eq!(self.store.changed_controls(partition, 100).await.unwrap(), []);
        }
        controls
    }

    async fn restore(&self, controls: &[ItemControl], now: Millis) {
        for control in controls {
            assert!(self.store.restore_control(control, now).await.unwrap(), "{}", self.name);
            let again = self.store.restore_control(control, now).await.unwrap();
            assert!(!again, "{}: the same record has no effect", self.name);
        }
    }

    async fn set_policy(&self, policy: Policy, reveal: Option<Reveal>, now: Millis) {
        let revision = self.store.item(&concert()).await.unwrap().unwrap().revision;
        let opening =
            if policy.opening.is_some() { OpeningChange::Replaced } else { OpeningChange::Times };
        let change = PolicyChange { policy, opening, reveal };
        self.store.set_policy(&concert(), &change, revision, now).await.unwrap();
    }

    /// Plans a draw that opens in 100 s.
    async fn plan_draw(&self) {
        let opening =
            Opening { opens_at: Some(START + 100_000), order: Order::Draw, ..Opening::default() };
        let policy = Policy { opening: Some(opening), grace_seconds: 0, ..Policy::default() };
        self.set_policy(policy, Some(REVEAL), START).await;
    }

    /// Opens the line like the leader. Returns whether it opened.
    async fn draw(&self, epoch: Epoch, now: Millis) -> bool {
        let frozen = self.store.freeze_cohort(epoch, &concert(), now).await.unwrap();
        if frozen.is_none() {
            return false;
        }
        let root = [5; 32];
        let drawn =
            Drawn { root, beacon: None, seed: draw_seed(&concert(), &REVEAL.0, &root, None) };
        self.store.open_line(epoch, &concert(), Some(drawn), now).await.unwrap()
    }

    async fn cohort(&self) -> Cohort {
        let item = self.store.item(&concert()).await.unwrap().unwrap();
        let (range, drawn) = item.drawn_cohort().unwrap();
        Cohort::new(range.first, range.size, drawn.seed)
    }

    /// Admits one ticket per call until none is left. Returns the order.
    async fn admit_all(&self, epoch: Epoch, now: Millis) -> Vec<Number> {
        for second in 0..60 {
            self.admit(epoch, 1, now + second * 1000).await;
        }
        self.admitted().await
    }
}

/// The numbers in the order of a draw.
fn drawn_order(cohort: &Cohort, tickets: &[(UserId, Number)]) -> Vec<Number> {
    let mut order = numbers(tickets);
    order.sort_by_key(|number| cohort.rank(*number));
    order
}

#[tokio::test]
async fn policy_pause_and_an_item_made_by_an_operator_survive_a_complete_loss() {
    for lossy in LossyStore::both().await {
        let name = lossy.name;
        let lane =
            LanePolicy { name: LaneName::parse("members").unwrap(), weight: 30, first: false };
        let policy = Policy { max_active: Some(7), lanes: vec![lane], ..Policy::default() };
        lossy.set_policy(policy, None, START + 1).await;
        lossy.store.set_paused(&concert(), true, START + 2).await.unwrap();
        let before = lossy.store.item(&concert()).await.unwrap().unwrap();
        assert_eq!(before.control_version, START + 2, "{name}");
        let old = lossy.join(&users(2), START + 3).await;
        let published = lossy.publish().await;

        lossy.lose_everything().await;
        let later = START + 60_000;
        lossy.restore(&published, later).await;
        let after = lossy.store.item(&concert()).await.unwrap().unwrap();
        let hold_new_until = later + RECOVERY_HOLD_MS;
        let expected =
            daegi_domain::Item { revision: 1, updated_at: Some(later), hold_new_until, ..before };
        assert_eq!(after, expected, "{name}");
        let state = line_rules::line_state(&after, true, &SETTINGS, later);
        assert_eq!(state, LineState::Paused, "{name}");
        assert_eq!(lossy.ticket_states(&old, later).await, [waiting(1), waiting(2)], "{name}");
        assert_eq!(lossy.store.active_lines().await.unwrap(), [concert()], "{name}");
    }
}

#[tokio::test]
async fn a_reset_and_a_removal_survive_a_complete_loss() {
    for lossy in LossyStore::both().await {
        let name = lossy.name;
        let before = lossy.join(&users(3), START).await;
        lossy.store.reset(&concert(), START + 1).await.unwrap();
        let after = lossy.join(&[user("new")], START + 2).await;
        let opera = item("opera");
        lossy.store.put_item(&change("opera", Policy::default()), START).await.unwrap();
        let first = lossy.publish().await;
        assert!(lossy.store.remove_item(&opera, START + 3).await.unwrap());
        let second = lossy.publish().await;
        assert_eq!(second.len(), 1, "{name}: only the removal");

        lossy.lose_everything().await;
        let later = START + 60_000;
        // The topic still has older records.
        lossy.restore(&[first, second].concat(), later).await;
        assert_eq!(lossy.store.item(&opera).await.unwrap(), None, "{name}");
        assert_eq!(
            lossy.ticket_states(&before, later).await,
            [TicketState::Restarted; 3],
            "{name}"
        );
        assert_eq!(lossy.ticket_states(&after, later).await, [waiting(1)], "{name}");
    }
}

#[tokio::test]
async fn product_updates_wait_until_the_settings_are_restored() {
    for lossy in LossyStore::both().await {
        let name = lossy.name;
        lossy.store.set_paused(&concert(), true, START).await.unwrap();
        let published = lossy.publish().await;
        lossy.lose_everything().await;
        let update = |version, stock, offset| ItemUpdate {
            kind: ItemUpdateKind::Upsert(ItemChange {
                version: Some(version),
                stock,
                policy: None,
                ..change("concert", Policy::default())
            }),
            position: LogPosition { offset, at: START },
        };
        let removal = ItemUpdate {
            kind: ItemUpdateKind::Remove { id: item("opera"), version: Some(1) },
            position: LogPosition { offset: 2, at: START },
        };
        let updates = [update(5, 9, 1), removal];
        let held = lossy.store.apply_item_updates(&updates, START + 9).await.unwrap();
        assert_eq!(held, [ItemUpdateOutcome::Held; 2], "{name}");
        assert_eq!(lossy.store.item(&concert()).await.unwrap(), None, "{name}");

        lossy.restore(&published, START + 10).await;
        settings_are_restored(&*lossy.store).await;
        let applied = lossy.store.apply_item_updates(&updates, START + 11).await.unwrap();
        assert_eq!(applied, [ItemUpdateOutcome::Updated, ItemUpdateOutcome::NotFound], "{name}");
        let restored = lossy.store.item(&concert()).await.unwrap().unwrap();
        assert!(restored.paused && restored.stock == 9, "{name}");
    }
}

#[tokio::test]
async fn an_update_that_sells_an_item_out_is_published_with_its_settings() {
    for lossy in LossyStore::both().await {
        let name = lossy.name;
        lossy.publish().await;
        settings_are_restored(&*lossy.store).await;
        for (version, stock, is_published) in [(1, 500, false), (2, 0, true), (3, 7, true)] {
            let change = ItemChange {
                version: Some(version),
                stock,
                policy: None,
                ..change("concert", Policy::default())
            };
            let kind = ItemUpdateKind::Upsert(change);
            let position = LogPosition { offset: version, at: START };
            let update = ItemUpdate { kind, position };
            lossy.store.apply_item_updates(&[update], START + version).await.unwrap();
            let published = lossy.publish().await;
            assert_eq!(!published.is_empty(), is_published, "{name}: version {version}");
            let stocks: Vec<_> =
                published.iter().map(|one| one.item.as_ref().unwrap().stock).collect();
            assert!(stocks.iter().all(|published| *published == stock), "{name}: {stocks:?}");
        }
    }
}

#[tokio::test]
async fn a_lobby_continues_near_its_last_numbers_and_its_draw_waits_for_the_users() {
    for lossy in LossyStore::both().await {
        let name = lossy.name;
        let epoch = lossy.store.begin_term(1).await.unwrap();
        lossy.plan_draw().await;
        let old = lossy.join(&users(30), START + 1_000).await;
        let planned = lossy.store.item(&concert()).await.unwrap().unwrap().control_version;
        let early = planned + CHECKPOINT_INTERVAL_MS - 1;
        assert!(!lossy.store.checkpoint_control(epoch, &concert(), early).await.unwrap(), "{name}");
        let due = planned + CHECKPOINT_INTERVAL_MS;
        assert!(lossy.store.checkpoint_control(epoch, &concert(), due).await.unwrap(), "{name}");
        let later = due + CHECKPOINT_INTERVAL_MS;
        let moved = lossy.store.checkpoint_control(epoch, &concert(), later).await.unwrap();
        assert!(!moved, "{name}: no number was issued since");
        let published = lossy.publish().await;

        lossy.lose_everything().await;
        let loss = START + 90_000;
        lossy.restore(&published, loss).await;
        let epoch = lossy.store.begin_term(loss).await.unwrap();
        // Users 1 to 24 poll; 0 and 25 to 29 do not yet.
        lossy.ticket_states(&old[1..25], loss + 1_000).await;
        let new = lossy.join(&[user("new")], loss + 1_000).await;
        let gap = new[0].1.0 - old[29].1.0;
        // A second loss before the next record issues none of these numbers again.
        assert!((1 << 20..2 << 20).contains(&gap), "{name}: {gap}");

        assert!(!lossy.draw(epoch, START + 100_000).await, "{name}: the line recovers");
        let over = loss + 1_000 + RECOVERY_HOLD_MS;
        assert!(!lossy.draw(epoch, over - 1).await, "{name}");
        assert!(lossy.draw(epoch, over).await, "{name}");
        let cohort = lossy.cohort().await;
        assert_eq!(cohort.first(), old[0].1, "{name}: also users who were late take part");
        let others = numbers(&old[1..25]).into_iter().chain(numbers(&new));
        assert!(others.into_iter().all(|number| cohort.contains(number)), "{name}");

        // Half of the cohort is admitted before the others reclaim their numbers.
        for second in 0..12 {
            lossy.admit(epoch, 1, over + second * 1_000).await;
        }
        let admitted = lossy.admitted().await;
        let present = [&old[1..25], &new].concat();
        assert_eq!(admitted, drawn_order(&cohort, &present)[..12], "{name}");
        let late = [&old[..1], &old[25..]].concat();
        lossy.ticket_states(&late, over + 20_000).await;
        let waiting: Vec<_> = [present, late].concat();
        let left = waiting.into_iter().filter(|(_, number)| !admitted.contains(number));
        let expected: Vec<_> = left.collect();
        let order = lossy.admit_all(epoch, over + 21_000).await;
        assert_eq!(order[12..], drawn_order(&cohort, &expected), "{name}");
    }
}

#[tokio::test]
async fn a_loss_after_the_draw_keeps_cohort_seed_and_order() {
    for lossy in LossyStore::both().await {
        let name = lossy.name;
        let epoch = lossy.store.begin_term(1).await.unwrap();
        lossy.plan_draw().await;
        let old = lossy.join(&users(40), START + 1_000).await;
        assert!(lossy.draw(epoch, START + 100_000).await, "{name}");
        let drawn = lossy.store.item(&concert()).await.unwrap().unwrap().draw;
        let cohort = lossy.cohort().await;
        let published = lossy.publish().await;

        lossy.lose_everything().await;
        let loss = START + 101_000;
        lossy.restore(&published, loss).await;
        let epoch = lossy.store.begin_term(loss).await.unwrap();
        assert_eq!(lossy.store.item(&concert()).await.unwrap().unwrap().draw, drawn, "{name}");
        let new = lossy.join(&[user("new")], loss).await;
        // A number that left the lobby before the cohort was fixed must not be served before it.
        let earlier = [(user("earlier"), Number(old[0].1.0 - 1))];
        assert_eq!(lossy.ticket_states(&earlier, loss).await, [TicketState::Restarted], "{name}");
        let mut polls = old.clone();
        polls.reverse();
        lossy.ticket_states(&polls, loss + 1_000).await;
        assert_eq!(lossy.admit(epoch, 1, loss + 2_000).await, 0, "{name}: the line recovers");
        let order = lossy.admit_all(epoch, loss + 1_000 + RECOVERY_HOLD_MS).await;
        let expected = [drawn_order(&cohort, &old), numbers(&new)].concat();
        assert_eq!(order, expected, "{name}");
    }
}

#[tokio::test]
async fn a_replica_without_the_newest_settings_gets_them_back() {
    for mut lossy in LossyStore::both().await {
        let name = lossy.name;
        let epoch = lossy.store.begin_term(1).await.unwrap();
        lossy.plan_draw().await;
        let old = lossy.join(&users(10), START + 1_000).await;
        lossy.stop_replication().await;
        let lost = lossy.join(&users(20)[10..], START + 1_000).await;
        assert!(lossy.draw(epoch, START + 100_000).await, "{name}");
        let drawn = lossy.store.item(&concert()).await.unwrap().unwrap();
        let cohort = lossy.cohort().await;
        let published = lossy.publish().await;

        lossy.fail_over().await;
        assert!(lossy.store.item(&concert()).await.unwrap().unwrap().opened_at.is_none(), "{name}");
        let loss = START + 101_000;
        let epoch = lossy.store.begin_term(loss).await.unwrap();
        lossy.restore(&published, loss).await;
        let after = lossy.store.item(&concert()).await.unwrap().unwrap();
        assert_eq!((&after.draw, after.opened_at), (&drawn.draw, drawn.opened_at), "{name}");
        assert_eq!(after.hold_new_until, loss + RECOVERY_HOLD_MS, "{name}");
        assert_eq!(
            lossy.publish().await.len(),
            1,
            "{name}: the topic may end with an older record"
        );
        let all = [old, lost].concat();
        lossy.ticket_states(&all, loss + 1_000).await;
        let order = lossy.admit_all(epoch, loss + 1_000 + RECOVERY_HOLD_MS).await;
        assert_eq!(order, drawn_order(&cohort, &all), "{name}");
    }
}

#[tokio::test]
async fn settings_of_an_operator_after_the_loss_are_newer_than_the_record() {
    for lossy in LossyStore::both().await {
        let name = lossy.name;
        lossy.store.set_paused(&concert(), true, START).await.unwrap();
        let published = lossy.publish().await;
        lossy.lose_everything().await;
        lossy.open(START + 1_000).await;
        assert!(
            !lossy.store.restore_control(&published[0], START + 2_000).await.unwrap(),
            "{name}"
        );
        assert!(!lossy.store.item(&concert()).await.unwrap().unwrap().paused, "{name}");
    }
}

#[tokio::test]
async fn an_item_that_is_created_at_the_start_of_a_process_gets_its_settings_back() {
    for lossy in LossyStore::both().await {
        let name = lossy.name;
        lossy.store.set_paused(&concert(), true, START).await.unwrap();
        let published = lossy.publish().await;
        lossy.lose_everything().await;
        let seed = ItemChange { version: Some(0), ..change("concert", Policy::default()) };
        lossy.store.put_item(&seed, START + 1_000).await.unwrap();
        assert_eq!(
            lossy.store.item(&concert()).await.unwrap().unwrap().control_version,
            1,
            "{name}"
        );
        lossy.restore(&published, START + 2_000).await;
        assert!(lossy.store.item(&concert()).await.unwrap().unwrap().paused, "{name}");
    }
}
