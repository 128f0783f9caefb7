//! Challenges at the join: who is challenged, and which solutions are accepted.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use daegi_domain::challenge::solve;
use daegi_domain::{
    Challenge, ChallengePolicy, Invitation, LaneName, LanePolicy, Policy, UserId, lane,
};
use serde_json::json;

use crate::harness::{Harness, NOW, TestResponse, id, line, request};

const EXPIRY: Duration = Duration::from_millis(Challenge::LIFETIME_MS + 1);

/// An api with items whose lines challenge new users, and the lane of members.
async fn with_challenge(items: &[&str]) -> Harness {
    let harness = Harness::with_item("plain").await;
    for item in items {
        let lanes = vec![members()];
        let policy = Policy { challenge: ChallengePolicy::Pow, lanes, ..Policy::default() };
        harness.put(item, 1000, true, Some(policy)).await;
    }
    harness
}

fn members() -> LanePolicy {
    LanePolicy { name: LaneName::parse("members").unwrap(), weight: 30, first: false }
}

async fn send(harness: &Harness, item: &str, headers: &[(&str, &str)], body: &str) -> TestResponse {
    harness.call(request(Method::POST, &line(item), headers, body)).await
}

/// Joins with a solution in the header.
async fn join_with(harness: &Harness, item: &str, user: &str, solution: &str) -> TestResponse {
    send(harness, item, &[("user-id", user), ("daegi-challenge", solution)], "").await
}

/// Returns the challenge and the difficulty of a refused join.
#[track_caller]
fn challenge(refused: &TestResponse) -> (String, u8) {
    refused.assert_problem(403, "CHALLENGE_REQUIRED");
    let challenge = &refused.json()["challenge"];
    assert_eq!(challenge["kind"], "pow");
    let difficulty = u8::try_from(challenge["difficulty"].as_u64().unwrap()).unwrap();
    (challenge["challenge"].as_str().unwrap().to_owned(), difficulty)
}

/// Returns the solution of the challenge that a user gets.
async fn solution(harness: &Harness, item: &str, user: &str) -> String {
    let (text, difficulty) = challenge(&harness.join(item, user).await);
    assert_eq!(difficulty, 8);
    solve(&text, difficulty).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_new_user_joins_with_a_solved_challenge_only() {
    let harness = with_challenge(&["concert"]).await;
    let before = harness.store.calls("join");
    let solution = solution(&harness, "concert", "kim").await;
    assert_eq!(harness.store.calls("join"), before);
    let joined = join_with(&harness, "concert", "kim", &solution).await;
    assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.text);
    assert_eq!(joined.json()["position"], 1);
    let replayed = join_with(&harness, "concert", "kim", &solution).await;
    assert_eq!(replayed.status, StatusCode::OK, "a replay returns the same ticket");
    assert_eq!(replayed.json()["token"], joined.json()["token"]);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_solution_in_the_body_joins_too_and_must_not_contradict_the_header() {
    let harness = with_challenge(&["concert"]).await;
    let solution = solution(&harness, "concert", "kim").await;
    let headers = [("daegi-challenge", "other"), ("content-type", "application/json")];
    let body = json!({ "userId": "kim", "challenge": solution }).to_string();
    send(&harness, "concert", &headers, &body).await.assert_problem(400, "INVALID_REQUEST");
    let joined = send(&harness, "concert", &headers[1..], &body).await;
    assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.text);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn wrong_foreign_and_expired_solutions_are_refused_without_a_store_call() {
    let harness = with_challenge(&["concert", "play"]).await;
    let of_kim = solution(&harness, "concert", "kim").await;
    let of_play = solution(&harness, "play", "kim").await;
    let text = of_kim.split(':').next().unwrap();
    let wrong = (0..)
        .map(|nonce| format!("{text}:{nonce:x}"))
        .find(|it| {
            let user = UserId::parse("kim").unwrap();
            harness.keys.verify_solution(&id("concert"), &user, it, NOW).is_err()
        })
        .unwrap();
    let before = harness.store.total_calls();
    let foreign = "is not of this item and user";
    for (user, solution, detail) in [
        ("lee", &*of_kim, foreign),
        ("kim", &of_play, foreign),
        ("kim", "", foreign),
        ("kim", text, foreign),
        ("kim", &wrong, "the nonce does not solve"),
    ] {
        let refused = join_with(&harness, "concert", user, solution).await;
        let (fresh, _) = challenge(&refused);
        assert!(refused.json()["detail"].as_str().unwrap().contains(detail), "{}", refused.text);
        assert_eq!(fresh == text, user == "kim", "a challenge of this user at this time");
    }
    assert_eq!(harness.store.total_calls(), before, "no store call");

    // Time passes for challenges, and not for the cached line.
    harness.clock.advance(EXPIRY);
    let refused = join_with(&harness, "concert", "kim", &of_kim).await;
    let (fresh, difficulty) = challenge(&refused);
    assert!(refused.json()["detail"].as_str().unwrap().contains("expired"), "{}", refused.text);
    assert_eq!(harness.store.total_calls(), before, "no store call");
    let solved = solve(&fresh, difficulty).unwrap();
    let joined = join_with(&harness, "concert", "kim", &solved).await;
    assert_eq!(joined.status, StatusCode::CREATED, "the new challenge is valid");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_user_with_a_token_of_this_item_is_not_challenged_again() {
    let harness = with_challenge(&["concert", "play"]).await;
    let solution = solution(&harness, "concert", "kim").await;
    let joined = join_with(&harness, "concert", "kim", &solution).await.json();
    let bearer = format!("Bearer {}", joined["token"].as_str().unwrap());
    let join = async |item: &str, user: &str| {
        send(&harness, item, &[("user-id", user), ("authorization", &bearer)], "").await
    };
    assert_eq!(join("concert", "kim").await.json()["token"], joined["token"]);
    challenge(&join("concert", "lee").await);
    challenge(&join("play", "kim").await);
    challenge(&harness.join("concert", "kim").await);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_invitation_code_works_with_a_solution_and_does_not_replace_it() {
    let harness = with_challenge(&["concert"]).await;
    let (lanes, name) = ([members()], members().name);
    let invitation = Invitation { id: 1, uses: 1, expires_at: NOW + 3_600_000 };
    let lane = lane::find(&lanes, &name).unwrap();
    let code = harness.keys.invitation_code(&id("concert"), (lane, &name), &invitation);
    let headers = [("user-id", "kim"), ("daegi-code", &*code)];
    let (text, difficulty) = challenge(&send(&harness, "concert", &headers, "").await);
    let solution = solve(&text, difficulty).unwrap();
    let headers = [headers[0], headers[1], ("daegi-challenge", &*solution)];
    let joined = send(&harness, "concert", &headers, "").await;
    assert_eq!(joined.json()["lane"], "members", "{}", joined.text);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_line_without_challenges_ignores_solutions() {
    let harness = with_challenge(&["concert"]).await;
    assert_eq!(harness.join("plain", "kim").await.status, StatusCode::CREATED);
    let joined = join_with(&harness, "plain", "lee", "anything").await;
    assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.text);
    harness.end().await;
}
