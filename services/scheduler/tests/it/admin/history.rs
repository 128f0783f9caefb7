//! The stored history of lines and their visitors: what the leader records, and what operators read.

use std::time::Duration;

use daegi_domain::history::{DAY_MS, HOUR_MS, MINUTE_MS};
use daegi_domain::visit::{Access, Browser, Device, Total};
use daegi_domain::{EndReason, Millis, Ticket, VisitCounts, VisitLabel, rfc3339};
use daegi_scheduler::MinuteRecorder;
use daegi_store::{Epoch, JoinOutcome};
use serde_json::{Value, json};

use super::harness::{AdminHarness, ITEM};
use crate::harness::{item, user};

/// The first minute of an hour.
const FIRST: Millis = 1_700_000_000_000 / HOUR_MS * HOUR_MS;
const KEPT: Duration = Duration::from_secs(30 * 86_400);

async fn open() -> (AdminHarness, Epoch) {
    let admin = AdminHarness::open().await;
    admin.clock.set(FIRST);
    let epoch = admin.store.begin_term(0).await.unwrap();
    (admin, epoch)
}

fn recorder(admin: &AdminHarness, epoch: Epoch) -> MinuteRecorder {
    MinuteRecorder::new(admin.store.clone(), epoch, KEPT)
}

/// Joins users; returns their tickets.
async fn join(admin: &AdminHarness, names: &[&str]) -> Vec<Ticket> {
    let users: Vec<_> = names.iter().map(|name| user(name)).collect();
    let (settings, now) = (admin.store.settings().await.unwrap(), admin.clock.now_ms());
    let joined = admin.store.join(&item("concert"), &users, &settings, now).await.unwrap();
    let ticket = |(user, outcome)| match outcome {
        JoinOutcome::Ticket { number, .. } => Ticket::new(item("concert"), user, number),
        JoinOutcome::Refused(refusal) => panic!("refused: {refusal:?}"),
    };
    users.into_iter().zip(joined).map(ticket).collect()
}

/// Ends the minute and records it.
async fn end_minute(admin: &AdminHarness, recorder: &MinuteRecorder) {
    let minute = admin.clock.now_ms() / MINUTE_MS;
    admin.clock.set((minute + 1) * MINUTE_MS);
    recorder.record(minute).await.unwrap();
}

/// The figures from the first minute on.
async fn minutes(admin: &AdminHarness, query: &str) -> Value {
    let from = rfc3339(FIRST);
    admin.ok(200, "GET", &format!("{ITEM}/minutes?from={from}{query}"), "").await
}

#[tokio::test]
async fn minutes_are_recorded_once_and_survive_a_change_of_the_leader() {
    let (admin, epoch) = open().await;
    let first = recorder(&admin, epoch);
    let tickets = join(&admin, &["a", "b", "c"]).await;
    end_minute(&admin, &first).await;
    admin.store.admit(epoch, &item("concert"), 2, 0, 100, admin.clock.now_ms()).await.unwrap();
    end_minute(&admin, &first).await;
    let now = admin.clock.now_ms();
    admin.store.complete(&tickets[0], EndReason::Completed, now).await.unwrap();
    admin.store.leave(&tickets[2], now).await.unwrap();

    // Another leader, which read nothing yet, records the last minute again, and then the next one.
    let epoch = admin.store.begin_term(0).await.unwrap();
    let second = recorder(&admin, epoch);
    second.record(FIRST / MINUTE_MS + 1).await.unwrap();
    let stale = first.record(FIRST / MINUTE_MS + 2).await;
    assert!(matches!(stale, Err(daegi_store::Error::StaleEpoch(_))), "{stale:?}");
    end_minute(&admin, &second).await;
    let shown = minutes(&admin, "").await;
    assert_eq!(shown["stepMinutes"], 1);
    let at = [FIRST, FIRST + MINUTE_MS, FIRST + 2 * MINUTE_MS].map(rfc3339);
    assert_eq!(shown["at"], json!(at));
    for (figure, expected) in [
        ("waiting", [3, 1, 0]),
        ("entered", [0, 2, 1]),
        ("joined", [3, 0, 0]),
        ("admitted", [0, 2, 0]),
        ("completed", [0, 0, 1]),
        ("left", [0, 0, 1]),
        ("expired", [0, 0, 0]),
        ("abandoned", [0, 0, 0]),
    ] {
        assert_eq!(shown[figure], json!(expected), "{figure}");
    }
    // A replica that recorded nothing shows the same.
    let other = AdminHarness::at(admin.store.clone(), admin.clock.now_ms());
    assert_eq!(minutes(&other, "").await, shown);
    other.clock.advance(Duration::from_secs(30));
    assert_eq!(minutes(&other, "").await, shown, "the present minute has not ended");
}

