//! The waiting page, its assets, and joining without scripts.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, RawQuery, State};
use axum::http::header::{
    ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION,
    REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use daegi_domain::{Branding, ItemId, LaneName, Language, LineState, UserId};
use daegi_runtime::http::{Asset, PathParams};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::{ItemPath, RequestTrace, cookie_value, identity, is_same_site};
use crate::error::{Error, Result};
use crate::gate::ReturnPath;
use crate::tickets::{ClaimedUser, ItemSummary, JoinRequest, TicketService, UnverifiedToken};
use crate::waiting_page::{self, CodeForm, Page, PageState};
use crate::wire::{PageTexts, Ticket};

/// The page loads only its own assets; images are embedded as data URLs.
const CONTENT_SECURITY_POLICY_VALUE: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Cookie with the token, for browsers without scripts. Not part of the URL, because URLs are shared,
/// logged and stored in histories, and the token is all that is needed to use the ticket.
const TICKET: &str = "daegi-ticket";
/// Query of the page after a refused join without scripts; the problem code follows.
pub(crate) const REFUSED: &str = "refused=";
/// Query of the page with the path to which an admitted user returns, as the gate sets it.
const RETURN: &str = "return=";
/// The problem code of a refused invitation code.
const INVALID_CODE: &str = "INVALID_CODE";
/// The problem code of a join without a solved challenge, which only scripts solve.
const CHALLENGE_REQUIRED: &str = "CHALLENGE_REQUIRED";
/// Query of the page with the form for an invitation code, without scripts.
const CODE: &str = "code";
const COOKIE_SECONDS: u32 = 86_400;
const CSS: &str = "text/css; charset=utf-8";

/// `GET /wait/{itemId}`
pub(crate) async fn page(
    State(service): State<Arc<TicketService>>,
    PathParams(item): PathParams<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let item = ItemId::parse(&item).ok();
    let (summary, state) = match &item {
        Some(item) => find(&service, item, &headers).await,
        None => (None, PageState::Missing),
    };
    let PageQuery { refused, has_code, back } = PageQuery::parse(query.as_deref());
    let code = match refused {
        Some(INVALID_CODE) => CodeForm::Refused,
        _ if has_code => CodeForm::Open,
        _ => CodeForm::Folded,
    };
    let state = match (state, refused) {
        (PageState::Holds(ticket), _) => PageState::Holds(returning(ticket, back.as_ref())),
        (state, Some(INVALID_CODE)) => state,
        (PageState::Outside, Some(CHALLENGE_REQUIRED)) => PageState::NeedsScripts,
        (PageState::Outside, Some(code)) => PageState::Refused(headline(code)),
        (state, _) => state,
    };
    let status = match state {
        PageState::Missing => StatusCode::NOT_FOUND,
        PageState::Trouble => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let plain = Branding::default();
    let language = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let page = Page {
        language: Language::from_accept_language(language.unwrap_or_default()),
        item: item.as_ref(),
        name: summary.as_ref().map_or_else(
            || item.as_ref().map_or("", ItemId::as_str),
            |summary| summary.name.as_str(),
        ),
        look: summary.as_ref().map_or(&plain, |summary| &summary.look),
        revision: summary.as_ref().map_or("", |summary| summary.page.revision.as_str()),
        has_lanes: summary.as_ref().is_some_and(|summary| summary.has_lanes),
        needs_identity: service.needs_identity(),
        code,
        state,
    };
    let mut response = (status, page_headers(), page.render()).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("3"));
    }
    response
}

