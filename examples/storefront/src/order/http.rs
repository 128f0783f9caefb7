//! `POST /orders` with `Authorization: Bearer <pass>` and `{"itemId": "…"}`, and `GET /readyz`.
//!
//! The item is in the body, so the handler calls the guard. If the item is in the path, the guard's tower layer does it.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Json, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{
    Router,
    routing::{get, post},
};
use daegi_domain::ItemId;
use serde::Deserialize;
use serde_json::json;

use super::checkout::{Card, Checkout, Error, Placement};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrderRequest {
    item_id: ItemId,
}

/// The router of the order service.
pub fn router(checkout: Arc<Checkout>) -> Router {
    Router::new()
        .route("/orders", post(order))
        .route("/readyz", get(readiness))
        .with_state(checkout)
}

/// Returns 200 when the stock of an item is known; before that, every order would get 503.
async fn readiness(State(checkout): State<Arc<Checkout>>) -> StatusCode {
    let is_ready = checkout.ledger().has_stock_levels();
    if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// Returns 201 for a new order, 200 for an order that was placed before with the same ticket.
async fn order(
    State(checkout): State<Arc<Checkout>>,
    parts: Parts,
    request: Result<Json<OrderRequest>, JsonRejection>,
) -> Response {
    let Json(request) = match request {
        Ok(request) => request,
        Err(error) => return problem(StatusCode::BAD_REQUEST, "INVALID_REQUEST", &error),
    };
    let pass = daegi_guard::find_pass(&parts, &request.item_id);
    match checkout.place(&request.item_id, pass, Card::MayBeDeclined).await {
        Ok(Placement::Created(order)) => (StatusCode::CREATED, Json(order)).into_response(),
        Ok(Placement::Existing(order)) => Json(order).into_response(),
        Err(error) => refusal(&checkout, &request.item_id, &error),
    }
}

/// A rejected pass is final; 503 can be retried.
fn refusal(checkout: &Checkout, item: &ItemId, error: &Error) -> Response {
    match error {
        Error::Pass(refusal) => refusal.to_response("", &checkout.guard().waiting_page(item)),
        Error::UnknownItem | Error::Kafka(_) => {
            tracing::warn!(?error, "order not placed");
            let response = problem(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", error);
            with(response, RETRY_AFTER, "1")
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

fn with(mut response: Response, header: axum::http::HeaderName, value: &'static str) -> Response {
    response.headers_mut().insert(header, HeaderValue::from_static(value));
    response
}
