//! The three routes of the internal listener.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use daegi_runtime::http::HttpService;
use daegi_runtime::{Code, Health, Shutdown};

use crate::support::{call, get, problem};

#[tokio::test]
async fn a_process_is_alive_before_it_is_ready() {
    let health = Health::new(&Shutdown::new());
    let component = health.component("api");
    let alive = call(HttpService::new(health.router()), get("/livez").unwrap()).await;
    assert_eq!(alive.status(), StatusCode::OK);

    component.set_not_ready("the store is unavailable");
    let waiting = call(HttpService::new(health.router()), get("/readyz").unwrap()).await;
    assert!(waiting.headers().contains_key(RETRY_AFTER));
    let problem = problem(waiting).await.unwrap();
    assert_eq!(problem.code, Code::Unavailable);
    assert_eq!(problem.detail, "api: the store is unavailable");

    component.set_ready();
    let ready = call(HttpService::new(health.router()), get("/readyz").unwrap()).await;
    assert_eq!(ready.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_process_that_drains_is_alive_and_not_ready() {
    let shutdown = Shutdown::new();
    let health = Health::new(&shutdown);
    health.component("api").set_ready();
    shutdown.draining().cancel();
    let ready = call(HttpService::new(health.router()), get("/readyz").unwrap()).await;
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    let alive = call(HttpService::new(health.router()), get("/livez").unwrap()).await;
    assert_eq!(alive.status(), StatusCode::OK);
}

#[tokio::test]
async fn metrics_have_the_prometheus_text_format() {
    let health = Health::new(&Shutdown::new());
    let metrics = call(HttpService::new(health.router()), get("/metrics").unwrap()).await;
    assert_eq!(metrics.status(), StatusCode::OK);
    assert_eq!(metrics.headers()[CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
}
