//! The history of lines and their visits, on both stores, and what they cost Redis.

use daegi_domain::history::{DAY_MS, HOUR_MS, MINUTE_MS};
use daegi_domain::visit::{Browser, Device, Dimension, MAX_LABELS, Total, VISIT_MINUTES_MS};
use daegi_domain::{
    HourLog, ItemId, Millis, MinuteFigures, Policy, VisitCounts, VisitLabel, VisitStep,
};
use daegi_store::{Error, HistoryStore, HourAppend, RedisStore, SharedStore};
use daegi_testkit::Redis;

use crate::support::{PARTITIONS, SETTINGS, START, both, item, open_concert};

/// 30 days.
const KEPT: Millis = 30 * DAY_MS;
const HOUR: u64 = START / HOUR_MS;

fn visits(counts: &[(VisitLabel, u64)]) -> VisitCounts {
    counts.iter().copied().collect()
}

async fn minute_visits(store: &SharedStore, id: &ItemId) -> Vec<(u64, VisitCounts)> {
    let minute = START / MINUTE_MS;
    store.visits(id, VisitStep::Minute, minute - 60..=minute + 60).await.unwrap()
}

#[tokio::test]
async fn a_log_grows_only_from_the_length_that_the_leader_knows() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, epoch) = open_concert(&store, Policy::default()).await;
        let append = async |hour, length, bytes: &[u8]| {
            let append = HourAppend { hour, length, bytes };
            store.append_hour(epoch, &id, append, KEPT).await.unwrap()
        };
        assert_eq!(append(HOUR, 0, b"\x01head").await, None, "{name}");
        assert_eq!(append(HOUR, 5, b"\x00\xff").await, None, "{name}");
        let stored = b"\x01head\x00\xff";
        assert_eq!(append(HOUR, 5, b"\x00\xff").await.unwrap(), stored, "{name}: a repeated call");
        assert_eq!(append(HOUR + 1, 9, b"x").await.unwrap(), b"", "{name}: there is no log");
        assert_eq!(append(HOUR + 25, 0, b"next day").await, None, "{name}");
        let logs = store.hours(&id, HOUR - 100..=HOUR + 100).await.unwrap();
        assert_eq!(logs, [(HOUR, stored.to_vec()), (HOUR + 25, b"next day".to_vec())], "{name}");
        assert_eq!(store.hours(&id, HOUR + 1..=HOUR + 24).await.unwrap(), [], "{name}");
        assert_eq!(store.hours(&item("other"), 0..=HOUR).await.unwrap(), [], "{name}");
    }
}

#[tokio::test]
async fn a_stale_leader_records_nothing() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let (id, stale) = open_concert(&store, Policy::default()).await;
        store.begin_term(0).await.unwrap();
        let append = HourAppend { hour: HOUR, length: 0, bytes: b"x" };
        let refused = store.append_hour(stale, &id, append, KEPT).await;
        assert!(matches!(refused, Err(Error::StaleEpoch(_))), "{name}: {refused:?}");
        assert_eq!(store.hours(&id, HOUR..=HOUR).await.unwrap(), [], "{name}");
    }
}

#[tokio::test]
async fn visits_of_all_pods_are_added_by_minute_and_by_hour() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let id = item("concert");
        let one = visits(&[(Total::Visits.into(), 200), (Device::Phone.into(), 150)]);
        let other = visits(&[(Total::Visits.into(), 100), (Browser::Whale.into(), 1_000_000)]);
        store.add_visits(&id, &one, KEPT, START).await.unwrap();
        store.add_visits(&id, &other, KEPT, START).await.unwrap();
        store.add_visits(&id, &other, KEPT, START + MINUTE_MS).await.unwrap();
        store.add_visits(&id, &VisitCounts::default(), KEPT, START).await.unwrap();
        let mut first = one.clone();
        first.merge(&other);
        let minute = START / MINUTE_MS;
        let expected = [(minute, first.clone()), (minute + 1, other.clone())];
        assert_eq!(minute_visits(&store, &id).await, expected, "{name}");
        let hours = store.visits(&id, VisitStep::Hour, HOUR..=HOUR).await.unwrap();
        first.merge(&other);
        assert_eq!(hours, [(HOUR, first)], "{name}");
    }
}

#[tokio::test]
async fn countries_and_languages_beyond_the_limit_are_other() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let id = item("concert");
        let country = |n: u8| VisitLabel::country(Some(&[b'a' + n / 26, b'a' + n % 26]));
        for n in 0..200 {
            let counts = visits(&[(country(n), 1), (Total::Visits.into(), 1)]);
            store.add_visits(&id, &counts, KEPT, START).await.unwrap();
        }
        let last = visits(&[(country(0), 5), (Device::Bot.into(), 1)]);
        store.add_visits(&id, &last, KEPT, START).await.unwrap();
        let (_, counts) = minute_visits(&store, &id).await.remove(0);
        let kept = MAX_LABELS as u64 - 1;
        assert_eq!(counts.of(Dimension::Country).count() as u64, kept + 1, "{name}");
        assert_eq!(counts.get(Dimension::Country.other()), 200 - kept, "{name}");
        let known = (counts.get(country(0)), counts.get(Total::Visits), counts.get(Device::Bot));
        assert_eq!(known, (6, 200, 1), "{name}");
    }
}