#[tokio::test]
async fn a_quiet_line_shows_zeros_and_an_unrecorded_one_gaps() {
    let (admin, epoch) = open().await;
    let recorder = recorder(&admin, epoch);
    end_minute(&admin, &recorder).await;
    let tickets = join(&admin, &["a"]).await;
    end_minute(&admin, &recorder).await;
    // No leader for two minutes.
    admin.clock.advance(Duration::from_secs(120));
    join(&admin, &["b"]).await;
    end_minute(&admin, &recorder).await;
    for ticket in tickets.iter().chain(&join(&admin, &["b"]).await) {
        admin.store.leave(ticket, admin.clock.now_ms()).await.unwrap();
    }
    end_minute(&admin, &recorder).await;
    admin.clock.advance(Duration::from_secs(120));
    let shown = minutes(&admin, "").await;
    assert_eq!(shown["waiting"], json!([0, 1, null, null, 2, 0, 0, 0]));
    assert_eq!(shown["joined"], json!([0, 1, null, null, 1, 0, 0, 0]));
    assert_eq!(shown["left"], json!([0, 0, null, null, 0, 2, 0, 0]));
    let wide = minutes(&admin, "&step=60").await;
    assert_eq!((&wide["waiting"], &wide["joined"]), (&json!([2]), &json!([2])));
    let (status, headers, csv) = {
        let from = rfc3339(FIRST + MINUTE_MS);
        admin.text(&format!("{ITEM}/minutes?from={from}&format=csv")).await
    };
    assert_eq!(
        (status.as_u16(), &headers["content-type"]),
        (200, &"text/csv; charset=utf-8".parse().unwrap())
    );
    let rows: Vec<_> = csv.lines().collect();
    assert_eq!(rows[0], "at,waiting,entered,joined,admitted,completed,expired,abandoned,left");
    assert_eq!(rows[1], format!("{},1,0,1,0,0,0,0,0", rfc3339(FIRST + MINUTE_MS)));
    assert_eq!(rows[2], format!("{},,,,,,,,", rfc3339(FIRST + 2 * MINUTE_MS)));
}

#[tokio::test]
async fn a_line_that_is_active_within_a_minute_only_is_recorded() {
    let (admin, epoch) = open().await;
    let recorder = recorder(&admin, epoch);
    let tickets = join(&admin, &["a"]).await;
    recorder.note_tick(&[item("concert")]);
    admin.store.leave(&tickets[0], admin.clock.now_ms()).await.unwrap();
    admin.store.expire(epoch, &item("concert"), daegi_domain::Lane::STANDARD, FIRST).await.unwrap();
    assert_eq!(admin.store.active_lines().await.unwrap(), []);
    end_minute(&admin, &recorder).await;
    let shown = minutes(&admin, "").await;
    assert_eq!((&shown["joined"], &shown["left"]), (&json!([1]), &json!([1])));
}

#[tokio::test]
async fn totals_of_a_line_that_was_quiet_for_days_are_not_counted_again() {
    let (admin, epoch) = open().await;
    let tickets = join(&admin, &["a", "b"]).await;
    let first = recorder(&admin, epoch);
    end_minute(&admin, &first).await;
    for ticket in &tickets {
        admin.store.leave(ticket, admin.clock.now_ms()).await.unwrap();
    }
    end_minute(&admin, &first).await;
    admin.clock.advance(Duration::from_millis(9 * DAY_MS));
    join(&admin, &["c"]).await;
    end_minute(&admin, &recorder(&admin, epoch)).await;
    let from = rfc3339(admin.clock.now_ms() - MINUTE_MS);
    let shown = admin.ok(200, "GET", &format!("{ITEM}/minutes?from={from}"), "").await;
    assert_eq!((&shown["joined"], &shown["left"]), (&json!([1]), &json!([0])));
}

