use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use serde_json::Value;

use crate::room::Room;
use crate::{docs_page, openapi};

/// Keys rotate rarely, and both old and new ones are published meanwhile.
const FOR_MINUTES: &str = "public, max-age=300";
/// A page of text: nothing runs, nothing is loaded from elsewhere, nobody frames it.
const TEXT_ONLY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const JSON: &str = "application/json";

static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi::document);
static DOCUMENT_JSON: LazyLock<Bytes> = LazyLock::new(|| DOCUMENT.to_string().into());
static PAGE: LazyLock<String> = LazyLock::new(|| docs_page::render(&DOCUMENT));

/// `GET /.well-known/jwks.json`
pub(crate) async fn jwks(State(room): State<Arc<Room>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, JSON), (CACHE_CONTROL, FOR_MINUTES)], room.jwks.clone())
}

/// `GET /openapi.json`
pub(crate) async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, JSON), (CACHE_CONTROL, FOR_MINUTES)], DOCUMENT_JSON.clone())
}

/// `GET /docs`
pub(crate) async fn docs() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, FOR_MINUTES),
        (CONTENT_SECURITY_POLICY, TEXT_ONLY),
    ];
    (headers, PAGE.as_str())
}

/// `GET /docs.css`
pub(crate) async fn style() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, FOR_MINUTES)];
    (headers, docs_page::STYLE)
}
