//! The shop that people see: a page with a "buy" button behind a waiting room.
//!
//! ```text
//! /shop ── buy ──► /wait/{item} ── it is your turn ──► /shop/checkout?pass=… ── pay ──► thank you
//! ```
//!
//! The item's `entryUrl` sends people to the checkout with their pass. Nobody gets further without
//! one: it is checked here, offline, once to show the checkout and again to place the order.

mod page;
mod words;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawQuery, State};
use axum::http::header::{
    ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use axum::{Router, http::HeaderValue};
use daegi_domain::{ItemId, ItemName, Language, Outcome};
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

/// What a person reads best, by `Accept-Language`.
struct Reads(Language);

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

    fn show(&self, status: StatusCode, Reads(language): Reads, scene: &Scene<'_>) -> Response {
        let page = page::render((&self.item, &self.name), self.left(), language, scene);
        let vary = [(VARY, "Accept-Language")];
        (status, headers("text/html; charset=utf-8"), vary, page).into_response()
    }

    /// Why somebody cannot buy, in their words.
    fn refuse(&self, reads: Reads, error: &Error) -> Response {
        match error {
            Error::Pass(refusal) => {
                let why = refusal.to_string();
                self.show(StatusCode::UNAUTHORIZED, reads, &Scene::NoPass { why: &why })
            }
            Error::UnknownItem | Error::Kafka(_) => {
                tracing::warn!(?error, "an order was turned down");
                self.show(StatusCode::SERVICE_UNAVAILABLE, reads, &Scene::Trouble)
            }
        }
    }
}

async fn window(State(shop): State<Arc<Shop>>, reads: Reads) -> Response {
    shop.show(StatusCode::OK, reads, &Scene::Window)
}

/// How many are left; null while the shop has not heard of it.
async fn stock(State(shop): State<Arc<Shop>>) -> Response {
    (headers("application/json"), Json(json!({ "left": shop.left() }))).into_response()
}

async fn checkout(
    State(shop): State<Arc<Shop>>,
    reads: Reads,
    RawQuery(query): RawQuery,
) -> Response {
    let pass = brought(query.as_deref(), "pass=");
    match shop.desk.guard().check(&shop.item, pass).await {
        Ok(entry) => {
            let user = entry.user.to_string();
            shop.show(StatusCode::OK, reads, &Scene::Checkout { user: &user, pass })
        }
        Err(refusal) => shop.refuse(reads, &refusal.into()),
    }
}

/// Answers with another address, so that a reload buys nothing.
async fn buy(State(shop): State<Arc<Shop>>, reads: Reads, RawQuery(query): RawQuery) -> Response {
    let pass = brought(query.as_deref(), "pass=");
    match shop.desk.place(&shop.item, pass, Card::Good).await {
        Ok(Placed::New(order) | Placed::Before(order)) => {
            let home = format!("/shop/thanks?order={}", order.order_id);
            let mut answer = (StatusCode::SEE_OTHER, headers("text/plain")).into_response();
            // An id is made of characters that headers may have.
            answer.headers_mut().extend(HeaderValue::from_str(&home).map(|home| (LOCATION, home)));
            answer
        }
        Err(error) => shop.refuse(reads, &error),
    }
}

async fn thanks(
    State(shop): State<Arc<Shop>>,
    reads: Reads,
    RawQuery(query): RawQuery,
) -> Response {
    let order = brought(query.as_deref(), "order=").parse().ok();
    match order.and_then(|order| shop.desk.book().order(order)) {
        Some(order) if order.outcome == Outcome::Completed => {
            let number = order.order_id.to_string();
            shop.show(StatusCode::OK, reads, &Scene::Thanks { order: &number })
        }
        Some(_) => shop.show(StatusCode::OK, reads, &Scene::TooLate),
        None => shop.show(StatusCode::NOT_FOUND, reads, &Scene::Window),
    }
}

impl<S: Sync> FromRequestParts<S> for Reads {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let header = parts.headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        Ok(Self(Language::accepted(header.unwrap_or_default())))
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
