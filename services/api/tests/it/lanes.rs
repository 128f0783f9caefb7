//! Lanes: what users with and without an invitation code see.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use daegi_domain::{Invitation, LaneName, LanePolicy, Policy, lane};
use daegi_testkit::eventually;
use serde_json::{Value, json};

use crate::harness::{Harness, NOW, TEST_TIMEOUT, TestResponse, id, line, request};

const HOUR_MS: u64 = 3_600_000;

fn members() -> LanePolicy {
    LanePolicy { name: LaneName::parse("members").unwrap(), weight: 30, first: false }
}

/// An api with items whose lines have a lane for members.
async fn with_members(items: &[&str]) -> Harness {
    let harness = Harness::with_item("other").await;
    for item in items {
        let policy = Policy { lanes: vec![members()], ..Policy::default() };
        harness.put(item, 1000, true, Some(policy)).await;
    }
    harness
}

/// Returns a code for the members of an item.
fn code(harness: &Harness, item: &str, invitation: u64, uses: u32) -> String {
    let (lanes, name) = ([members()], members().name);
    let invitation = Invitation { id: invitation, uses, expires_at: NOW + HOUR_MS };
    let lane = lane::find(&lanes, &name).unwrap();
    harness.keys.invitation_code(&id(item), (lane, &name), &invitation)
}

async fn join_with(harness: &Harness, item: &str, user: &str, code: &str) -> TestResponse {
    let body = json!({ "code": code }).to_string();
    let headers = [("user-id", user), ("content-type", "application/json")];
    harness.call(request(Method::POST, &line(item), &headers, &body)).await
}

/// The fields of a ticket that describe its place.
fn place(ticket: &Value) -> (Option<&str>, u64, u64) {
    let count = |field: &str| ticket[field].as_u64().unwrap();
    (ticket["lane"].as_str(), count("position"), count("waitingCount"))
}

#[tokio::test(start_paused = true)]
async fn each_lane_has_its_own_positions_and_the_line_shows_their_shares() {
    let harness = with_members(&["concert"]).await;
    for user in ["kim", "lee", "park"] {
        harness.join("concert", user).await;
    }
    let member = join_with(&harness, "concert", "choi", &code(&harness, "concert", 1, 1)).await;
    assert_eq!(member.status, StatusCode::CREATED);
    assert_eq!(place(&member.json()), (Some("members"), 1, 1));
    let again = harness.join("concert", "choi").await;
    assert_eq!(again.status, StatusCode::OK, "a code is not needed again");
    assert_eq!(again.json()["token"], member.json()["token"]);
    let polled = harness.poll("concert", member.json()["token"].as_str().unwrap()).await.json();
    assert_eq!(place(&polled), (Some("members"), 1, 1));
    let standard = harness.join("concert", "jung").await.json();
    assert_eq!(place(&standard), (None, 4, 4));

    let lane = |name: &str, waiting: u64, share: u64| json!({ "name": name, "waitingCount": waiting, "sharePercent": share, "first": false });
    let expected = json!([lane("standard", 4, 70), lane("members", 1, 30)]);
    eventually(TEST_TIMEOUT, "the lanes of the line", async || {
        harness.get(&line("concert")).await.json()["lanes"] == expected
    })
    .await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_code_in_the_header_joins_too_and_must_not_contradict_the_body() {
    let harness = with_members(&["concert"]).await;
    let code = code(&harness, "concert", 1, 1).to_lowercase();
    let join = |body: &'static str| {
        let headers =
            [("user-id", "kim"), ("daegi-code", &*code), ("content-type", "application/json")];
        request(Method::POST, &line("concert"), &headers, body)
    };
    harness.call(join(r#"{"code":"OTHER"}"#)).await.assert_problem(400, "INVALID_REQUEST");
    let joined = harness.call(join("{}")).await;
    assert_eq!(joined.json()["lane"], "members", "{}", joined.text);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_code_moves_a_waiting_user_and_replaces_the_earlier_ticket() {
    let harness = with_members(&["concert"]).await;
    let earlier = harness.token("concert", "kim").await;
    let code = code(&harness, "concert", 1, 1);
    let moved = join_with(&harness, "concert", "kim", &code).await;
    assert_eq!(moved.status, StatusCode::CREATED);
    assert_eq!(place(&moved.json()), (Some("members"), 1, 1));
    harness.until_status("concert", &earlier, "REPLACED").await;
    let same = join_with(&harness, "concert", "kim", &code).await;
    assert_eq!((same.status, &same.json()["token"]), (StatusCode::OK, &moved.json()["token"]));
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn codes_that_are_used_expired_misspelt_or_of_another_item_change_nothing() {
    let harness = with_members(&["concert", "play"]).await;
    let used = code(&harness, "concert", 1, 1);
    join_with(&harness, "concert", "choi", &used).await;
    let of_play = code(&harness, "play", 2, 1);
    let unused = code(&harness, "concert", 3, 1);
    let waiting = harness.token("concert", "kim").await;
    for refused in [&*used, &of_play, "초대", "", &unused[1..]] {
        join_with(&harness, "concert", "kim", refused).await.assert_problem(403, "INVALID_CODE");
        join_with(&harness, "concert", "new", refused).await.assert_problem(403, "INVALID_CODE");
    }
    harness.clock.advance(Duration::from_millis(HOUR_MS));
    join_with(&harness, "concert", "kim", &unused).await.assert_problem(403, "INVALID_CODE");
    let kept = harness.poll("concert", &waiting).await.json();
    assert_eq!(place(&kept), (None, 1, 1), "{kept}");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_code_admits_no_more_users_than_it_has_uses_when_they_join_together() {
    let harness = with_members(&["concert"]).await;
    let code = code(&harness, "concert", 1, 2);
    let users: Vec<_> = (0..20).map(|n| format!("user-{n}")).collect();
    let joins = users.iter().map(|user| join_with(&harness, "concert", user, &code));
    let replies = futures_util::future::join_all(joins).await;
    let joined = replies.iter().filter(|reply| reply.status == StatusCode::CREATED).count();
    let refused = replies.iter().filter(|reply| reply.status == StatusCode::FORBIDDEN).count();
    assert_eq!((joined, refused), (2, 18));
    harness.end().await;
}
