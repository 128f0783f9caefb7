//! The three routes of the internal listener.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use daegi_runtime::http::guarded;
use daegi_runtime::{Code, Health, Shutdown};

use crate::support::{call, get, problem};

#[tokio::test]
async fn a_process_is_alive_before_it_is_ready() {
    let health = Health::new(&Shutdown::new());
    let part = health.part("api");
    let alive = call(guarded(health.router()), get("/livez").unwrap()).await;
    assert_eq!(alive.status(), StatusCode::OK);

    part.set_not_ready("the store is away");
    let waiting = call(guarded(health.router()), get("/readyz").unwrap()).await;
    assert!(waiting.headers().contains_key(RETRY_AFTER));
    let problem = problem(waiting).await.unwrap();
    assert_eq!(problem.code, Code::Unavailable);
    assert_eq!(problem.detail, "api: the store is away");

    part.set_ready();
    let ready = call(guarded(health.router()), get("/readyz").unwrap()).await;
    assert_eq!(ready.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_process_that_drains_is_alive_and_not_ready() {
    let shutdown = Shutdown::new();
    let health = Health::new(&shutdown);
    health.part("api").set_ready();
    shutdown.draining().cancel();
    let ready = call(guarded(health.router()), get("/readyz").unwrap()).await;
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    let alive = call(guarded(health.router()), get("/livez").unwrap()).await;
    assert_eq!(alive.status(), StatusCode::OK);
}

#[tokio::test]
async fn metrics_are_text_for_prometheus() {
    let health = Health::new(&Shutdown::new());
    let metrics = call(guarded(health.router()), get("/metrics").unwrap()).await;
    assert_eq!(metrics.status(), StatusCode::OK);
    assert_eq!(metrics.headers()[CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
}
