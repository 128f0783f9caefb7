//! The admin API as it is served, without a listener.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use daegi_domain::{Millis, rfc3339};
use daegi_runtime::http::HttpService;
use daegi_runtime::{AdminToken, Clock};
use daegi_scheduler::{AdminState, Leadership, LineMonitor};
use daegi_store::SharedStore;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::harness::{self, START};

pub(super) const TOKEN: &str = "the-token-of-the-operator";
pub(super) const KEYS: &str = "3:000102030405060708090a0b0c0d0e0f";
pub(super) const ITEM: &str = "/waiting-item/concert";
pub(super) const QUOTA: &str = "/waiting-queue/token-count-to-move";

pub(super) struct AdminHarness {
    pub(super) store: SharedStore,
    pub(super) clock: Clock,
    pub(super) monitor: Arc<LineMonitor>,
    router: HttpService,
}

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl AdminHarness {
    /// An admin API with the item `concert`.
    pub(super) async fn open() -> Self {
        let store = harness::store(10);
        harness::put(&*store, "concert", 100, None).await;
        Self::with_store(store)
    }

    pub(super) fn with_store(store: SharedStore) -> Self {
        Self::at(store, START)
    }

    /// An admin API whose clock begins at another time.
    pub(super) fn at(store: SharedStore, start: Millis) -> Self {
        let (clock, leadership) = (Clock::manual(start), Arc::new(Leadership::new()));
        let monitor =
            LineMonitor::new(store.clone(), clock.clone(), leadership.clone(), Arc::default());
        let monitor = Arc::new(monitor);
        let token = AdminToken::parse(TOKEN).unwrap();
        let admin = AdminState::new(
            store.clone(),
            token,
            KEYS.parse().unwrap(),
            clock.clone(),
            leadership,
            Arc::clone(&monitor),
            TaskTracker::new(),
        );
        Self { store, clock, monitor, router: HttpService::new(admin.router()) }
    }

    /// A call with the token; an empty body has no content type.
    pub(super) async fn call(&self, method: &str, path: &str, body: &str) -> Reply {
        let content = if body.is_empty() { "" } else { "application/json" };
        self.call_as(method, path, content, body).await
    }

    pub(super) async fn call_as(
        &self,
        method: &str,
        path: &str,
        content: &str,
        body: &str,
    ) -> Reply {
        let request = Request::builder()
            .method(method)
            .uri(format!("/internal/admin/v1{path}"))
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", content)
            .body(Body::from(body.to_owned()))
            .unwrap();
        self.send(request).await
    }

    /// A call with another token than the admin's.
    pub(super) async fn call_with(
        &self,
        token: &str,
        (method, path, body): (&str, &str, &str),
    ) -> Reply {
        let request = Request::builder()
            .method(method)
            .uri(format!("/internal/admin/v1{path}"))
            .header("authorization", format!("Bearer {token}"))
            .body(Body::from(body.to_owned()));
        self.send(request.unwrap()).await
    }

    /// The time of the clock in some milliseconds, as JSON has it.
    pub(super) fn time_in(&self, ms: Millis) -> String {
        rfc3339(self.clock.now_ms() + ms)
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.router.handle(request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        // CSV is a text.
        let text = || String::from_utf8(bytes.to_vec()).unwrap().into();
        let body = match bytes.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&bytes).unwrap_or_else(|_| text()),
        };
        Reply { status: parts.status, headers: parts.headers, body }
    }

    /// The response to a call with the token, as text.
    pub(super) async fn text(&self, path: &str) -> (StatusCode, HeaderMap, String) {
        let request = Request::get(format!("/internal/admin/v1{path}"));
        let request = request.header("authorization", format!("Bearer {TOKEN}"));
        let response = self.router.handle(request.body(Body::empty()).unwrap()).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// The response to a request without a token, as text.
    pub(super) async fn page(&self, path: &str) -> (StatusCode, HeaderMap, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let (parts, body) = self.router.handle(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// A call that must succeed with this status.
    pub(super) async fn ok(&self, status: u16, method: &str, path: &str, body: &str) -> Value {
        let reply = self.call(method, path, body).await;
        assert_eq!(reply.status, status, "{method} {path} {body}: {reply:?}");
        reply.body
    }

    /// A call that must fail with this status and code. Returns the detail.
    pub(super) async fn refused(
        &self,
        status: u16,
        code: &str,
        (method, path, body): (&str, &str, &str),
    ) -> String {
        let reply = self.call(method, path, body).await;
        assert_eq!(reply.status, status, "{method} {path} {body}: {reply:?}");
        assert_eq!(reply.headers["content-type"], "application/problem+json");
        assert_eq!(reply.body["code"], code, "{method} {path} {body}");
        reply.body["detail"].as_str().unwrap().to_owned()
    }
}
