//! How lanes share the admissions of a line.

use daegi_domain::{ItemId, Lane, LaneName, LanePolicy, Policy};
use daegi_store::{JoinOutcome, LaneJoin, SharedStore};
use daegi_testkit::seeded_rng;

use crate::support::{SETTINGS, START, both, open_concert, user};

/// The weights of the standard lane and of two others.
const WEIGHTS: [u64; 3] = [70, 20, 10];

const ADMISSIONS: u64 = 10_000;

/// Joins per call.
const BATCH: u64 = 500;

/// Tickets that every lane has at least before a round: more than a round admits.
const MIN_WAITING: u64 = 400;

fn policy() -> Policy {
    let lane = |(name, weight): (&str, u64)| LanePolicy {
        name: LaneName::parse(name).unwrap(),
        weight: weight as u32,
        first: false,
    };
    let lanes = ["members", "press"].into_iter().zip(WEIGHTS.into_iter().skip(1));
    Policy { grace_seconds: 0, lanes: lanes.map(lane).collect(), ..Policy::default() }
}

/// Joins users to a lane until it has enough tickets.
async fn fill(store: &SharedStore, id: &ItemId, lane: usize, now: u64) {
    loop {
        let counts = store.counts(std::slice::from_ref(id)).await.unwrap().remove(0);
        let of_lane = counts.lanes[lane];
        if of_lane.waiting >= MIN_WAITING {
            return;
        }
        let first = of_lane.totals.joined;
        let join =
            |number| LaneJoin { user: user(&format!("user-{lane}-{number}")), invitation: None };
        let joins: Vec<_> = (first..first + BATCH).map(join).collect();
        let lane = Lane::numbered(lane).unwrap();
        let joined = store.join_lane(id, lane, &joins, &SETTINGS, now).await.unwrap();
        assert!(joined.iter().all(|joined| matches!(joined, JoinOutcome::Ticket { .. })));
    }
}

/// How many tickets of each lane were admitted.
async fn admitted(store: &SharedStore, id: &ItemId) -> Vec<u64> {
    let counts = store.counts(std::slice::from_ref(id)).await.unwrap().remove(0);
    counts.lanes.iter().map(|lane| lane.totals.admitted).collect()
}

#[tokio::test]
async fn lanes_under_load_share_admissions_by_their_weights_in_rounds_of_any_size() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let mut rng = seeded_rng("rounds");
        let (id, epoch) = open_concert(&store, policy()).await;
        let (mut now, mut total) = (START, 0);
        while total < ADMISSIONS {
            now += 1_000;
            for lane in 0..WEIGHTS.len() {
                fill(&store, &id, lane, now).await;
            }
            // Small rounds are rounded most, and large ones take several calls.
            let mut quota = if rng.bool() { rng.u32(1..10) } else { rng.u32(10..400) };
            while quota > 0 {
                let call = store.admit(epoch, &id, quota, 0, 1_000_000, now);
                quota = call.await.unwrap().remaining;
            }
            let by_lane = admitted(&store, &id).await;
            total = by_lane.iter().sum();
            for (admitted, weight) in by_lane.iter().zip(WEIGHTS) {
                // Within two tickets at any time, so that no lane starves.
                let share = total * weight / 100;
                assert!(admitted.abs_diff(share) <= 2, "{name}: {by_lane:?} of {total}");
            }
        }
        let by_lane = admitted(&store, &id).await;
        for (admitted, weight) in by_lane.iter().zip(WEIGHTS) {
            let share = total * weight / 100;
            assert!(admitted.abs_diff(share) * 50 <= share, "{name}: {by_lane:?} of {total}");
        }
    }
}

#[tokio::test]
async fn a_lane_that_comes_back_waits_for_its_turn_and_no_other_starves() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, policy()).await;
        let mut now = START;
        // Only the standard lane has tickets, and takes all admissions.
        fill(&store, &id, 0, now).await;
        store.admit(epoch, &id, 100, 0, 1_000_000, now).await.unwrap();
        assert_eq!(admitted(&store, &id).await, [100, 0, 0], "{name}");
        // From now on all lanes share; the past gives none of them an advantage.
        for lane in 0..WEIGHTS.len() {
            fill(&store, &id, lane, now).await;
        }
        for round in 1..=100 {
            now += 1_000;
            store.admit(epoch, &id, 1, 0, 1_000_000, now).await.unwrap();
            let since = admitted(&store, &id).await;
            let since = [since[0] - 100, since[1], since[2]];
            for (admitted, weight) in since.into_iter().zip(WEIGHTS) {
                let share = round * weight / 100;
                assert!(admitted.abs_diff(share) <= 2, "{name}: {since:?} of {round}");
            }
        }
    }
}
