use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::header::{
    ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, LOCATION,
    REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use daegi_domain::{ItemId, Language, LineState, Look, UserId};
use daegi_runtime::http::{Asset, PathParams};

use super::presented::{OfItem, Traced};
use crate::error::{Error, Result};
use crate::room::{Face, Presented, Room};
use crate::wait_page::{self, Page, Standing};
use crate::wire::PageTexts;

/// Everything the page uses is its own. Pictures are part of the page.
const OWN_ONLY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// For people without scripts only. A cookie and not an address: addresses are shared, logged and
/// kept in histories, and whoever has a token has the place.
const TICKET: &str = "daegi-ticket";
/// The query of the page after a join without scripts was refused; the code follows.
const REFUSED: &str = "refused=";
const COOKIE_SECONDS: u32 = 86_400;
const CSS: &str = "text/css; charset=utf-8";

/// `GET /wait/{itemId}`
pub(crate) async fn page(
    State(room): State<Arc<Room>>,
    PathParams(item): PathParams<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let item = ItemId::parse(&item).ok();
    let (face, standing) = match &item {
        Some(item) => find(&room, item, &headers).await,
        None => (None, Standing::Missing),
    };
    let refused = query.as_deref().and_then(|query| query.strip_prefix(REFUSED));
    let standing = match (standing, refused) {
        (Standing::Outside, Some(code)) => Standing::Refused(headline(code)),
        (standing, _) => standing,
    };
    let status = match standing {
        Standing::Missing => StatusCode::NOT_FOUND,
        Standing::Trouble => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let plain = Look::default();
    let language = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let page = Page {
        language: Language::accepted(language.unwrap_or_default()),
        item: item.as_ref(),
        name: face
            .as_ref()
            .map_or_else(|| item.as_ref().map_or("", ItemId::as_str), |face| face.name.as_str()),
        look: face.as_ref().map_or(&plain, |face| &face.look),
        revision: face.as_ref().map_or("", |face| face.page.revision.as_str()),
        standing,
    };
    let mut answer = (status, page_headers(), page.render()).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("3"));
    }
    answer
}

/// What there is to see of an item, and where the holder of the cookie stands.
async fn find(room: &Room, item: &ItemId, headers: &HeaderMap) -> (Option<Face>, Standing) {
    let face = match room.face(item).await {
        Ok(face) => face,
        Err(Error::ItemNotFound) => return (None, Standing::Missing),
        Err(_) => return (None, Standing::Trouble),
    };
    let held = match presented(item, headers) {
        Some(presented) => Some(room.poll(presented, Duration::ZERO).await),
        None => None,
    };
    let standing = match (held, face.state) {
        (Some(Ok(ticket)), _) => Standing::Holds(Box::new(ticket)),
        (Some(Err(error)), _) if error.passes() => Standing::Trouble,
        (_, LineState::SoldOut) => Standing::SoldOut,
        (_, LineState::Disabled) => Standing::Closed,
        _ => Standing::Outside,
    };
    (Some(face), standing)
}

/// `POST /wait/{itemId}`: joins a person whose browser runs no scripts. Not done by `GET`, which
/// link previews and crawlers send as well.
pub(crate) async fn join(
    State(room): State<Arc<Room>>,
    Traced(begun): Traced,
    OfItem(item): OfItem,
    headers: HeaderMap,
) -> Result<Response> {
    same_site(&headers)?;
    let held = presented(&item, &headers);
    let user = match held.as_ref().and_then(|held| room.holder(held)) {
        Some(user) => user,
        None => new_user()?,
    };
    let token = held.as_ref().map(|held| held.token.as_str());
    let joined = room.join(&item, user, token, begun.as_ref()).await;
    let home = match &joined {
        Ok(_) => format!("/wait/{item}"),
        Err(error) => format!("/wait/{item}?{REFUSED}{}", error.code()),
    };
    let location = [(LOCATION, home), (CACHE_CONTROL, "no-store".to_owned())];
    let mut answer = (StatusCode::SEE_OTHER, location).into_response();
    if let Ok((_, ticket)) = joined {
        let cookie = cookie(&item, &ticket.token, &headers);
        // Tokens and item ids are made of characters that headers may have.
        answer
            .headers_mut()
            .extend(cookie.parse::<HeaderValue>().map(|cookie| (SET_COOKIE, cookie)));
    }
    Ok(answer)
}

/// The headline for the code of a refused join. Anybody can write a code into an address, so that
/// only known ones are shown.
fn headline(code: &str) -> &'static str {
    match code {
        "LINE_FULL" => "fullHead",
        "STORE_FULL" => "busyHead",
        "RATE_LIMITED" => "limitedHead",
        "UNAVAILABLE" => "troubleHead",
        _ => "refusedHead",
    }
}

/// `GET /wait/{itemId}/look.css`
pub(crate) async fn look(
    State(room): State<Arc<Room>>,
    OfItem(item): OfItem,
) -> Result<impl IntoResponse> {
    let accent = room.face(&item).await?.look.accent;
    let headers = [(CONTENT_TYPE, CSS), (CACHE_CONTROL, "public, max-age=60")];
    Ok((headers, accent.map(wait_page::style_of).unwrap_or_default()))
}

/// `GET /wait/{itemId}/page.json`: for pages that poll; a stream sends the event `page`.
pub(crate) async fn texts(
    State(room): State<Arc<Room>>,
    OfItem(item): OfItem,
) -> Result<impl IntoResponse> {
    let page = room.face(&item).await?.page;
    Ok(([(CACHE_CONTROL, "public, max-age=1")], Json(PageTexts::clone(&page))))
}

/// `GET /wait.js`
pub(crate) async fn script(RawQuery(query): RawQuery) -> Response {
    let kind = "text/javascript; charset=utf-8";
    Asset { kind, text: wait_page::SCRIPT }.answer(query.as_deref(), &wait_page::VERSION)
}

/// `GET /wait.css`
pub(crate) async fn style(RawQuery(query): RawQuery) -> Response {
    Asset { kind: CSS, text: wait_page::STYLE }.answer(query.as_deref(), &wait_page::VERSION)
}

fn page_headers() -> [(HeaderName, &'static str); 6] {
    [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, OWN_ONLY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (VARY, "Accept-Language, Cookie"),
    ]
}

/// The ticket in the cookie, not yet believed.
fn presented(item: &ItemId, headers: &HeaderMap) -> Option<Presented> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
    let (_, token) = pairs.find(|(name, _)| name.trim() == TICKET)?;
    Some(Presented { item: item.clone(), token: token.trim().to_owned(), user: None })
}

fn cookie(item: &ItemId, token: &str, headers: &HeaderMap) -> String {
    let is_https = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let secure = if is_https { "; Secure" } else { "" };
    format!(
        "{TICKET}={token}; Path=/wait/{item}; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}"
    )
}

/// Another site's form must not replace the place somebody has here. Browsers say where a form
/// comes from; whoever is no browser has no cookie to lose.
fn same_site(headers: &HeaderMap) -> Result<()> {
    match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Error::invalid("this form is sent by another site")),
    }
}

/// Nobody can guess it, so nobody can ask for this person's place by naming them.
fn new_user() -> Result<UserId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| Error::Slow)?;
    Ok(UserId::parse(&format!("web-{:032x}", u128::from_be_bytes(bytes)))?)
}
