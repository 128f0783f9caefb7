//! Tokens and passes are verified by the api, the order service and another library.

use jwt_compact::alg::Ed25519;
use jwt_compact::jwk::JsonWebKey;
use jwt_compact::{Algorithm, AlgorithmExt, TimeOptions, Token, UntrustedToken};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::harness::DaegiHarness;

#[tokio::test(flavor = "multi_thread")]
async fn forged_tokens_and_those_of_another_item_are_refused() {
    for harness in DaegiHarness::each().await {
        harness.stock("concert", 10).await;
        harness.stock("drop-1", 10).await;
        let ticket = harness.ticket("concert", "kim-a").await;
        let token = ticket["token"].as_str().unwrap();
        let other = harness.ticket("drop-1", "kim-a").await["token"].as_str().unwrap().to_owned();

        let refused = |status: StatusCode, code: &str, response: (StatusCode, Value)| {
            assert_eq!(response.0, status, "{}: {}", harness.name, response.1);
            assert_eq!(response.1["code"], code, "{}", harness.name);
        };
        let last = token.chars().last().unwrap();
        let flipped = char::from(last as u8 ^ 1);
        let changed = format!("{}{flipped}", &token[..token.len() - 1]);
        for forged in [changed.as_str(), "kim-a-concert-7f3c0000-0000-8000-8000-000000000000", "x"]
        {
            refused(
                StatusCode::UNAUTHORIZED,
                "INVALID_TOKEN",
                poll_as(&harness, forged, None).await,
            );
        }
        refused(StatusCode::FORBIDDEN, "TOKEN_MISMATCH", poll_as(&harness, &other, None).await);
        refused(
            StatusCode::FORBIDDEN,
            "TOKEN_MISMATCH",
            poll_as(&harness, token, Some("lee")).await,
        );
        assert_eq!(
            poll_as(&harness, token, Some("kim-a")).await.0,
            StatusCode::OK,
            "{}",
            harness.name
        );
        harness.close().await;
    }
}

async fn poll_as(harness: &DaegiHarness, token: &str, user: Option<&str>) -> (StatusCode, Value) {
    let mut request = harness.http.get(format!("{}/{token}", harness.line("concert")));
    if let Some(user) = user {
        request = request.header("user-id", user);
    }
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_verifies_offline_with_another_library_until_it_expires() {
    for harness in DaegiHarness::each().await {
        harness.stock("concert", 10).await;
        let token = harness.ticket("concert", "kim").await["token"].as_str().unwrap().to_owned();
        harness.quota(1).await;
        harness.until_entered("concert", 1).await;
        let ticket = harness.poll_ok("concert", &token).await;
        assert_eq!((&ticket["status"], &ticket["position"]), (&json!("ENTERABLE"), &json!(0)));

        let jwks = format!("{}/.well-known/jwks.json", harness.public);
        let jwks: Value = harness.http.get(jwks).send().await.unwrap().json().await.unwrap();
        let jwk: JsonWebKey<'_> = serde_json::from_value(jwks["keys"][0].clone()).unwrap();
        let key = <Ed25519 as Algorithm>::VerifyingKey::try_from(&jwk).unwrap();
        let pass = UntrustedToken::new(ticket["pass"].as_str().unwrap()).unwrap();
        let pass: Token<Value> = Ed25519.validator(&key).validate(&pass).unwrap();
        let claims = pass.claims();
        assert_eq!(
            (&claims.custom["sub"], &claims.custom["aud"]),
            (&json!("kim"), &json!("concert"))
        );
        let end = claims.expiration.unwrap();
        let valid_at = |clock| {
            let clock = TimeOptions::new(Default::default(), move || clock);
            claims.validate_expiration(&clock).is_ok()
        };
        let second = std::time::Duration::from_secs(1);
        assert!(valid_at(end - second) && !valid_at(end + second), "{}", harness.name);

        verified_and_completed(&harness, &token, ticket["pass"].as_str().unwrap()).await;
        harness.close().await;
    }
}

/// Calls verify, complete, and complete again, as an order service does.
async fn verified_and_completed(harness: &DaegiHarness, token: &str, pass: &str) {
    let call = |name: &str, body: Value| {
        let url = format!("{}/internal/v1/item/concert/entry/{name}", harness.internal);
        let request = harness.http.post(url).json(&body);
        async { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    for body in [json!({ "token": token }), json!({ "pass": pass })] {
        let verified = call("verify", body).await;
        assert_eq!((&verified["valid"], &verified["userId"]), (&json!(true), &json!("kim")));
    }
    assert_eq!(call("complete", json!({ "token": token })).await, json!({ "released": true }));
    assert_eq!(call("complete", json!({ "token": token })).await, json!({ "released": false }));
    let revoked = call("verify", json!({ "pass": pass })).await;
    assert_eq!(revoked, json!({ "valid": false, "reason": "COMPLETED" }), "{}", harness.name);
    assert_eq!(harness.poll_ok("concert", token).await["status"], "COMPLETED", "{}", harness.name);
}
