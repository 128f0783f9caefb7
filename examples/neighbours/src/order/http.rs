//! `POST /orders` with `Authorization: Bearer <pass>` and `{"itemId": "…"}`.
//!
//! The item is in the body, so the guard is asked here; for one that is part of the address it is a
//! layer, and there is nothing to write.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Json, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::post};
use daegi_domain::ItemId;
use serde::Deserialize;
use serde_json::json;

use super::desk::{Card, Desk, Error, Placed};

/// What somebody wants to buy.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wish {
    item_id: ItemId,
}

/// Everything the service answers.
pub fn router(desk: Arc<Desk>) -> Router {
    Router::new().route("/orders", post(order)).with_state(desk)
}

/// 201 for a new order, 200 for the one that was placed with the same ticket before.
async fn order(
    State(desk): State<Arc<Desk>>,
    parts: Parts,
    wish: Result<Json<Wish>, JsonRejection>,
) -> Response {
    let Json(wish) = match wish {
        Ok(wish) => wish,
        Err(error) => return problem(StatusCode::BAD_REQUEST, "INVALID_REQUEST", &error),
    };
    let pass = daegi_guard::find_pass(&parts, &wish.item_id);
    match desk.place(&wish.item_id, pass, Card::Doubtful).await {
        Ok(Placed::New(order)) => (StatusCode::CREATED, Json(order)).into_response(),
        Ok(Placed::Before(order)) => Json(order).into_response(),
        Err(error) => refusal(&desk, &wish.item_id, &error),
    }
}

/// Who presents a bad pass must get another one; our own trouble passes.
fn refusal(desk: &Desk, item: &ItemId, error: &Error) -> Response {
    match error {
        Error::Pass(refusal) => refusal.answer("", &desk.guard().waiting_page(item)),
        Error::UnknownItem | Error::Kafka(_) => {
            tracing::warn!(?error, "an order was turned down");
            let answer = problem(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", error);
            with(answer, RETRY_AFTER, "1")
        }
    }
}

/// RFC 9457.
fn problem(status: StatusCode, code: &str, detail: &impl ToString) -> Response {
    let body = json!({
        "type": "about:blank", "title": status.canonical_reason(), "status": status.as_u16(),
        "code": code, "detail": detail.to_string(),
    });
    with((status, Json(body)).into_response(), CONTENT_TYPE, "application/problem+json")
}

fn with(mut answer: Response, header: axum::http::HeaderName, value: &'static str) -> Response {
    answer.headers_mut().insert(header, HeaderValue::from_static(value));
    answer
}
