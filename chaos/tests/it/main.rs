//! A short run of everything, and the bugs that are planted to see it fail.

mod bugs;
mod simulation;

use std::fs::File;
use std::io::BufReader;

use daegi_chaos::run::{Options, Servers, run};
use daegi_chaos::{History, check};
use daegi_testkit::{durable_redis_or_loud, kafka_or_loud};

/// Brings a leader that is caught, one that is killed, and a Redis that dies, within seconds.
const SEED: u64 = 12;
const PEOPLE: usize = 250;

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_under_faults_keeps_every_promise() {
    let (Some(redis), Some(kafka)) = (durable_redis_or_loud().await, kafka_or_loud().await) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_owned();
    let options = Options { seed: SEED, seconds: 15, people: PEOPLE, out };
    let path = run(&options, Servers::One(redis), kafka).await.unwrap();
    let history = History::read(BufReader::new(File::open(path).unwrap())).unwrap();
    let verdict = check::judge(&history).unwrap();
    eprintln!("{verdict}");
    if !verdict.is_clean() {
        // What is needed to look into it.
        panic!("kept in {}: {verdict}", dir.keep().display());
    }
    // A verdict on nothing is worth nothing.
    assert!(history.terms.len() > 1 && history.faults.len() > 3, "nothing was broken");
    assert!(history.told.len() > PEOPLE, "hardly anybody was let in");
}
