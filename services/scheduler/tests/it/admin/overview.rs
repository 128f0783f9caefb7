//! The data of the console: overview, one line over time, and processes.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use daegi_domain::line_rules::line_state;
use daegi_domain::{EndReason, Heartbeat, Lane, LineState, Settings, Ticket};
use daegi_scheduler::Ticker;
use daegi_store::{AdminStore, AdmissionStore, ChangeCursor, LaneJoin, TicketStore};
use serde_json::{Value, json};

use super::harness::{AdminHarness, ITEM, QUOTA};
use crate::harness::{self, START, item, user};

async fn join(admin: &AdminHarness, id: &str, count: usize) {
    let settings = admin.store.settings().await.unwrap();
    let users: Vec<_> = (0..count).map(|nth| user(&format!("{id}-{nth}"))).collect();
    for users in users.chunks(500) {
        admin.store.join(&item(id), users, &settings, START).await.unwrap();
    }
}

fn ids(overview: &Value) -> Vec<&str> {
    let lines = overview["lines"].as_array().unwrap().iter();
    lines.map(|line| line["itemId"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn lines_are_searched_sorted_and_paged() {
    let admin = AdminHarness::open().await;
    for (id, count) in [("match", 3), ("opera", 9), ("ballet", 5)] {
        harness::put(&*admin.store, id, 50, None).await;
        join(&admin, id, count).await;
    }
    admin.store.set_paused(&item("opera"), true, 0).await.unwrap();
    let overview = admin.ok(200, "GET", "/overview", "").await;
    assert_eq!(ids(&overview), ["opera", "ballet", "match", "concert"], "longest line first");
    assert_eq!((&overview["matching"], &overview["totals"]["lines"]), (&json!(4), &json!(4)));
    assert_eq!(
        (&overview["totals"]["waiting"], &overview["totals"]["paused"]),
        (&json!(17), &json!(1))
    );
    assert_eq!((&overview["tokenCountToMove"], &overview["tickMs"]), (&json!(10), &json!(1000)));
    let part = admin.ok(200, "GET", "/overview?sort=name&offset=1&limit=2", "").await;
    assert_eq!(part["matching"], 4, "every page has the total");
    assert_eq!(ids(&part), ["concert", "match"], "all have one name, so by id");
    let found = admin.ok(200, "GET", "/overview?search=BALL", "").await;
    assert_eq!(ids(&found), ["ballet"]);
    let paused = admin.ok(200, "GET", "/overview?state=PAUSED", "").await;
    assert_eq!((ids(&paused), &paused["lines"][0]["waitingCount"]), (vec!["opera"], &json!(9)));
    for bad in ["?sort=age", "?state=open", "?limit=-1", "?serach=x"] {
        admin.refused(400, "INVALID_REQUEST", ("GET", &format!("/overview{bad}"), "")).await;
    }
}

#[tokio::test]
async fn a_thousand_lines_are_one_response() {
    let admin = AdminHarness::open().await;
    for nth in 0..1000 {
        harness::put(&*admin.store, &format!("line-{nth:04}"), 10, None).await;
    }
    join(&admin, "line-0777", 2000).await;
    let overview = admin.ok(200, "GET", "/overview", "").await;
    assert_eq!((overview["totals"]["lines"].as_u64(), ids(&overview).len()), (Some(1001), 50));
    assert_eq!(ids(&overview)[0], "line-0777");
}

/// An operator's change is in the next response; changes by others are there a moment later.
#[tokio::test(start_paused = true)]
async fn pollers_do_not_wait_for_the_next_snapshot() {
    let admin = AdminHarness::open().await;
    let waiting = async || {
        let overview = admin.ok(200, "GET", "/overview", "").await;
        (overview["totals"]["waiting"].clone(), overview["tokenCountToMove"].clone())
    };
    assert_eq!(waiting().await, (json!(0), json!(10)));
    join(&admin, "concert", 3).await;
    assert_eq!(waiting().await, (json!(0), json!(10)), "a fresh snapshot is shared");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(waiting().await, (json!(0), json!(10)), "the previous one, immediately");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(waiting().await, (json!(3), json!(10)), "the next was loaded in the background");
    admin.ok(200, "PUT", QUOTA, r#"{"tokenCountToMove":4}"#).await;
    assert_eq!(waiting().await, (json!(3), json!(4)), "an operator sees their change");
    join(&admin, "concert", 5).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(waiting().await, (json!(5), json!(4)), "nothing older than the limit is returned");
}

#[tokio::test]
async fn rate_and_wait_are_known_once_a_line_was_sampled() {
    let admin = AdminHarness::open().await;
    join(&admin, "concert", 50).await;
    let line = "/waiting-item/concert/line";
    let before = admin.ok(200, "GET", line, "").await;
    assert_eq!((&before["admittedPerSecond"], &before["etaSeconds"]), (&json!(null), &json!(null)));
    admin.monitor.sample().await.unwrap();
    let epoch = admin.store.begin_term(START).await.unwrap();
    admin.store.admit(epoch, &item("concert"), 10, 0, 100, START).await.unwrap();
    admin.clock.advance(Duration::from_secs(5));
    let now = admin.ok(200, "GET", line, "").await;
    assert_eq!(now["admittedPerSecond"], 2.0);
    // 40 users wait, and the quota is 10 per second.
    assert!((4..=10).contains(&now["etaSeconds"].as_u64().unwrap()), "{now}");
    let people = &now["people"];
    assert_eq!((&people["waiting"], &people["entered"]), (&json!(40), &json!(10)));
    assert_eq!((&people["frontier"], &people["tail"]), (&json!(10), &json!(50)));
    assert_eq!(
        (&now["item"]["itemId"], &now["item"]["lineState"]),
        (&json!("concert"), &json!("OPEN"))
    );
}

#[tokio::test]
async fn a_line_shows_the_figures_of_each_lane() {
    let admin = AdminHarness::open().await;
    let line = "/waiting-item/concert/line";
    assert_eq!(admin.ok(200, "GET", line, "").await["lanes"], json!([]), "no lanes");
    let lanes =
        r#"{"lanes":[{"name":"vip","first":true},{"name":"members","weight":30}],"maxActive":3}"#;
    admin.ok(200, "PATCH", "/waiting-item/concert/policy", lanes).await;
    join(&admin, "concert", 4).await;
    let (concert, member) =
        (item("concert"), [LaneJoin { user: user("member"), invitation: None }]);
    let members = Lane::numbered(2).unwrap();
    let settings = Settings { token_count_to_move: 10, tick_ms: 1000 };
    admin.store.join_lane(&concert, members, &member, &settings, START).await.unwrap();
    let epoch = admin.store.begin_term(START).await.unwrap();
    admin.store.admit(epoch, &concert, 2, 0, 100, START).await.unwrap();
    let shown = admin.ok(200, "GET", line, "").await;
    let figures = |lane: &Value| {
        ["name", "weight", "first", "waiting", "entered", "admitted"]
            .map(|field| lane[field].clone())
    };
    let lanes: Vec<_> = shown["lanes"].as_array().unwrap().iter().map(figures).collect();
    let standard = [json!("standard"), json!(70), json!(false), json!(3), json!(1), json!(1)];
    let vip = [json!("vip"), json!(0), json!(true), json!(0), json!(0), json!(0)];
    let members = [json!("members"), json!(30), json!(false), json!(0), json!(1), json!(1)];
    assert_eq!(lanes, [standard, vip, members]);
    let people = &shown["people"];
    assert_eq!((&people["waiting"], &people["entered"]), (&json!(3), &json!(2)), "the sums");
    let policy = "/waiting-item/concert/policy";
    let refused =
        admin.ok(409, "PATCH", policy, r#"{"lanes":[{"name":"vip","first":true}]}"#).await;
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains(r#"the lane "members" of concert has tickets"#), "{detail}");
}

#[tokio::test]
async fn a_line_is_sampled_until_it_is_empty_and_its_last_state_is_kept() {
    let admin = AdminHarness::open().await;
    join(&admin, "concert", 1).await;
    let epoch = admin.store.begin_term(START).await.unwrap();
    let history = "/waiting-item/concert/history";
    assert_eq!(admin.ok(200, "GET", history, "").await["at"], json!([]), "no sample yet");
    admin.monitor.sample().await.unwrap();
    admin.store.admit(epoch, &item("concert"), 1, 0, 100, START).await.unwrap();
    let number = daegi_domain::Number(daegi_domain::Number::base_at(START).0 + 1);
    let ticket = Ticket::new(item("concert"), user("concert-0"), number);
    let done = admin.store.complete(&ticket, EndReason::Completed, START).await;
    assert!(done.unwrap().is_ended());
    admin.store.expire(epoch, &ticket.item, Lane::STANDARD, START).await.unwrap();
    admin.clock.advance(Duration::from_secs(5));
    for _ in 0..3 {
        admin.monitor.sample().await.unwrap();
        admin.clock.advance(Duration::from_secs(5));
    }
    let kept = admin.ok(200, "GET", history, "").await;
    assert_eq!(kept["at"], json!([START, START + 5000]), "an empty line is not sampled for ever");
    assert_eq!((&kept["waiting"], &kept["completed"]), (&json!([1, 0]), &json!([0, 1])));
    admin.refused(404, "ITEM_NOT_FOUND", ("GET", "/waiting-item/ghost/history", "")).await;
    admin.refused(404, "ITEM_NOT_FOUND", ("GET", "/waiting-item/ghost/line", "")).await;
}

#[tokio::test]
async fn every_process_with_a_recent_heartbeat_is_listed() {
    let admin = AdminHarness::open().await;
    admin.monitor.send_heartbeat().await.unwrap();
    let lag = [("item.changed".to_owned(), Some(7)), ("order.closed".to_owned(), None)].into();
    let said = serde_json::to_string(&Heartbeat::Consumer { lag }).unwrap();
    admin.store.put_heartbeat("consumer-1", &said, START).await.unwrap();
    admin.store.put_heartbeat("from-the-future", "{\"role\":\"oracle\"}", START).await.unwrap();
    let overview = admin.ok(200, "GET", "/overview", "").await;
    let schedulers = overview["schedulers"].as_array().unwrap();
    assert_eq!(schedulers.len(), 1);
    assert_eq!(
        (&schedulers[0]["replica"], &schedulers[0]["leading"]),
        (&overview["replica"], &json!(false))
    );
    let lag = json!({"item.changed": 7, "order.closed": null});
    assert_eq!(overview["consumers"][0]["lag"], lag);
    assert_eq!(overview["consumers"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn every_change_is_in_the_audit_log_with_who_made_it() {
    let admin = AdminHarness::open().await;
    let request =
        Request::put("/internal/admin/v1/waiting-queue/token-count-to-move?tokenCountToMove=3")
            .header("authorization", format!("Bearer {}", super::harness::TOKEN))
            .header("x-operator", "%EA%B9%80 Kim%0A");
    admin.send(request.body(Body::empty()).unwrap()).await;
    admin.ok(200, "PATCH", "/waiting-item/concert/policy", r#"{"maxActive":5}"#).await;
    admin.ok(200, "POST", "/waiting-item/concert/pause", "").await;
    join(&admin, "concert", 4).await;
    admin.ok(200, "POST", "/waiting-item/concert/reset", "").await;
    let update = r#"{"itemName":"A concert","remainCount":7,"waitingQueueEnabled":true}"#;
    admin.ok(200, "POST", "/waiting-item/concert/manually", update).await;
    admin
        .refused(400, "INVALID_REQUEST", ("PATCH", "/waiting-item/concert/policy", r#"{"x":1}"#))
        .await;
    let log = admin.ok(200, "GET", "/audit", "").await;
    let entries = log["entries"].as_array().unwrap();
    let changes: Vec<_> =
        entries.iter().map(|one| (&one["action"], &one["from"], &one["to"])).collect();
    let wanted = [
        (&json!("set by hand"), &json!({"remainCount": 100}), &json!({"remainCount": 7})),
        (&json!("reset"), &json!({"waitingCount": 4}), &json!({"waitingCount": 0})),
        (&json!("pause"), &json!({"paused": false}), &json!({"paused": true})),
        (&json!("set policy"), &json!({"maxActive": null}), &json!({"maxActive": 5})),
        (&json!("set quota"), &json!({"tokenCountToMove": 10}), &json!({"tokenCountToMove": 3})),
    ];
    assert_eq!(changes, wanted, "newest first, what differs, and nothing that was refused");
    assert_eq!(
        (&entries[4]["operator"], &entries[3]["operator"]),
        (&json!("김 Kim"), &json!(null))
    );
    assert_eq!((&entries[3]["itemId"], &entries[4]["itemId"]), (&json!("concert"), &json!(null)));
    let of_item = admin.ok(200, "GET", "/audit?itemId=concert&limit=3", "").await;
    assert_eq!(of_item["entries"].as_array().unwrap().as_slice(), &entries[..3]);
}

/// A store that went on with a replica holds numbers above the line's base, so that pods send
/// RECOVERING. The admin API and the tick must say the same.
#[tokio::test]
async fn a_line_held_above_its_base_recovers_for_operators_as_it_does_for_visitors() {
    let store = harness::memory(10);
    harness::put(&*store, "concert", 100, None).await;
    store.restore(Some(store.image()));
    let (id, kim) = (item("concert"), user("kim"));
    let settings = store.settings().await.unwrap();
    store.join(&id, &[kim], &settings, START).await.unwrap();
    let line = store.snapshot(&id, Lane::STANDARD, ChangeCursor::default()).await.unwrap().unwrap();
    let above = line.front_is_above_base();
    let seen_by_pods = line_state(&line.item, above, &settings, START);
    assert_eq!(seen_by_pods, LineState::Recovering);

    let admin = AdminHarness::with_store(store.clone());
    let item = admin.ok(200, "GET", ITEM, "").await;
    let list = admin.ok(200, "GET", "/waiting-item", "").await;
    let overview = admin.ok(200, "GET", "/overview", "").await;
    let now = admin.ok(200, "GET", "/waiting-item/concert/line", "").await;
    for state in [
        &item["lineState"],
        &list["items"][0]["lineState"],
        &overview["lines"][0]["lineState"],
        &now["item"]["lineState"],
    ] {
        assert_eq!(state, &json!("RECOVERING"));
    }
    assert_eq!(overview["totals"]["recovering"], 1);

    let epoch = store.begin_term(0).await.unwrap();
    let mut ticker = Ticker::new(store, epoch, harness::OUTBOX_MAX);
    assert_eq!(ticker.tick(START).await.unwrap().recovering, 1);
}
