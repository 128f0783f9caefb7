//! The shop that people see: a page with a "buy" button behind a waiting room.
//!
//! ```text
//! /shop ── buy ──► /wait/{item} ── it is your turn ──► /shop/checkout?pass=… ── pay ──► thank you
//! ```
//!
//! The item's `entryUrl` sends people to the checkout with their pass. Nobody gets further without
//! one: it is checked here, offline, once to show the checkout and again to place the order.

mod page;

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use axum::{Router, http::HeaderValue};
use daegi_domain::{ItemId, ItemName, Outcome};
use serde_json::json;

use crate::order::desk::{Card, Desk, Error, Placed};
use page::Scene;

/// Where people with a pass go; an item's `entryUrl`.
pub const ENTRY_URL: &str = "/shop/checkout?pass={pass}";

const OWN_ONLY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A shop that sells one thing.
#[derive(Debug)]
pub struct Shop {
    /// Where orders are placed.
    pub desk: Arc<Desk>,
    /// What is sold.
    pub item: ItemId,
    /// Its name, for people.
    pub name: ItemName,
}

impl Shop {
    /// Every page of the shop, to be served beside the waiting room.
    pub fn router(self) -> Router {
        Router::new()
            .route("/shop", get(window))
            .route("/shop/stock", get(stock))
            .route("/shop/checkout", get(checkout))
            .route("/shop/buy", post(buy))
            .route("/shop/thanks", get(thanks))
            .route("/shop/shop.js", get(async || file("text/javascript", page::SCRIPT)))
            .route("/shop/shop.css", get(async || file("text/css", page::STYLE)))
            .with_state(Arc::new(self))
    }

    fn left(&self) -> Option<u32> {
        self.desk.book().left(&self.item)
    }

    fn show(&self, status: StatusCode, scene: &Scene<'_>) -> Response {
        let page = page::render(&self.item, &self.name, self.left(), scene);
        (status, headers("text/html; charset=utf-8"), page).into_response()
    }

    /// Why somebody cannot buy, in their words.
    fn refuse(&self, error: &Error) -> Response {
        match error {
            Error::Pass(refusal) => {
                let why = refusal.to_string();
                self.show(StatusCode::UNAUTHORIZED, &Scene::NoPass { why: &why })
            }
            Error::UnknownItem | Error::Kafka(_) => {
                tracing::warn!(?error, "an order was turned down");
                self.show(StatusCode::SERVICE_UNAVAILABLE, &Scene::Trouble)
            }
        }
    }
}

async fn window(State(shop): State<Arc<Shop>>) -> Response {
    shop.show(StatusCode::OK, &Scene::Window)
}

/// How many are left; null while the shop has not heard of it.
async fn stock(State(shop): State<Arc<Shop>>) -> Response {
    (headers("application/json"), Json(json!({ "left": shop.left() }))).into_response()
}

async fn checkout(State(shop): State<Arc<Shop>>, RawQuery(query): RawQuery) -> Response {
    let pass = brought(query.as_deref(), "pass=");
    match shop.desk.guard().check(&shop.item, pass).await {
        Ok(entry) => {
            let user = entry.user.to_string();
            shop.show(StatusCode::OK, &Scene::Checkout { user: &user, pass })
        }
        Err(refusal) => shop.refuse(&refusal.into()),
    }
}

/// Answers with another address, so that a reload buys nothing.
async fn buy(State(shop): State<Arc<Shop>>, RawQuery(query): RawQuery) -> Response {
    let pass = brought(query.as_deref(), "pass=");
    match shop.desk.place(&shop.item, pass, Card::Good).await {
        Ok(Placed::New(order) | Placed::Before(order)) => {
            let home = format!("/shop/thanks?order={}", order.order_id);
            let mut answer = (StatusCode::SEE_OTHER, headers("text/plain")).into_response();
            // An id is made of characters that headers may have.
            answer.headers_mut().extend(HeaderValue::from_str(&home).map(|home| (LOCATION, home)));
            answer
        }
        Err(error) => shop.refuse(&error),
    }
}

async fn thanks(State(shop): State<Arc<Shop>>, RawQuery(query): RawQuery) -> Response {
    let order = brought(query.as_deref(), "order=").parse().ok();
    match order.and_then(|order| shop.desk.book().order(order)) {
        Some(order) if order.outcome == Outcome::Completed => {
            let number = order.order_id.to_string();
            shop.show(StatusCode::OK, &Scene::Thanks { order: &number })
        }
        Some(_) => shop.show(StatusCode::OK, &Scene::TooLate),
        None => shop.show(StatusCode::NOT_FOUND, &Scene::Window),
    }
}

/// The only parameter of an address. Passes and ids are made of characters that need no escaping.
fn brought<'a>(query: Option<&'a str>, name: &str) -> &'a str {
    query.and_then(|query| query.strip_prefix(name)).unwrap_or_default()
}

fn file(kind: &'static str, text: &'static str) -> Response {
    (headers(kind), text).into_response()
}

/// Passes are in addresses here, so these are told to nobody.
fn headers(kind: &'static str) -> [(HeaderName, &'static str); 5] {
    [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, OWN_ONLY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ]
}
