//! Public keys, the OpenAPI document and the docs page.

use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use daegi_runtime::openapi;
use serde_json::Value;

use crate::routes;
use crate::tickets::TicketService;

/// `Cache-Control` of keys and document. 5 minutes are short enough for keys, because they rotate
/// rarely, and old and new ones are published together during a rotation.
const CACHE_FOR_5_MINUTES: &str = "public, max-age=300";

static DOCUMENT: LazyLock<Value> = LazyLock::new(routes::document);
static DOCUMENT_JSON: LazyLock<Bytes> = LazyLock::new(|| DOCUMENT.to_string().into());
static PAGE: LazyLock<String> = LazyLock::new(|| {
    openapi::render_page(&DOCUMENT, &[routes::public(), routes::internal()], "/openapi.json")
});

/// `GET /.well-known/jwks.json`
pub(crate) async fn jwks(State(service): State<Arc<TicketService>>) -> impl IntoResponse {
    json(service.jwks.clone())
}

/// `GET /openapi.json`
pub(crate) async fn document() -> impl IntoResponse {
    json(DOCUMENT_JSON.clone())
}

/// `GET /docs`
pub(crate) async fn page() -> Response {
    openapi::serve_page(&PAGE)
}

fn json(body: Bytes) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, CACHE_FOR_5_MINUTES)], body)
}
