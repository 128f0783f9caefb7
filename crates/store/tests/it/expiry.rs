//! Who is let in together expires together, on both stores: in groups, of which some have left.

use daegi_domain::{EndReason, ItemId, Mode, Number, Policy, SeenPage, Settings, UserId};
use daegi_store::{CHUNK, Closing, Epoch, Expiry, Joined, Place, SharedStore, Standing};

use crate::support::{START, both, change, item, user, users};

/// Everybody may enter at once.
const WIDE: Settings = Settings { token_count_to_move: 100_000, tick_ms: 1000 };
/// When those are over who are let in at the start.
const END: u64 = START + 600_000;

async fn open(store: &SharedStore, policy: Policy) -> (ItemId, Epoch) {
    store.put_item(&change("concert", policy), START).await.unwrap();
    (item("concert"), store.begin_term(0).await.unwrap())
}

/// A line in which nobody waits.
async fn open_door(store: &SharedStore) -> (ItemId, Epoch) {
    store.set_settings(Some(WIDE.token_count_to_move), None).await.unwrap();
    open(store, Policy { mode: Mode::Auto, ..Policy::default() }).await
}

/// Lets people in by one step.
async fn enter(store: &SharedStore, id: &ItemId, people: &[UserId], now: u64) -> Vec<Number> {
    let number = |joined: &Joined| match joined {
        Joined::At { number, place: Place::Entered { .. }, .. } => *number,
        other => panic!("not inside: {other:?}"),
    };
    store.join(id, people, &WIDE, now).await.unwrap().iter().map(number).collect()
}

async fn complete(store: &SharedStore, id: &ItemId, who: &UserId, number: Number, now: u64) {
    let closing = store.complete(id, who, number, EndReason::Completed, now).await.unwrap();
    assert_eq!(closing, Closing::Done);
}

fn over(expiry: Expiry) -> (u32, bool) {
    (expiry.expired, expiry.more)
}

#[tokio::test]
async fn a_crowd_expires_a_chunk_at_a_time() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_door(&store).await;
        enter(&store, &id, &users(CHUNK as usize + 50), START).await;
        let expire = async |now| over(store.expire(epoch, &id, now).await.unwrap());
        assert_eq!(expire(END - 1).await, (0, false), "{name}");
        assert_eq!(expire(END).await, (CHUNK, true), "{name}");
        assert_eq!(expire(END).await, (50, false), "{name}");
    }
}

#[tokio::test]
async fn a_group_that_does_not_fit_waits_for_the_next_call() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_door(&store).await;
        let crowd = users(120);
        enter(&store, &id, &crowd[..60], START).await;
        enter(&store, &id, &crowd[60..], START).await;
        let expire = async || over(store.expire(epoch, &id, END).await.unwrap());
        assert_eq!(expire().await, (60, true), "{name}");
        assert_eq!(expire().await, (60, false), "{name}");
    }
}

#[tokio::test]
async fn those_of_a_group_who_have_left_are_passed_over() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_door(&store).await;
        let crowd = users(CHUNK as usize + 50);
        let numbers = enter(&store, &id, &crowd, START).await;
        for (who, number) in crowd.iter().zip(numbers).take(CHUNK as usize) {
            complete(&store, &id, who, number, START).await;
        }
        let expire = async || over(store.expire(epoch, &id, END).await.unwrap());
        assert_eq!(expire().await, (0, true), "{name}");
        assert_eq!(expire().await, (50, false), "{name}");
    }
}

#[tokio::test]
async fn who_is_let_in_anew_has_the_whole_time() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_door(&store).await;
        let (kim, lee) = (user("kim"), user("lee"));
        let numbers = enter(&store, &id, &[kim.clone(), lee], START).await;
        complete(&store, &id, &kim, numbers[0], START + 1).await;
        let again = enter(&store, &id, std::slice::from_ref(&kim), START + 300_000).await[0];
        let expire = async |now| over(store.expire(epoch, &id, now).await.unwrap());
        assert_eq!(expire(END).await, (1, false), "{name}: lee");
        let inside = store.resolve(&id, &[(kim, again)], END).await.unwrap()[0];
        assert!(matches!(inside, Standing::At(Place::Entered { .. })), "{name}: {inside:?}");
        assert_eq!(expire(END + 300_000).await, (1, false), "{name}: kim");
    }
}

