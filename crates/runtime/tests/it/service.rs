//! Every failure is answered with a problem.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::ALLOW;
use axum::http::{Request, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use daegi_runtime::http::{
    FastResponse, HttpService, Limits, MAX_BODY, MAX_HEADERS, MAX_URI, REQUEST_DEADLINE,
};
use daegi_runtime::{Code, Shutdown};
use http_body_util::BodyExt;

use crate::support::{self, call, exchange, problem, served};

const TEN_MB: usize = 10 * 1024 * 1024;

fn router() -> HttpService {
    let routes = Router::new()
        .route("/hello", get(async || "hello"))
        .route("/length", post(async |body: Bytes| body.len().to_string()))
        .route("/panic", get(async || -> &'static str { panic!("secret plans") }))
        .route("/never", get(std::future::pending::<&'static str>));
    HttpService::new(routes)
}

#[tokio::test]
async fn a_valid_request_is_routed() {
    let response = call(router(), support::get("/hello").unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK);
}

/// Answers `/short` and leaves other requests to the router.
fn with_fast_path() -> HttpService {
    router().with_fast_path(|head| match head.uri.path() {
        "/short" => Some(FastResponse::Ready("now".into_response())),
        "/soon" => Some(FastResponse::Pending(Box::pin(async { "soon".into_response() }))),
        "/panic" => panic!("secret plans"),
        "/panic-soon" => Some(FastResponse::Pending(Box::pin(async { panic!("secret plans") }))),
        _ => None,
    })
}

#[tokio::test]
async fn a_fast_path_answers_before_the_router_or_leaves_the_request_to_it() {
    for (path, expected) in [("/short", "now"), ("/soon", "soon"), ("/hello", "hello")] {
        let response = call(with_fast_path(), support::get(path).unwrap()).await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, expected);
    }
}

#[tokio::test]
async fn limits_and_panic_handling_apply_to_the_fast_path() {
    for path in ["/panic", "/panic-soon"] {
        let response = call(with_fast_path(), support::get(path).unwrap()).await;
        assert_eq!(problem(response).await.unwrap().code, Code::Internal);
    }
    let long = format!("/short?{}", "a".repeat(MAX_URI));
    let response = call(with_fast_path(), support::get(&long).unwrap()).await;
    assert_eq!(problem(response).await.unwrap().code, Code::UriTooLong);
    let large = Request::get("/short").header("x", "v".repeat(MAX_HEADERS));
    let response = call(with_fast_path(), large.body(Body::empty()).unwrap()).await;
    assert_eq!(problem(response).await.unwrap().code, Code::HeadersTooLarge);
}

#[tokio::test]
async fn a_request_with_a_body_skips_the_fast_path() {
    let request = Request::post("/short").body(Body::from("x")).unwrap();
    let response = call(with_fast_path(), request).await;
    assert_eq!(problem(response).await.unwrap().code, Code::NotFound);
}

#[tokio::test]
async fn an_unknown_route_is_a_problem() {
    let response = call(router(), support::get("/nowhere").unwrap()).await;
    assert_eq!(problem(response).await.unwrap().code, Code::NotFound);
}

#[tokio::test]
async fn a_wrong_method_is_a_problem_with_the_allowed_methods() {
    let request = Request::delete("/hello").body(Body::empty()).unwrap();
    let response = call(router(), request).await;
    assert_eq!(response.headers()[ALLOW], "GET,HEAD");
    assert_eq!(problem(response).await.unwrap().code, Code::MethodNotAllowed);
}

#[tokio::test]
async fn a_panic_is_a_problem_without_details() {
    let response = call(router(), support::get("/panic").unwrap()).await;
    let problem = problem(response).await.unwrap();
    assert_eq!(problem.code, Code::Internal);
    assert!(!format!("{problem:?}").contains("secret plans"));
}

#[tokio::test]
async fn a_path_longer_than_the_limit_is_rejected() {
    let address = |length| format!("/hello?{}", "a".repeat(length - "/hello?".len()));
    let response = call(router(), support::get(&address(MAX_URI)).unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK);
    let response = call(router(), support::get(&address(MAX_URI + 1)).unwrap()).await;
    assert_eq!(problem(response).await.unwrap().code, Code::UriTooLong);
}

#[tokio::test]
async fn the_header_limit_covers_all_headers_together() {
    let request = |count: usize| {
        let mut request = Request::get("/hello");
        for index in 0..count {
            request = request.header(format!("x-{index:02}"), "v".repeat(1020));
        }
        request.body(Body::empty()).unwrap()
    };
    let fitting = MAX_HEADERS / 1024;
    let response = call(router(), request(fitting)).await;
    assert_eq!(response.status(), StatusCode::OK);
    let response = call(router(), request(fitting + 1)).await;
    assert_eq!(problem(response).await.unwrap().code, Code::HeadersTooLarge);
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_accepted() {
    let request = |length| {
        let body = Body::from(vec![b'x'; length]);
        Request::post("/length").body(body).unwrap()
    };
    let response = call(router(), request(MAX_BODY)).await;
    assert_eq!(response.status(), StatusCode::OK);
    let response = call(router(), request(MAX_BODY + 1)).await;
    assert_eq!(problem(response).await.unwrap().code, Code::PayloadTooLarge);
}

#[tokio::test]
async fn each_route_has_its_body_limit() {
    let router = || router().with_body_limit(|method, _| if method == "POST" { 10 } else { 0 });
    let request = |method: &str, path: &str, body: &'static str| {
        Request::builder().method(method).uri(path).body(Body::from(body)).unwrap()
    };
    let response = call(router(), request("POST", "/length", "0123456789")).await;
    assert_eq!(response.status(), StatusCode::OK);
    let response = call(router(), request("POST", "/length", "0123456789x")).await;
    let too_large = problem(response).await.unwrap();
    assert_eq!(too_large.code, Code::PayloadTooLarge);
    assert_eq!(too_large.detail, "the body has more than 10 bytes");
    let response = call(router(), request("GET", "/hello", "x")).await;
    assert_eq!(problem(response).await.unwrap().detail, "this route takes no body");
}

/// Over a real connection, which is reset if the server stops reading too early.
async fn rejected_body(request: Vec<u8>) -> anyhow::Result<()> {
    let shutdown = Shutdown::new();
    let address = served(router(), Limits::default(), &shutdown).await?;
    let answer = exchange(address, &request).await?;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("PAYLOAD_TOO_LARGE"), "{answer}");
    shutdown.stop_now();
    shutdown.wait(Duration::from_secs(5)).await?;
    Ok(())
}

#[tokio::test]
async fn ten_megabytes_with_a_content_length_are_rejected() {
    let head = "POST /length HTTP/1.1\r\nhost: a\r\nconnection: close\r\n";
    let mut request = format!("{head}content-length: {TEN_MB}\r\n\r\n").into_bytes();
    request.resize(request.len() + TEN_MB, b'x');
    rejected_body(request).await.unwrap();
}

#[tokio::test]
async fn ten_megabytes_in_chunks_are_rejected() {
    let head = "POST /length HTTP/1.1\r\nhost: a\r\nconnection: close\r\n";
    let head = format!("{head}transfer-encoding: chunked\r\n\r\n{TEN_MB:x}\r\n");
    let mut request = head.into_bytes();
    request.resize(request.len() + TEN_MB, b'x');
    request.extend_from_slice(b"\r\n0\r\n\r\n");
    rejected_body(request).await.unwrap();
}

#[tokio::test]
async fn a_client_that_expects_100_continue_is_rejected_immediately() {
    let head = "POST /length HTTP/1.1\r\nhost: a\r\nconnection: close\r\nexpect: 100-continue\r\n";
    rejected_body(format!("{head}content-length: {TEN_MB}\r\n\r\n").into_bytes()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_never_responds_gets_503_at_the_deadline() {
    let start = tokio::time::Instant::now();
    let response = call(router(), support::get("/never").unwrap()).await;
    assert_eq!(problem(response).await.unwrap().code, Code::Unavailable);
    assert_eq!(start.elapsed().as_secs(), REQUEST_DEADLINE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_arrives_is_a_timeout() {
    let body = Body::new(Endless);
    let request = Request::post("/length").body(body).unwrap();
    let response = call(router(), request).await;
    assert_eq!(problem(response).await.unwrap().code, Code::RequestTimeout);
}

/// A body whose next byte never arrives.
struct Endless;

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Pending
    }
}