#[tokio::test]
async fn periods_that_cannot_be_shown_are_refused() {
    let (admin, _) = open().await;
    for (query, detail) in [
        ("minutes?from=yesterday", "from: "),
        ("minutes?from=2100-01-01T00:00:00Z", "from must be before to"),
        ("minutes?step=0", "step must be from 1 to 1440"),
        ("minutes?step=1&from=2020-01-01T00:00:00Z", "more than 45000 steps"),
        ("minutes?format=xml", ""),
        ("minutes?until=now", ""),
        ("visitors?step=5", "step must be 1 or 60"),
        ("visitors?step=1&from=2020-01-01T00:00:00Z", "visits are kept by minute for 48 h"),
    ] {
        let call = ("GET", &*format!("{ITEM}/{query}"), "");
        let refused = admin.refused(400, "INVALID_REQUEST", call).await;
        assert!(refused.contains(detail), "{query}: {refused}");
    }
    for call in ["minutes", "visitors"] {
        let path = format!("/waiting-item/nothing/{call}");
        admin.refused(404, "ITEM_NOT_FOUND", ("GET", &path, "")).await;
    }
}

#[tokio::test]
async fn visitors_are_shown_as_shares_and_percentiles() {
    let (admin, _) = open().await;
    let counts: VisitCounts = [
        (Total::Visits.into(), 100),
        (Total::PageViews.into(), 130),
        (Total::Reconnects.into(), 7),
        (Total::Leaves.into(), 4),
        (Device::Phone.into(), 75),
        (Device::Desktop.into(), 25),
        (Browser::Samsung.into(), 100),
        (Access::Page.into(), 99),
        (Access::Api.into(), 1),
        (VisitLabel::country(Some(b"KR")), 90),
        (VisitLabel::country(Some(b"T1")), 10),
        (VisitLabel::language(Some(b"ko")), 100),
        (VisitLabel::page_load(400), 50),
        (VisitLabel::page_load(1_800), 50),
        (VisitLabel::time_to_leave(20_000), 4),
    ]
    .into_iter()
    .collect();
    let id = item("concert");
    admin.store.add_visits(&id, &counts, 30 * DAY_MS, FIRST).await.unwrap();
    admin.store.add_visits(&id, &counts, 30 * DAY_MS, FIRST + 3 * MINUTE_MS).await.unwrap();
    admin.clock.set(FIRST + 10 * MINUTE_MS);
    let shown = admin.ok(200, "GET", &format!("{ITEM}/visitors"), "").await;
    assert_eq!(shown["stepMinutes"], 1);
    let totals = ["visits", "pageViews", "reconnects", "leaves"].map(|name| &shown[name]);
    assert_eq!(totals, [&json!(200), &json!(260), &json!(14), &json!(8)]);
    let share = |name: &str, count: u64, share: f64| json!({ "name": name, "count": count, "share": share });
    assert_eq!(shown["device"], json!([share("phone", 150, 0.75), share("desktop", 50, 0.25)]));
    assert_eq!(shown["access"], json!([share("page", 198, 0.99), share("api", 2, 0.01)]));
    assert_eq!(shown["country"], json!([share("KR", 180, 0.9), share("other", 20, 0.1)]));
    assert_eq!(shown["pageLoadMs"], json!({ "count": 200, "p50": 500, "p75": 1750, "p95": 1950 }));
    assert_eq!(shown["steps"].as_array().unwrap().len(), 2);
    assert_eq!(shown["steps"][1]["at"], rfc3339(FIRST + 3 * MINUTE_MS));

    // Three days later, the visits are known by hour.
    admin.clock.advance(Duration::from_millis(3 * DAY_MS));
    let query = format!("from={}", rfc3339(FIRST));
    let later = admin.ok(200, "GET", &format!("{ITEM}/visitors?{query}"), "").await;
    assert_eq!((&later["stepMinutes"], &later["device"]), (&json!(60), &shown["device"]));
    let (_, _, csv) = admin.text(&format!("{ITEM}/visitors?{query}&format=csv")).await;
    let at = rfc3339(FIRST);
    assert!(csv.starts_with("at,dimension,value,count\r\n"), "{csv}");
    for row in ["device,phone,150", "country,other,20", "pageLoadMs,500,100", "total,visits,200"] {
        assert!(csv.contains(&format!("{at},{row}\r\n")), "{row}: {csv}");
    }
}
