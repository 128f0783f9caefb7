//! A short run of the whole fleet, simulated schedules, and the mutants.

mod mutants;
mod simulation;

use std::fs::File;
use std::io::BufReader;

use daegi_chaos::runner::{Options, RedisUnderTest, run};
use daegi_chaos::{History, checker};
use daegi_testkit::{durable_redis_or_skip, kafka_or_skip};

/// Traps a leader, kills one, and kills Redis within seconds.
const SEED: u64 = 12;
const USERS: usize = 250;

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_under_faults_violates_no_rule() {
    let (Some(redis), Some(kafka)) = (durable_redis_or_skip().await, kafka_or_skip().await) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_owned();
    let options = Options { seed: SEED, seconds: 15, people: USERS, out };
    let path = run(&options, RedisUnderTest::One(redis), kafka).await.unwrap();
    let history = History::read(BufReader::new(File::open(path).unwrap())).unwrap();
    let verdict = checker::judge(&history).unwrap();
    eprintln!("{verdict}");
    if !verdict.is_clean() {
        // Keeps history and logs for analysis.
        panic!("kept in {}: {verdict}", dir.keep().display());
    }
    // The run must contain faults and admissions.
    assert!(history.terms.len() > 1 && history.faults.len() > 3, "too few faults");
    assert!(history.events.len() > USERS, "too few admissions");
}