/// Returns the summary of an item, and the state of the page for the cookie's ticket.
async fn find(
    service: &TicketService,
    item: &ItemId,
    headers: &HeaderMap,
) -> (Option<ItemSummary>, PageState) {
    let summary = match service.item_summary(item).await {
        Ok(summary) => summary,
        Err(Error::ItemNotFound) => return (None, PageState::Missing),
        Err(_) => return (None, PageState::Trouble),
    };
    let held = match presented(item, headers) {
        Some(presented) => Some(service.poll(presented, Duration::ZERO).await),
        None => None,
    };
    let state = match (held, summary.state) {
        (Some(Ok(ticket)), _) => PageState::Holds(Box::new(ticket)),
        (Some(Err(error)), _) if error.is_transient() => PageState::Trouble,
        (_, LineState::SoldOut) => PageState::SoldOut,
        (_, LineState::Disabled) => PageState::Closed,
        (_, LineState::Scheduled) => PageState::Scheduled,
        (_, LineState::Closed) => PageState::LineClosed,
        _ => PageState::Outside,
    };
    (Some(summary), state)
}

/// `POST /wait/{itemId}`: joins a user whose browser runs no scripts. `GET` does not join, because
/// link previews and crawlers send it.
pub(crate) async fn join(
    State(service): State<Arc<TicketService>>,
    RequestTrace(begun): RequestTrace,
    ItemPath(item): ItemPath,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response> {
    if !is_same_site(&headers) {
        return Err(Error::invalid("this form is sent by another site"));
    }
    let code = code_of_form(&body);
    let held = presented(&item, &headers);
    let token = held.as_ref().map(|held| held.token.as_str());
    let joined = match identified(&service, held.as_ref(), &headers).await {
        Ok((user, lane)) => {
            let request = JoinRequest { user, lane, token, code: code.as_deref(), solution: None };
            service.join(&item, request, begun.as_ref()).await
        }
        Err(error) => Err(error),
    };
    let back = PageQuery::parse(query.as_deref()).back;
    let back = back.map(|back| format!("{RETURN}{}", back.encoded()));
    let refused = joined.as_ref().err().map(|error| format!("{REFUSED}{}", error.code()));
    let query: Vec<_> = refused.into_iter().chain(back).collect();
    let question = if query.is_empty() { "" } else { "?" };
    let home = format!("/wait/{item}{question}{}", query.join("&"));
    let location = [(LOCATION, home), (CACHE_CONTROL, "no-store".to_owned())];
    let mut response = (StatusCode::SEE_OTHER, location).into_response();
    if let Ok((_, ticket)) = joined {
        let cookie = cookie(&item, &ticket.token, &headers);
        // All characters of tokens and item ids are valid in headers.
        response
            .headers_mut()
            .extend(cookie.parse::<HeaderValue>().map(|cookie| (SET_COOKIE, cookie)));
    }
    Ok(response)
}

/// Returns the user of a join without scripts: the one of the identity in the cookie, of the held ticket, or a new one.
async fn identified(
    service: &TicketService,
    held: Option<&UnverifiedToken>,
    headers: &HeaderMap,
) -> Result<(UserId, Option<LaneName>)> {
    if service.needs_identity() {
        let assertion = identity(headers)?;
        let assertion = assertion.as_deref();
        return service.identify(ClaimedUser { named: None, assertion }).await;
    }
    match held.and_then(|held| service.verified_user(held)) {
        Some(user) => Ok((user, None)),
        None => Ok((new_user()?, None)),
    }
}

/// The query of the page.
struct PageQuery<'a> {
    /// The problem code of a refused join.
    refused: Option<&'a str>,
    /// Whether the form for an invitation code is shown.
    has_code: bool,
    /// Where an admitted user continues.
    back: Option<ReturnPath>,
}

impl<'a> PageQuery<'a> {
    fn parse(query: Option<&'a str>) -> Self {
        let pairs = || query.unwrap_or_default().split('&');
        let back = pairs().find_map(|pair| pair.strip_prefix(RETURN));
        let back = back.and_then(|back| percent_decode_str(back).decode_utf8().ok());
        Self {
            refused: pairs().find_map(|pair| pair.strip_prefix(REFUSED)),
            has_code: pairs().any(|pair| pair == CODE),
            back: back.and_then(|back| ReturnPath::parse(&back)),
        }
    }
}

