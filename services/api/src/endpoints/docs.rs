//! Public keys, the OpenAPI document and the docs page.

use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use serde_json::Value;

use crate::tickets::TicketService;
use crate::{docs_page, openapi};

/// Keys rotate rarely, and old and new ones are published together during a rotation.
const CACHE_FOR_5_MINUTES: &str = "public, max-age=300";
/// The page runs no scripts, loads only its own style sheet and cannot be framed.
const CONTENT_SECURITY_POLICY_VALUE: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const JSON: &str = "application/json";

static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi::document);
static DOCUMENT_JSON: LazyLock<Bytes> = LazyLock::new(|| DOCUMENT.to_string().into());
static PAGE: LazyLock<String> = LazyLock::new(|| docs_page::render(&DOCUMENT));

/// `GET /.well-known/jwks.json`
pub(crate) async fn jwks(State(service): State<Arc<TicketService>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, JSON), (CACHE_CONTROL, CACHE_FOR_5_MINUTES)], service.jwks.clone())
}

/// `GET /openapi.json`
pub(crate) async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, JSON), (CACHE_CONTROL, CACHE_FOR_5_MINUTES)], DOCUMENT_JSON.clone())
}

/// `GET /docs`
pub(crate) async fn docs() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, CACHE_FOR_5_MINUTES),
        (CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY_VALUE),
    ];
    (headers, PAGE.as_str())
}

/// `GET /docs.css`
pub(crate) async fn style() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, CACHE_FOR_5_MINUTES)];
    (headers, docs_page::STYLE)
}
