//! What is genuine is told from what is not, here and at the order service.

use jwt_compact::alg::Ed25519;
use jwt_compact::jwk::JsonWebKey;
use jwt_compact::{Algorithm, AlgorithmExt, TimeOptions, Token, UntrustedToken};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::room::Room;

#[tokio::test(flavor = "multi_thread")]
async fn forged_tokens_and_those_of_another_item_are_refused() {
    for room in Room::each().await {
        room.stock("concert", 10).await;
        room.stock("drop-1", 10).await;
        let ticket = room.ticket("concert", "kim-a").await;
        let token = ticket["token"].as_str().unwrap();
        let other = room.ticket("drop-1", "kim-a").await["token"].as_str().unwrap().to_owned();

        let refused = |status: StatusCode, code: &str, answer: (StatusCode, Value)| {
            assert_eq!(answer.0, status, "{}: {}", room.name, answer.1);
            assert_eq!(answer.1["code"], code, "{}", room.name);
        };
        let last = token.chars().last().unwrap();
        let flipped = char::from(last as u8 ^ 1);
        let changed = format!("{}{flipped}", &token[..token.len() - 1]);
        for forged in [changed.as_str(), "kim-a-concert-7f3c0000-0000-8000-8000-000000000000", "x"]
        {
            refused(StatusCode::UNAUTHORIZED, "INVALID_TOKEN", asked(&room, forged, None).await);
        }
        refused(StatusCode::FORBIDDEN, "TOKEN_MISMATCH", asked(&room, &other, None).await);
        refused(StatusCode::FORBIDDEN, "TOKEN_MISMATCH", asked(&room, token, Some("lee")).await);
        assert_eq!(asked(&room, token, Some("kim-a")).await.0, StatusCode::OK, "{}", room.name);
        room.close().await;
    }
}

async fn asked(room: &Room, token: &str, user: Option<&str>) -> (StatusCode, Value) {
    let mut request = room.http.get(format!("{}/{token}", room.line("concert")));
    if let Some(user) = user {
        request = request.header("user-id", user);
    }
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_verifies_offline_with_another_library_until_it_expires() {
    for room in Room::each().await {
        room.stock("concert", 10).await;
        let token = room.ticket("concert", "kim").await["token"].as_str().unwrap().to_owned();
        room.quota(1).await;
        room.until_entered("concert", 1).await;
        let ticket = room.poll_ok("concert", &token).await;
        assert_eq!((&ticket["status"], &ticket["position"]), (&json!("ENTERABLE"), &json!(0)));

        let jwks = format!("{}/.well-known/jwks.json", room.public);
        let jwks: Value = room.http.get(jwks).send().await.unwrap().json().await.unwrap();
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
        assert!(valid_at(end - second) && !valid_at(end + second), "{}", room.name);

        verified_and_completed(&room, &token, ticket["pass"].as_str().unwrap()).await;
        room.close().await;
    }
}

/// The order service's way: verify, complete, complete again.
async fn verified_and_completed(room: &Room, token: &str, pass: &str) {
    let ask = |call: &str, body: Value| {
        let url = format!("{}/internal/v1/item/concert/entry/{call}", room.internal);
        let request = room.http.post(url).json(&body);
        async { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    for body in [json!({ "token": token }), json!({ "pass": pass })] {
        let verified = ask("verify", body).await;
        assert_eq!((&verified["valid"], &verified["userId"]), (&json!(true), &json!("kim")));
    }
    assert_eq!(ask("complete", json!({ "token": token })).await, json!({ "released": true }));
    assert_eq!(ask("complete", json!({ "token": token })).await, json!({ "released": false }));
    let revoked = ask("verify", json!({ "pass": pass })).await;
    assert_eq!(revoked, json!({ "valid": false, "reason": "COMPLETED" }), "{}", room.name);
    assert_eq!(room.poll_ok("concert", token).await["status"], "COMPLETED", "{}", room.name);
}