/// Changes where an admitted user continues, to the path to which the gate returns them.
fn returning(mut ticket: Box<Ticket>, back: Option<&ReturnPath>) -> Box<Ticket> {
    if let (Some(back), Some(pass)) = (back, &ticket.pass) {
        ticket.entry_url =
            Some(back.with_pass(ticket.entry_url.as_deref().unwrap_or_default(), pass));
    }
    ticket
}

/// The fields of the form that joins.
#[derive(Debug, Deserialize)]
struct JoinForm {
    #[serde(default)]
    code: String,
}

/// Returns the invitation code of a submitted form; `None` if the field is empty. A form is encoded as a query is.
fn code_of_form(body: &[u8]) -> Option<String> {
    let query = std::str::from_utf8(body).ok()?;
    let uri = Uri::builder().path_and_query(format!("/?{query}")).build().ok()?;
    let Query(JoinForm { code }) = Query::try_from_uri(&uri).ok()?;
    Some(code).filter(|code| !code.trim().is_empty())
}

/// Returns the message key of the headline for the problem code of a refused join. The code itself
/// is not shown, because a link can contain any text.
fn headline(code: &str) -> &'static str {
    match code {
        "LINE_FULL" => "fullHead",
        "STORE_FULL" => "busyHead",
        "RATE_LIMITED" => "limitedHead",
        "UNAVAILABLE" => "troubleHead",
        "INVALID_IDENTITY" => "identityHead",
        _ => "refusedHead",
    }
}

/// `GET /wait/{itemId}/look.css`
pub(crate) async fn look(
    State(service): State<Arc<TicketService>>,
    ItemPath(item): ItemPath,
) -> Result<impl IntoResponse> {
    let accent = service.item_summary(&item).await?.look.accent;
    let headers = [(CONTENT_TYPE, CSS), (CACHE_CONTROL, "public, max-age=60")];
    Ok((headers, accent.map(waiting_page::style_of).unwrap_or_default()))
}

/// `GET /wait/{itemId}/page.json`: for pages that poll; a stream sends the event `page`.
pub(crate) async fn texts(
    State(service): State<Arc<TicketService>>,
    ItemPath(item): ItemPath,
) -> Result<impl IntoResponse> {
    let page = service.item_summary(&item).await?.page;
    Ok(([(CACHE_CONTROL, "public, max-age=1")], Json(PageTexts::clone(&page))))
}

/// `GET /wait.js`
pub(crate) async fn script(RawQuery(query): RawQuery) -> Response {
    let kind = "text/javascript; charset=utf-8";
    Asset { kind, text: waiting_page::SCRIPT }
        .into_response(query.as_deref(), &waiting_page::VERSION)
}

/// `GET /wait.css`
pub(crate) async fn style(RawQuery(query): RawQuery) -> Response {
    Asset { kind: CSS, text: waiting_page::STYLE }
        .into_response(query.as_deref(), &waiting_page::VERSION)
}

fn page_headers() -> [(HeaderName, &'static str); 6] {
    [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY_VALUE),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (VARY, "Accept-Language, Cookie"),
    ]
}

/// Returns the unverified token of the cookie.
fn presented(item: &ItemId, headers: &HeaderMap) -> Option<UnverifiedToken> {
    let token = cookie_value(headers, TICKET)?.to_owned();
    Some(UnverifiedToken { item: item.clone(), token, user: None })
}

fn cookie(item: &ItemId, token: &str, headers: &HeaderMap) -> String {
    let is_https = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let secure = if is_https { "; Secure" } else { "" };
    format!(
        "{TICKET}={token}; Path=/wait/{item}; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}"
    )
}

/// Returns a random user id. It cannot be guessed, so no other client can join as this user.
fn new_user() -> Result<UserId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Error::NoRandomness)?;
    Ok(UserId::parse(&format!("web-{:032x}", u128::from_be_bytes(bytes)))?)
}
