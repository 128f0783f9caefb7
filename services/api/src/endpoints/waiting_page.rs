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
use daegi_domain::{
    Branding, ChallengePolicy, FrameAncestor, ItemId, LaneName, Language, LineState, UserId,
};
use daegi_runtime::http::{Asset, PathParams};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::{DAEGI_PAGE, ItemPath, RequestTrace, cookie_value, identity, is_same_site};
use crate::access::Client;
use crate::error::{Error, Result};
use crate::gate::ReturnPath;
use crate::tickets::{ClaimedUser, ItemSummary, JoinRequest, TicketService, UnverifiedToken};
use crate::waiting_page::{self, CodeForm, Page, PageState};
use crate::wire::{PageTexts, Ticket};

/// The part of the policy that permits to load scripts and styles from, to connect to and to show frames of the provider
/// of a widget, besides this origin.
const OWN_SOURCES: [&str; 3] = ["script-src 'self'", "style-src 'self'", "connect-src 'self'"];
/// The page loads only its own assets; images are embedded as data URLs. `frame-ancestors` follows.
const CONTENT_SECURITY_POLICY_VALUE: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors";
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
/// Query of the page that chooses a language; the tag follows.
const LANGUAGE_QUERY: &str = "lang=";
/// Cookie with the chosen language, which all pages of this host share.
const LANGUAGE_COOKIE: &str = "daegi-language";
const LANGUAGE_COOKIE_SECONDS: u32 = 31_536_000;
const COOKIE_SECONDS: u32 = 86_400;
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// `GET /wait/{itemId}`
pub(crate) async fn page(
    State(service): State<Arc<TicketService>>,
    PathParams(item): PathParams<String>,
    RawQuery(query): RawQuery,
    client: Client,
    headers: HeaderMap,
) -> Response {
    let chosen = query.as_deref().and_then(|query| query.strip_prefix(LANGUAGE_QUERY));
    if let Some(language) = chosen.and_then(Language::from_tag) {
        return choose_language(&item, language, &headers);
    }
    let item = ItemId::parse(&item).ok();
    let (summary, state) = match &item {
        Some(item) => {
            let found = find(&service, item, client, &headers).await;
            if found.0.is_some() {
                service.visits.viewed(item);
            }
            found
        }
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
        (PageState::Outside | PageState::NeedsScripts, Some(CHALLENGE_REQUIRED)) => {
            PageState::NeedsScripts
        }
        (PageState::NeedsScripts, Some(code)) => PageState::Refused(headline(code)),
        (PageState::Outside, Some(code)) => PageState::Refused(headline(code)),
        (state, _) => state,
    };
    let status = match state {
        PageState::Missing => StatusCode::NOT_FOUND,
        PageState::Trouble => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let has_widget = |summary: &&ItemSummary| summary.challenge == ChallengePolicy::Widget;
    let widget = summary.as_ref().filter(has_widget).and_then(|_| service.widget.page_sources());
    let plain = Branding::default();
    let look = summary.as_ref().map_or(&plain, |summary| &summary.look);
    let page = Page {
        language: language_of(&headers),
        item: item.as_ref(),
        name: summary.as_ref().map_or_else(
            || item.as_ref().map_or("", ItemId::as_str),
            |summary| summary.name.as_str(),
        ),
        look,
        texts: summary.as_ref().map(|summary| &*summary.page),
        keeps_lines: service.keeps_lines,
        ends_absent: summary.as_ref().is_none_or(|summary| summary.ends_absent),
        has_lanes: summary.as_ref().is_some_and(|summary| summary.has_lanes),
        has_widget: widget.is_some(),
        needs_identity: service.needs_identity(),
        code,
        state,
    };
    let policy = [(
        CONTENT_SECURITY_POLICY,
        content_security_policy(&look.frame_ancestors, widget.as_deref()),
    )];
    let mut response = (status, page_headers(), policy, page.render()).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("3"));
    }
    response
}

