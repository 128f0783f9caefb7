//! The pages of the shop behind the waiting room.
//!
//! ```text
//! /shop ── buy ──► /wait/{item} ── admitted ──► /shop/checkout?pass=… ── pay ──► thank you
//! ```
//!
//! The item's `entryUrl` redirects admitted users to the checkout with their pass. The pass is checked offline, once for
//! the checkout page and again for the order.

mod messages;
mod page;

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

use crate::order::checkout::{Card, Checkout, Error, Placement};
use page::ShopPage;

/// The item's `entryUrl`.
pub const ENTRY_URL: &str = "/shop/checkout?pass={pass}";

const SHOP_CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A shop that sells one item.
#[derive(Debug)]
pub struct Shop {
    /// Places the orders.
    pub checkout: Arc<Checkout>,
    /// The item.
    pub item: ItemId,
    /// Its display name.
    pub name: ItemName,
}

/// The language of the page, by `Accept-Language`.
struct PreferredLanguage(Language);

impl Shop {
    /// The router of all pages.
    pub fn router(self) -> Router {
        Router::new()
            .route("/shop", get(storefront))
            .route("/shop/stock", get(stock))
            .route("/shop/checkout", get(checkout))
            .route("/shop/buy", post(buy))
            .route("/shop/thanks", get(thanks))
            .route("/shop/shop.js", get(async || file("text/javascript", page::SCRIPT)))
            .route("/shop/shop.css", get(async || file("text/css", page::STYLE)))
            .with_state(Arc::new(self))
    }

    fn left(&self) -> Option<u32> {
        self.checkout.ledger().left(&self.item)
    }

    fn show(
        &self,
        status: StatusCode,
        PreferredLanguage(language): PreferredLanguage,
        page: &ShopPage<'_>,
    ) -> Response {
        let html = page::render((&self.item, &self.name), self.left(), language, page);
        let vary = [(VARY, "Accept-Language")];
        (status, headers("text/html; charset=utf-8"), vary, html).into_response()
    }

    /// The page for a failed order.
    fn refuse(&self, language: PreferredLanguage, error: &Error) -> Response {
        match error {
            Error::Pass(refusal) => {
                let why = refusal.to_string();
                self.show(StatusCode::UNAUTHORIZED, language, &ShopPage::NoPass { why: &why })
            }
            Error::UnknownItem | Error::Kafka(_) => {
                tracing::warn!(?error, "order not placed");
                self.show(StatusCode::SERVICE_UNAVAILABLE, language, &ShopPage::Unavailable)
            }
        }
    }
}

async fn storefront(State(shop): State<Arc<Shop>>, language: PreferredLanguage) -> Response {
    shop.show(StatusCode::OK, language, &ShopPage::Window)
}

/// The remaining stock; null while no stock level is known.
async fn stock(State(shop): State<Arc<Shop>>) -> Response {
    (headers("application/json"), Json(json!({ "left": shop.left() }))).into_response()
}

async fn checkout(
    State(shop): State<Arc<Shop>>,
    language: PreferredLanguage,
    RawQuery(query): RawQuery,
) -> Response {
    let pass = query_value(query.as_deref(), "pass=");
    match shop.checkout.guard().check(&shop.item, pass).await {
        Ok(entry) => {
            let user = entry.user.to_string();
            shop.show(StatusCode::OK, language, &ShopPage::Checkout { user: &user, pass })
        }
        Err(refusal) => shop.refuse(language, &refusal.into()),
    }
}

/// Redirects, so that a reload does not order again.
async fn buy(
    State(shop): State<Arc<Shop>>,
    language: PreferredLanguage,
    RawQuery(query): RawQuery,
) -> Response {
    let pass = query_value(query.as_deref(), "pass=");
    match shop.checkout.place(&shop.item, pass, Card::Accepted).await {
        Ok(Placement::Created(order) | Placement::Existing(order)) => {
            let home = format!("/shop/thanks?order={}", order.order_id);
            let mut response = (StatusCode::SEE_OTHER, headers("text/plain")).into_response();
            // A UUID is a valid header value.
            response
                .headers_mut()
                .extend(HeaderValue::from_str(&home).map(|home| (LOCATION, home)));
            response
        }
        Err(error) => shop.refuse(language, &error),
    }
}

async fn thanks(
    State(shop): State<Arc<Shop>>,
    language: PreferredLanguage,
    RawQuery(query): RawQuery,
) -> Response {
    let order = query_value(query.as_deref(), "order=").parse().ok();
    match order.and_then(|order| shop.checkout.ledger().order(order)) {
        Some(order) if order.outcome == Outcome::Completed => {
            let number = order.order_id.to_string();
            shop.show(StatusCode::OK, language, &ShopPage::Thanks { order: &number })
        }
        Some(_) => shop.show(StatusCode::OK, language, &ShopPage::TooLate),
        None => shop.show(StatusCode::NOT_FOUND, language, &ShopPage::Window),
    }
}

impl<S: Sync> FromRequestParts<S> for PreferredLanguage {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let header = parts.headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let preferred = Language::from_accept_language(header.unwrap_or_default());
        // The demo has two languages; the waiting page has more.
        let is_korean = preferred == Language::Korean;
        Ok(Self(if is_korean { Language::Korean } else { Language::English }))
    }
}

/// The value of the only query parameter. Passes and ids need no unescaping.
fn query_value<'a>(query: Option<&'a str>, name: &str) -> &'a str {
    query.and_then(|query| query.strip_prefix(name)).unwrap_or_default()
}

fn file(kind: &'static str, text: &'static str) -> Response {
    (headers(kind), text).into_response()
}

/// URLs contain passes, so referrers are suppressed.
fn headers(kind: &'static str) -> [(HeaderName, &'static str); 5] {
    [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, SHOP_CONTENT_SECURITY_POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ]
}
