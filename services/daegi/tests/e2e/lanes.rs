//! Invitation codes over HTTP, on both stores.

use daegi_domain::rfc3339;
use daegi_runtime::Clock;
use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::DaegiHarness;

/// How many codes are used by two users at the same time.
const CODES: usize = 50;

const HOUR_MS: u64 = 3_600_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_two_users_send_together_admits_one() {
    for daegi in DaegiHarness::each().await {
        daegi.stock("concert", 1_000).await;
        let lanes = json!({ "lanes": [{ "name": "members", "weight": 20 }] });
        daegi.admin(Method::PATCH, "waiting-item/concert/policy", lanes).await;
        let expires_at = rfc3339(Clock::system().now_ms() + HOUR_MS);
        let new = json!({
            "lane": "members", "count": CODES, "expiresAt": expires_at
        });
        let made = daegi.admin(Method::POST, "waiting-item/concert/invitations", new).await;
        let codes = made["codes"].as_array().unwrap().iter().map(|code| code.as_str().unwrap());
        let pairs = codes.enumerate().map(async |(pair, code)| {
            let join = async |user: usize| {
                let request = daegi.http.post(daegi.line("concert")).header("daegi-code", code);
                let request = request.header("user-id", format!("user-{pair}-{user}"));
                let response = request.send().await.unwrap();
                (response.status(), response.json::<Value>().await.unwrap())
            };
            join_all([join(0), join(1)]).await
        });
        for mut replies in join_all(pairs).await {
            replies.sort_by_key(|(status, _)| *status);
            let [(joined, ticket), (refused, problem)] = &replies[..] else { unreachable!() };
            assert_eq!(*joined, StatusCode::CREATED, "{}: {ticket}", daegi.name);
            assert_eq!(ticket["lane"], "members", "{}", daegi.name);
            assert_eq!(*refused, StatusCode::FORBIDDEN, "{}: {problem}", daegi.name);
            assert_eq!(problem["code"], "INVALID_CODE", "{}", daegi.name);
        }
        assert_eq!(daegi.counts("concert").await, (CODES as u64, 0), "{}", daegi.name);
        daegi.close().await;
    }
}
