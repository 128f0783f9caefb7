//! Relays that answer, fail, hang and lie.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use daegi_beacon::{QUICKNET_HASH, RelayClient, parse_signature};
use tokio::task::JoinSet;

const ROUND: u64 = 657_413;
const SIGNATURE: &str = "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be\
    41076862b98fad56e91a6b85b89cd97b";

/// A relay that gives one answer to every request until it is dropped.
struct Relay {
    url: String,
    requests: Arc<AtomicU32>,
    _server: JoinSet<std::io::Result<()>>,
}

async fn relay(status: StatusCode, body: String) -> Relay {
    let requests = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&requests);
    let answer = move |Path((chain, round)): Path<(String, u64)>| async move {
        assert_eq!((chain.as_str(), round), (QUICKNET_HASH, ROUND));
        counted.fetch_add(1, Ordering::Relaxed);
        (status, body).into_response()
    };
    let router = Router::new().route("/{chain}/public/{round}", get(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut server = JoinSet::new();
    server.spawn(async move { axum::serve(listener, router).await });
    Relay { url, requests, _server: server }
}

fn answer(round: u64, signature: &str) -> String {
    let randomness = "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587";
    format!(r#"{{"round":{round},"randomness":"{randomness}","signature":"{signature}"}}"#)
}

fn client(relays: &[&str]) -> RelayClient {
    RelayClient::new(relays.iter().map(|relay| relay.parse().unwrap()).collect()).unwrap()
}

#[tokio::test]
async fn a_round_comes_from_the_first_relay_that_has_it() {
    let down = relay(StatusCode::SERVICE_UNAVAILABLE, String::new()).await;
    let good = relay(StatusCode::OK, answer(ROUND, SIGNATURE)).await;
    let spare = relay(StatusCode::OK, answer(ROUND, SIGNATURE)).await;
    let closed = "http://127.0.0.1:1";
    let fetched = client(&[closed, &down.url, &good.url, &spare.url]).fetch(ROUND).await.unwrap();
    assert_eq!(Some(fetched), parse_signature(SIGNATURE));
    assert_eq!([good, spare].map(|relay| relay.requests.load(Ordering::Relaxed)), [1, 0]);
}

#[tokio::test]
async fn what_is_no_signature_of_the_round_is_refused() {
    let other = SIGNATURE.replace("b713", "b714");
    let bad = [
        (StatusCode::NOT_FOUND, answer(ROUND, SIGNATURE), "status 404"),
        (StatusCode::OK, "<html>".to_owned(), "not a round"),
        (StatusCode::OK, answer(ROUND + 1, SIGNATURE), "another round"),
        (StatusCode::OK, answer(ROUND, "ab"), "another round"),
        (StatusCode::OK, answer(ROUND, &other), "did not sign"),
        (StatusCode::OK, " ".repeat(5_000) + &answer(ROUND, SIGNATURE), "length limit"),
    ];
    for (status, body, reason) in bad {
        let relay = relay(status, body).await;
        let error = client(&[&relay.url]).fetch(ROUND).await.unwrap_err().to_string();
        assert!(error.contains("127.0.0.1: ") && error.contains(reason), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_hangs_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hanging = format!("http://{}", listener.local_addr().unwrap());
    let error = client(&[&hanging]).fetch(ROUND).await.unwrap_err().to_string();
    assert_eq!(error, "127.0.0.1: no response in time");
}

#[test]
fn no_relay_is_asked_without_an_address() {
    assert!(client(&[]).is_empty());
}
