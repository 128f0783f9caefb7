//! Responses to refused browsers and other clients.

use axum::http::Response;
use daegi_guard::Refusal;
use serde_json::{Map, Value, json};

const PAGE: &str = "https://wait.example/wait/concert";

pub(super) fn all() -> Value {
    let accepts = ["application/json", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", ""];
    let pairs =
        Refusal::ALL.into_iter().flat_map(|refusal| accepts.map(|accept| (refusal, accept)));
    pairs.map(|(refusal, accept)| described(refusal, accept)).collect()
}

fn described(refusal: Refusal, accept: &str) -> Value {
    let response: Response<String> = refusal.to_response(accept, PAGE);
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap().to_owned();
    let headers: Map<String, Value> = response
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), text(value).into()))
        .collect();
    json!({
        "code": refusal.code(), "accept": accept, "waitingPage": PAGE,
        "status": response.status().as_u16(), "headers": headers,
        "body": serde_json::from_str::<Value>(response.body()).ok(),
    })
}