#[tokio::test]
async fn who_is_let_in_anew_for_less_time_is_over_earlier_and_once() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_door(&store).await;
        let (kim, lee) = (user("kim"), user("lee"));
        let numbers = enter(&store, &id, &[kim.clone(), lee], START).await;
        complete(&store, &id, &kim, numbers[0], START).await;
        let brief = Policy { mode: Mode::Auto, pass_ttl_seconds: 60, ..Policy::default() };
        let revision = store.item(&id).await.unwrap().unwrap().revision;
        store.set_policy(&id, &brief, revision, START).await.unwrap();
        enter(&store, &id, std::slice::from_ref(&kim), START).await;
        // Both groups with kim are looked at in one call, the later one first met later.
        assert_eq!(over(store.expire(epoch, &id, END).await.unwrap()), (2, false), "{name}");
        assert_eq!(over(store.expire(epoch, &id, END).await.unwrap()), (0, false), "{name}");
        assert_eq!(store.counts(std::slice::from_ref(&id)).await.unwrap()[0].entered, 0, "{name}");
    }
}

/// Numbers begin one behind the beginning of a page of liveness, so these are at the edges of bytes,
/// of chunks and of a page.
const ABSENT: [usize; 10] = [0, 6, 7, 14, 99, 100, 4_094, 8_190, 8_191, 8_199];

#[tokio::test]
async fn of_a_crowd_exactly_those_are_put_aside_who_were_not_seen() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open(&store, Policy::default()).await;
        let crowd = users(8_250);
        for some in crowd.chunks(1_000) {
            store.join(&id, some, &WIDE, START).await.unwrap();
        }
        let later = START + 100_000;
        let number = |index: usize| Number(Number::base_at(START).0 + 1 + index as u64);
        let present = (0..crowd.len()).filter(|index| !ABSENT.contains(index));
        // In two slices, of which neither has seen everybody.
        let (even, odd): (Vec<_>, Vec<_>) = present.partition(|index| index % 2 == 0);
        for (some, when) in [(even, later - 20_000), (odd, later)] {
            let pages = SeenPage::of(some.into_iter().map(number));
            store.mark_seen(&id, &pages, when).await.unwrap();
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
        let asked = ABSENT.map(|index| (crowd[index].clone(), number(index)));
        for standing in store.resolve(&id, &asked, later).await.unwrap() {
            assert!(matches!(standing, Standing::At(Place::Waiting { .. })), "{name}");
        }
    }
}

#[tokio::test]
async fn ends_of_tickets_that_were_never_admitted_are_forgotten_earlier() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        store.put_item(&change("concert", Policy::default()), START).await.unwrap();
        let concert = item("concert");
        // Later than a loss could widen the range of lost numbers that begins with the line.
        let now = START + 2_200_000;
        let all = users(2);
        let joined = store.join(&concert, &all, &WIDE, now).await.unwrap();
        let numbers: Vec<Number> = joined
            .iter()
            .map(|joined| match joined {
                Joined::At { number, .. } => *number,
                Joined::Refused(why) => panic!("{why:?}"),
            })
            .collect();
        let epoch = store.begin_term(now).await.unwrap();
        store.admit(epoch, &concert, 1, 0, 1000, now).await.unwrap();
        for (user, number) in all.iter().zip(&numbers) {
            assert!(store.leave(&concert, user, *number, now).await.unwrap().is_done(), "{name}");
        }
        let standings = async |at| {
            store.expire(epoch, &concert, at).await.unwrap();
            let tickets: Vec<_> = all.iter().cloned().zip(numbers.iter().copied()).collect();
            store.resolve(&concert, &tickets, at).await.unwrap()
        };
        let left = Standing::Ended(EndReason::Left);
        assert_eq!(standings(now + 599_000).await, [left, left], "{name}");
        // What is forgotten ended too long ago to know how.
        let forgotten = Standing::Ended(EndReason::Expired);
        assert_eq!(standings(now + 601_000).await, [left, forgotten], "{name}");
        assert_eq!(standings(now + 3_601_000).await, [forgotten, forgotten], "{name}");
    }
}