/// Stores the chosen language, and returns to the page without the query. Browsers keep the fragment.
fn choose_language(item: &str, language: Language, headers: &HeaderMap) -> Response {
    // An item id in its canonical form: any other text would be a redirect to an address of the link's author.
    let home = ItemId::parse(item).map_or_else(|_| "/".to_owned(), |item| format!("/wait/{item}"));
    let secure = secure(headers);
    let cookie = format!(
        "{LANGUAGE_COOKIE}={language}; Path=/; Max-Age={LANGUAGE_COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}"
    );
    let headers = [(LOCATION, home), (SET_COOKIE, cookie), (CACHE_CONTROL, "no-store".to_owned())];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Returns the language that the user chose, or else prefers.
fn language_of(headers: &HeaderMap) -> Language {
    let accepted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let chosen = cookie_value(headers, LANGUAGE_COOKIE).and_then(Language::from_tag);
    chosen.unwrap_or_else(|| Language::from_accept_language(accepted.unwrap_or_default()))
}

/// `GET /`: a page for people who open the host without the address of a line.
pub(crate) async fn root(headers: HeaderMap) -> Response {
    let page = waiting_page::root(language_of(&headers));
    let policy = [(CONTENT_SECURITY_POLICY, content_security_policy(&[], None))];
    (page_headers(), policy, page).into_response()
}

/// Returns the summary of an item, and the state of the page for the cookie's ticket.
async fn find(
    service: &TicketService,
    item: &ItemId,
    client: Client,
    headers: &HeaderMap,
) -> (Option<ItemSummary>, PageState) {
    let summary = match service.item_summary(item).await {
        Ok(summary) => summary,
        Err(Error::ItemNotFound) => return (None, PageState::Missing),
        Err(_) => return (None, PageState::Trouble),
    };
    let held = match presented(item, client.clone(), headers) {
        Some(presented) => Some(service.poll(presented, Duration::ZERO).await),
        None => service.access.require_page(item, &client).err().map(Err),
    };
    let state = match (held, summary.state) {
        (Some(Ok(ticket)), _) => PageState::Holds(Box::new(ticket)),
        (Some(Err(Error::Blocked(notice))), _) => PageState::Blocked(notice),
        (Some(Err(error)), _) if error.is_transient() => PageState::Trouble,
        (_, LineState::SoldOut) => PageState::SoldOut,
        (_, LineState::Disabled) => PageState::Closed,
        (_, LineState::Scheduled) => PageState::Scheduled,
        (_, LineState::Closed) => PageState::LineClosed,
        _ if summary.challenge != ChallengePolicy::Off => PageState::NeedsScripts,
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
    client: Client,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response> {
    if !is_same_site(&headers) {
        return Err(Error::invalid("this form is sent by another site"));
    }
    let JoinForm { code, website } = form_of(&body).unwrap_or_default();
    let code = Some(code).filter(|code| !code.trim().is_empty());
    let signals = service.signals.join_signals(client.source(), &headers, DAEGI_PAGE);
    let signals = signals.of_form(!website.is_empty());
    let held = presented(&item, client.clone(), &headers);
    let token = held.as_ref().map(|held| held.token.as_str());
    let joined = match identified(&service, held.as_ref(), &headers).await {
        Ok((user, lane)) => {
            let (code, client) = (code.as_deref(), &client);
            let visit = service.visits.classify(&headers).by_form();
            let solution = None;
            let request = JoinRequest { user, lane, token, code, solution, client, signals, visit };
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
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JoinForm {
    /// An invitation code, if the user has one.
    code: String,
    /// A field that users do not see and programs fill in.
    website: String,
}

/// Returns the fields of a submitted form. A form is encoded as a query is.
fn form_of(body: &[u8]) -> Option<JoinForm> {
    let query = std::str::from_utf8(body).ok()?;
    let uri = Uri::builder().path_and_query(format!("/?{query}")).build().ok()?;
    let Query(form) = Query::try_from_uri(&uri).ok()?;
    Some(form)
}

/// Returns the message key of the headline for the problem code of a refused join. The code itself
/// is not shown, because a link can contain any text.
fn headline(code: &str) -> &'static str {
    match code {
        "BLOCKED" => "blockedHead",
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
    RawQuery(query): RawQuery,
) -> Result<impl IntoResponse> {
    let look = service.item_summary(&item).await?.look;
    let requested = query.as_deref().and_then(|query| query.strip_prefix("v="));
    // Another pod may still have the item as it was before a change.
    let is_current = requested.is_some_and(|version| version == waiting_page::look_version(&look));
    let caching = if is_current { "public, max-age=31536000, immutable" } else { "no-store" };
    let headers =
        [(CONTENT_TYPE, CSS), (CACHE_CONTROL, caching), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    Ok((headers, waiting_page::style_of(&look)))
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
    asset(JAVASCRIPT, waiting_page::SCRIPT, query)
}

/// `GET /widget.js`
pub(crate) async fn widget_script(RawQuery(query): RawQuery) -> Response {
    asset(JAVASCRIPT, waiting_page::WIDGET_SCRIPT, query)
}

/// `GET /wait.css`
pub(crate) async fn style(RawQuery(query): RawQuery) -> Response {
    asset(CSS, waiting_page::STYLE, query)
}

fn asset(kind: &'static str, text: &'static str, query: Option<String>) -> Response {
    Asset { kind, text }.into_response(query.as_deref(), &waiting_page::VERSION)
}

/// `GET /wait-more.js`
pub(crate) async fn more_script(RawQuery(query): RawQuery) -> Response {
    asset(JAVASCRIPT, waiting_page::MORE_SCRIPT, query)
}

/// `GET /wait-more.css`
pub(crate) async fn more_style(RawQuery(query): RawQuery) -> Response {
    asset(CSS, waiting_page::MORE_STYLE, query)
}

/// `GET /wait-texts/{language}`
pub(crate) async fn more_texts(
    PathParams(language): PathParams<String>,
    RawQuery(query): RawQuery,
) -> Result<Response> {
    let language = Language::from_tag(&language).ok_or(Error::invalid("no such language"))?;
    let text = waiting_page::more_texts(language);
    Ok(Asset { kind: "application/json", text }
        .into_response(query.as_deref(), &waiting_page::VERSION))
}

/// Returns the content security policy of a page that these origins may frame, and that loads the widget of a third
/// party from `widget`, if it has one.
fn content_security_policy(ancestors: &[FrameAncestor], widget: Option<&str>) -> String {
    let ancestors: Vec<&str> = ancestors.iter().map(FrameAncestor::as_str).collect();
    let ancestors = if ancestors.is_empty() { "'none'".to_owned() } else { ancestors.join(" ") };
    let policy = format!("{CONTENT_SECURITY_POLICY_VALUE} {ancestors}");
    let Some(sources) = widget else { return policy };
    let permit = |policy: String, own: &str| policy.replace(own, &format!("{own} {sources}"));
    format!("{}; frame-src {sources};", OWN_SOURCES.into_iter().fold(policy, permit))
}

fn page_headers() -> [(HeaderName, &'static str); 5] {
    [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (VARY, "Accept-Language, Cookie"),
    ]
}

/// Returns the unverified token of the cookie.
fn presented(item: &ItemId, client: Client, headers: &HeaderMap) -> Option<UnverifiedToken> {
    let token = cookie_value(headers, TICKET)?.to_owned();
    Some(UnverifiedToken { item: item.clone(), token, user: None, client })
}

fn cookie(item: &ItemId, token: &str, headers: &HeaderMap) -> String {
    let secure = secure(headers);
    format!(
        "{TICKET}={token}; Path=/wait/{item}; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}"
    )
}

/// Returns the attribute that keeps a cookie on https, where the request came over it.
fn secure(headers: &HeaderMap) -> &'static str {
    let is_https = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    if is_https { "; Secure" } else { "" }
}

/// Returns a random user id. It cannot be guessed, so no other client can join as this user.
fn new_user() -> Result<UserId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Error::NoRandomness)?;
    Ok(UserId::parse(&format!("web-{:032x}", u128::from_be_bytes(bytes)))?)
}
