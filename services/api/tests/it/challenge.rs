//! Challenges at the join: who is challenged, and which solutions are accepted.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use daegi_api::ApiLimits;
use daegi_domain::challenge::solve;
use daegi_domain::{
    Challenge, ChallengePolicy, Invitation, LaneName, LanePolicy, Policy, TicketKeys, UserId, lane,
};
use daegi_runtime::config::Rates;
use daegi_runtime::http::Peer;
use daegi_runtime::rate_limit::Rate;
use serde_json::json;

use crate::harness::{Harness, NOW, TestResponse, id, line, request};

const CAMPUS: &str = "203.0.113.9";
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
    // A challenge that no pod has issued, for a time that a program chose.
    let kim = UserId::parse("kim").unwrap();
    let own = Challenge { issued_at: NOW + 60_000, difficulty: 1 };
    let own = TicketKeys::generate().challenge(&id("concert"), &kim, own);
    let precomputed = solve(&own, 1).unwrap();
    let before = harness.store.total_calls();
    let foreign = "is not of this item and user";
    for (user, solution, detail) in [
        ("lee", &*of_kim, foreign),
        ("kim", &of_play, foreign),
        ("kim", &precomputed, foreign),
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

/// The way for users whose browser runs no scripts.
#[tokio::test(start_paused = true)]
async fn a_valid_invitation_code_replaces_a_solution() {
    let harness = with_challenge(&["concert"]).await;
    let (lanes, name) = ([members()], members().name);
    let invitation = Invitation { id: 1, uses: 1, expires_at: NOW + 3_600_000 };
    let lane = lane::find(&lanes, &name).unwrap();
    let code = harness.keys.invitation_code(&id("concert"), (lane, &name), &invitation);
    let before = harness.store.total_calls();
    let other = harness.keys.invitation_code(&id("play"), (lane, &name), &invitation);
    for invalid in ["AB12", &other] {
        let headers = [("user-id", "kim"), ("daegi-code", invalid)];
        let refused = send(&harness, "concert", &headers, "").await;
        refused.assert_problem(403, "INVALID_CODE");
    }
    assert!(harness.store.total_calls() <= before + 1, "one load of the line, no join");
    let headers = [("user-id", "kim"), ("daegi-code", &*code)];
    let joined = send(&harness, "concert", &headers, "").await;
    assert_eq!(joined.json()["lane"], "members", "{}", joined.text);
    let headers = [("user-id", "lee"), ("daegi-code", &*code)];
    send(&harness, "concert", &headers, "").await.assert_problem(403, "INVALID_CODE");
    challenge(&harness.join("concert", "lee").await);
    harness.end().await;
}

/// Sends a join from an address.
async fn join_from(harness: &Harness, address: &str, user: &str, solution: &str) -> TestResponse {
    let headers = [("user-id", user), ("daegi-challenge", solution)];
    let headers = if solution.is_empty() { &headers[..1] } else { &headers[..] };
    let mut request = request(Method::POST, &line("concert"), headers, "");
    request.extensions_mut().insert(Peer(SocketAddr::new(address.parse().unwrap(), 4711)));
    harness.call(request).await
}

#[tokio::test(start_paused = true)]
async fn the_challenges_of_a_busy_source_get_harder_up_to_a_bound_and_easier_again() {
    let change = |limits: &mut ApiLimits| limits.challenge_share = 10;
    let harness = Harness::with_challenges("plain", change, Rates::default(), None).await;
    let policy = Policy { challenge: ChallengePolicy::Pow, ..Policy::default() };
    harness.put("concert", 1000, true, Some(policy)).await;
    let mut difficulties = Vec::new();
    for user in 0..100 {
        let refused = join_from(&harness, CAMPUS, &format!("u{user}"), "").await;
        difficulties.push(challenge(&refused).1);
    }
    let bits = |bits| difficulties.iter().filter(|difficulty| **difficulty == bits).count();
    assert!(difficulties.is_sorted());
    assert_eq!([8, 9, 10, 11].map(bits), [10, 10, 20, 60]);
    let other = join_from(&harness, "203.0.113.10", "kim", "").await;
    assert_eq!(challenge(&other).1, 8, "another source");

    // The signed difficulty applies, so that an easier challenge stays valid.
    let (text, _) = challenge(&join_from(&harness, "203.0.113.10", "lee", "").await);
    let joined = join_from(&harness, CAMPUS, "lee", &solve(&text, 8).unwrap()).await;
    assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.text);
    tokio::time::advance(Duration::from_secs(600)).await;
    assert_eq!(challenge(&join_from(&harness, CAMPUS, "kim", "").await).1, 8);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_over_its_limit_is_challenged_first_and_refused_last() {
    let rates = Rates { source_joins: Rate::parse("1:10").unwrap(), ..Rates::default() };
    let harness = Harness::with_challenges("plain", |_| (), rates, None).await;
    let policy = Policy { challenge: ChallengePolicy::Pow, ..Policy::default() };
    harness.put("concert", 1000, true, Some(policy)).await;
    let mut difficulties = Vec::new();
    for user in 0..89 {
        let refused = join_from(&harness, CAMPUS, &format!("u{user}"), "").await;
        difficulties.push(challenge(&refused).1);
    }
    assert!(difficulties[..9].iter().all(|bits| *bits == 8), "{difficulties:?}");
    assert!(difficulties[10..].iter().all(|bits| *bits == 11), "{difficulties:?}");
    let (text, bits) = challenge(&join_from(&harness, CAMPUS, "kim", "").await);
    let before = harness.store.total_calls();
    let refused = join_from(&harness, CAMPUS, "kim", &solve(&text, bits).unwrap()).await;
    refused.assert_problem(429, "RATE_LIMITED");
    assert_eq!(harness.store.total_calls(), before);
    tokio::time::advance(Duration::from_secs(1)).await;
    let joined = join_from(&harness, CAMPUS, "kim", &solve(&text, bits).unwrap()).await;
    assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.text);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_line_without_challenges_refuses_a_source_over_its_limit() {
    let rates = Rates { source_joins: Rate::parse("1:2").unwrap(), ..Rates::default() };
    let harness = Harness::with_challenges("concert", |_| (), rates, None).await;
    let mut statuses = Vec::new();
    for user in ["a", "b", "c"] {
        statuses.push(join_from(&harness, CAMPUS, user, "").await.status.as_u16());
    }
    assert_eq!(statuses, [201, 201, 429]);
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