/// The bytes that this server uses for its keys.
async fn used_by_keys(server: &Redis) -> u64 {
    let keys: Vec<String> = server.command(&["KEYS", "*"]).await.unwrap();
    let mut all = 0;
    for key in keys {
        let usage: u64 = server.command(&["MEMORY", "USAGE", &key, "SAMPLES", "0"]).await.unwrap();
        all += usage;
    }
    all
}

async fn redis_store(server: &Redis) -> RedisStore {
    RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap()
}

/// Every bound of docs/PRIVACY.md and docs/PERFORMANCE.md is checked here.
#[tokio::test]
async fn a_million_visits_cost_redis_less_than_64_kilobytes() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let (store, id) = (redis_store(&server).await, item("concert"));
    let before = used_by_keys(&server).await;
    // 60 minutes of 16,667 visits, from four pods that write six times per minute.
    let pod = visits(&[
        (Total::Visits.into(), 695),
        (Total::PageViews.into(), 900),
        (Total::Reconnects.into(), 20),
        (Total::Leaves.into(), 11),
        (Device::Phone.into(), 500),
        (Device::Desktop.into(), 195),
        (Browser::Chrome.into(), 400),
        (Browser::Safari.into(), 200),
        (Browser::Samsung.into(), 95),
    ]);
    let text = |n: u8| [b'a' + n / 26, b'a' + n % 26];
    for minute in 0..60 {
        for flush in 0..24_u8 {
            let mut counts = pod.clone();
            for n in 0..30 {
                counts.add(VisitLabel::country(Some(&text(n))), 20);
                counts.add(VisitLabel::language(Some(&text(n + flush))), 20);
                counts.add(VisitLabel::page_load(u32::from(n) * 300), 20);
                counts.add(VisitLabel::time_to_leave(u64::from(n) * 300_000), 1);
            }
            let now = START / HOUR_MS * HOUR_MS + minute * MINUTE_MS;
            store.add_visits(&id, &counts, KEPT, now).await.unwrap();
        }
    }
    let used = used_by_keys(&server).await - before;
    let hours = store.visits(&id, VisitStep::Hour, HOUR..=HOUR).await.unwrap();
    assert_eq!(hours[0].1.get(Total::Visits), 1_000_800);
    assert!(used < 64 * 1024, "{used} bytes");
    for key in ["visits", "visits-by-hour"] {
        let found: Vec<String> = server.command(&["KEYS", &format!("*:{key}:*")]).await.unwrap();
        let ttl: u64 = server.command(&["PTTL", &found[0]]).await.unwrap();
        assert!(
            found.len() == 1 && ttl > 0 && ttl <= KEPT.max(VISIT_MINUTES_MS),
            "{found:?} {ttl}"
        );
    }
}

#[tokio::test]
async fn thirty_days_of_a_line_that_is_never_quiet_cost_redis_less_than_a_megabyte() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let (store, id) = (std::sync::Arc::new(redis_store(&server).await), item("concert"));
    let shared: SharedStore = store.clone();
    let (_, epoch) = open_concert(&shared, Policy::default()).await;
    let before = used_by_keys(&server).await;
    let mut figures = MinuteFigures::default();
    // Two days, minute by minute; every day costs the same.
    let days = 2;
    for hour in HOUR..HOUR + days * 24 {
        let (mut log, mut last) = (HourLog::header(&figures), None);
        for minute in 0..60 {
            let after = MinuteFigures {
                waiting: 50_000 + u64::from(minute) * 700 % 9_000,
                entered: 300 + u64::from(minute) % 7,
                joined: figures.joined + 6_000,
                admitted: figures.admitted + 5_500,
                completed: figures.completed + 5_000,
                expired: figures.expired + 70,
                abandoned: figures.abandoned + 400,
                left: figures.left + 100,
            };
            log.extend(HourLog::record((last, &figures), minute, &after));
            (figures, last) = (after, Some(minute));
        }
        let append = HourAppend { hour, length: 0, bytes: &log };
        assert_eq!(store.append_hour(epoch, &id, append, KEPT).await.unwrap(), None);
    }
    let used = (used_by_keys(&server).await - before) / days * 30;
    assert!(used < 1024 * 1024, "{used} bytes");
    let found: Vec<String> = server.command(&["KEYS", "*:minutes:*"]).await.unwrap();
    let ttl: u64 = server.command(&["PTTL", &found[0]]).await.unwrap();
    assert!(ttl > KEPT && ttl <= KEPT + HOUR_MS, "{ttl}");
}

/// Tests that run again on Sentinel and Cluster.
pub(crate) const ALL_TOPOLOGIES: &[fn()] = &[
    a_log_grows_only_from_the_length_that_the_leader_knows,
    a_stale_leader_records_nothing,
    visits_of_all_pods_are_added_by_minute_and_by_hour,
];
