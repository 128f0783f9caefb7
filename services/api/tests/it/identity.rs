//! Signed identities: who may join, and as whom.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use daegi_domain::{LaneName, LanePolicy, Policy};
use daegi_runtime::config::{IdentityConfig, JwksLocation};
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::harness::{Harness, NOW, TestResponse, line, request, ticket};

const VECTORS: &str = include_str!("../../../../sdk/vectors/identity.json");

/// An api that asks for identities, with the keys and assertions of the shared vectors.
struct Identified {
    harness: Harness,
    vectors: Value,
    _keys: NamedTempFile,
}

impl Identified {
    async fn start() -> Self {
        let vectors: Value = serde_json::from_str(VECTORS).unwrap();
        let keys = NamedTempFile::new().unwrap();
        std::fs::write(keys.path(), vectors["keySets"]["first"].to_string()).unwrap();
        let text = |name: &str| vectors[name].as_str().unwrap().to_owned();
        let config = IdentityConfig {
            jwks: JwksLocation::File(keys.path().to_owned()),
            issuer: text("issuer"),
            audience: text("audience"),
            claim: "sub".into(),
        };
        let harness = Harness::with("concert", |deps| deps.identity = Some(config)).await;
        let at = vectors["cases"][0]["nowMs"].as_u64().unwrap();
        harness.clock.advance(Duration::from_millis(at - NOW));
        Self { harness, vectors, _keys: keys }
    }

    fn assertion(&self, case: &str) -> &str {
        let cases = self.vectors["cases"].as_array().unwrap();
        let case = cases.iter().find(|one| one["name"] == case).unwrap();
        case["assertion"].as_str().unwrap()
    }

    async fn join(&self, headers: &[(&str, &str)]) -> TestResponse {
        self.harness.call(request(Method::POST, &line("concert"), headers, "")).await
    }

    async fn join_as(&self, case: &str) -> TestResponse {
        self.join(&[("daegi-identity", self.assertion(case))]).await
    }
}

fn token(response: &TestResponse) -> String {
    response.json()["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_valid_identity_joins_as_its_user_and_joins_again_as_the_same() {
    let api = Identified::start().await;
    let first = api.join_as("ES256").await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text);
    assert_eq!(first.json()["userId"], "kim");
    let named = [("daegi-identity", api.assertion("RS256")), ("user-id", "kim")];
    let again = api.join(&named).await;
    assert_eq!((again.status, token(&again)), (StatusCode::OK, token(&first)));
    assert_eq!(api.join_as("another user").await.json()["userId"], "lee");
    api.harness.end().await;
}

#[tokio::test]
async fn no_client_takes_the_place_of_another_user() {
    let api = Identified::start().await;
    let held = token(&api.join_as("ES256").await);
    let missing = api.join(&[("user-id", "kim")]).await;
    missing.assert_problem(401, "INVALID_IDENTITY");
    assert!(missing.json()["detail"].as_str().unwrap().contains("daegi-identity"));
    assert!(!missing.header("www-authenticate").is_empty());
    let lee = api.assertion("another user");
    let as_kim = api.join(&[("user-id", "kim"), ("daegi-identity", lee)]).await;
    as_kim.assert_problem(403, "TOKEN_MISMATCH");
    // Not even with the token: it is enough to poll and to leave, and not to join.
    let bearer = format!("Bearer {held}");
    let by_token = api.join(&[("user-id", "kim"), ("authorization", &bearer)]).await;
    by_token.assert_problem(401, "INVALID_IDENTITY");
    let body = request(
        Method::POST,
        &line("concert"),
        &[("content-type", "application/json"), ("daegi-identity", lee)],
        r#"{"userId":"kim"}"#,
    );
    api.harness.call(body).await.assert_problem(403, "TOKEN_MISMATCH");
    let two = [("daegi-identity", lee), ("daegi-identity", api.assertion("ES256"))];
    api.join(&two).await.assert_problem(400, "INVALID_REQUEST");
    let polled = api.harness.get(&ticket("concert", &held)).await.json();
    assert_eq!((&polled["userId"], &polled["position"]), (&"kim".into(), &1.into()));
    api.harness.end().await;
}

#[tokio::test]
async fn identities_of_others_and_forged_ones_are_refused_and_nothing_is_written() {
    let api = Identified::start().await;
    let all = api.vectors["cases"].as_array().unwrap();
    let bad = all.iter().filter(|case| {
        let is_sent = !case["assertion"].as_str().unwrap().is_empty();
        case["keys"] == "first"
            && case["claim"] == "sub"
            && case["expect"]["error"].is_string()
            && is_sent
    });
    let mut count = 0;
    for case in bad {
        let refused = api.join(&[("daegi-identity", case["assertion"].as_str().unwrap())]).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", case["name"]);
        refused.assert_problem(401, "INVALID_IDENTITY");
        count += 1;
    }
    assert!(count > 25, "{count}");
    let line = api.harness.get(&line("concert")).await.json();
    assert_eq!(line["waitingCount"], 0);
    api.harness.end().await;
}

#[tokio::test]
async fn the_lane_of_an_identity_is_joined_where_the_line_has_it() {
    let api = Identified::start().await;
    let plain = api.join_as("a lane").await.json();
    assert_eq!(plain["lane"], Value::Null, "the line has no such lane");
    let members =
        LanePolicy { name: LaneName::parse("members").unwrap(), weight: 30, first: false };
    let policy = Policy { lanes: vec![members], ..Policy::default() };
    api.harness.put("play", 1000, true, Some(policy)).await;
    let headers = [("daegi-identity", api.assertion("a lane"))];
    let joined = api.harness.call(request(Method::POST, &line("play"), &headers, "")).await;
    assert_eq!(joined.json()["lane"], "members", "{}", joined.text);
    let headers = [("daegi-identity", api.assertion("another user"))];
    let standard = api.harness.call(request(Method::POST, &line("play"), &headers, "")).await;
    assert_eq!(standard.json()["lane"], Value::Null);
    api.harness.end().await;
}

#[tokio::test]
async fn the_waiting_page_sends_the_identity_in_a_cookie_of_its_site_only() {
    let api = Identified::start().await;
    let cookie = format!("theme=dark; daegi-identity={}", api.assertion("ES256"));
    let from =
        |site: &'static str| [("cookie", cookie.clone()), ("sec-fetch-site", site.to_owned())];
    let page = |headers: [(&'static str, String); 2]| {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        request(Method::POST, "/wait/concert", &headers, "")
    };
    let joined = api.harness.call(page(from("same-origin"))).await;
    assert_eq!((joined.status.as_u16(), joined.header("location")), (303, "/wait/concert"));
    assert!(joined.header("set-cookie").starts_with("daegi-ticket=kim-concert-"));
    api.harness.call(page(from("cross-site"))).await.assert_problem(400, "INVALID_REQUEST");
    let other_site = from("cross-site");
    let headers: Vec<_> = other_site.iter().map(|(name, value)| (*name, value.as_str())).collect();
    api.join(&headers).await.assert_problem(401, "INVALID_IDENTITY");
    let anonymous =
        api.harness.call(request(Method::POST, "/wait/concert?return=/cart", &[], "")).await;
    let location = "/wait/concert?refused=INVALID_IDENTITY&return=/cart";
    assert_eq!(anonymous.header("location"), location);
    assert!(api.harness.get(location).await.text.contains("Please sign in first"));
    api.harness.end().await;
}
