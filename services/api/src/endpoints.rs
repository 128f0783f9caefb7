//! HTTP handlers: extract, call one use case, map its result.
//!
//! | file | endpoints |
//! |---|---|
//! | `endpoints/tickets.rs` | join, poll, leave, the public line; the fast path of polls and joins |
//! | `endpoints/streams.rs` | server-sent events and WebSocket |
//! | `endpoints/handover.rs` | handing a ticket over to another device |
//! | `endpoints/entry.rs` | verify and complete, for order services; reports about the origin |
//! | `endpoints/gate.rs` | the gate for proxies |
//! | `endpoints/docs.rs` | public keys, OpenAPI document, docs page |
//! | `endpoints/waiting_page.rs` | the waiting page |
//!
//! This file has the extractors that they share.

pub(crate) mod docs;
pub(crate) mod draw;
pub(crate) mod entry;
pub(crate) mod gate;
pub(crate) mod handover;
pub(crate) mod streams;
pub(crate) mod tickets;
pub(crate) mod waiting_page;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum::http::request::Parts;
use daegi_domain::{ItemId, UserId};
use daegi_runtime::Problem;
use daegi_runtime::http::{PathParams, Peer, bearer};
use daegi_runtime::spans::RequestStart;

use crate::Error;
use crate::access::Client;
use crate::signals::JoinSignals;
use crate::tickets::{TicketService, UnverifiedToken};

/// Path segment that stands for the token in the `Authorization` header, for clients that keep
/// tokens out of URLs. It is not a valid token.
const ME: &str = "me";
const USER_ID: &str = "user-id";
const DAEGI_CODE: &str = "daegi-code";
const DAEGI_CHALLENGE: &str = "daegi-challenge";
/// The header with a signed identity, and the cookie in which the site may set one for the waiting page.
const DAEGI_IDENTITY: &str = "daegi-identity";

/// The item of the path.
pub(crate) struct ItemPath(pub(crate) ItemId);

/// The user of the `user-id` header, if present.
pub(crate) struct UserHeader(pub(crate) Option<UserId>);

/// The header with which the waiting page joins.
const DAEGI_PAGE: &str = "daegi-page";

/// The headers of a join, where present.
pub(crate) struct JoinHeaders {
    /// The token of an earlier ticket, from `Authorization`.
    pub(crate) token: Option<String>,
    /// The invitation code, from `daegi-code`.
    pub(crate) code: Option<String>,
    /// The solution of a challenge, from `daegi-challenge`.
    pub(crate) challenge: Option<String>,
    /// Who sends the join.
    pub(crate) client: Client,
    /// Signs of a program.
    pub(crate) signals: JoinSignals,
    /// The signed identity, from `daegi-identity`.
    pub(crate) identity: Option<String>,
}

/// The token of the `Authorization` header, if present.
pub(crate) struct BearerToken(pub(crate) Option<String>);

/// The start of the request, for its span; `None` if tracing is off.
pub(crate) struct RequestTrace(pub(crate) Option<RequestStart>);

impl FromRequestParts<Arc<TicketService>> for RequestTrace {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<TicketService>,
    ) -> Result<Self, Infallible> {
        Ok(Self(service.tracer.begin(&parts.headers)))
    }
}

impl FromRequestParts<Arc<TicketService>> for BearerToken {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &Arc<TicketService>,
    ) -> Result<Self, Problem> {
        Ok(Self(bearer(&parts.headers).map(str::to_owned)))
    }
}

impl FromRequestParts<Arc<TicketService>> for JoinHeaders {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<TicketService>,
    ) -> Result<Self, Problem> {
        let text = |name: &str| match parts.headers.get(name).map(|value| value.to_str()) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value.to_owned())),
            Some(Err(_)) => Err(Error::invalid(format!("the {name} header is not ASCII"))),
        };
        let (code, challenge) = (text(DAEGI_CODE)?, text(DAEGI_CHALLENGE)?);
        let client = client(parts, service);
        let signals = service.signals.join_signals(client.source(), &parts.headers, DAEGI_PAGE);
        let identity = identity(&parts.headers)?;
        let token = bearer(&parts.headers).map(str::to_owned);
        Ok(Self { token, code, challenge, client, signals, identity })
    }
}

impl FromRequestParts<Arc<TicketService>> for ItemPath {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<TicketService>,
    ) -> Result<Self, Problem> {
        let PathParams(item) = PathParams::<String>::from_request_parts(parts, service).await?;
        Ok(Self(ItemId::parse(&item).map_err(Error::from)?))
    }
}

impl FromRequestParts<Arc<TicketService>> for UserHeader {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &Arc<TicketService>,
    ) -> Result<Self, Problem> {
        let user = user_header(&parts.headers)?.map(UserId::parse).transpose();
        Ok(Self(user.map_err(Error::from)?))
    }
}

impl FromRequestParts<Arc<TicketService>> for UnverifiedToken {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<TicketService>,
    ) -> Result<Self, Problem> {
        let path = PathParams::<(String, String)>::from_request_parts(parts, service).await;
        let PathParams((item, token)) = path?;
        let item = ItemId::parse(&item).map_err(Error::from)?;
        let token = match token.as_str() {
            ME => bearer(&parts.headers).ok_or(Error::MissingToken)?.to_owned(),
            _ => token,
        };
        let user = user_header(&parts.headers)?.map(str::to_owned);
        Ok(Self { item, token, user, client: client(parts, service) })
    }
}

impl FromRequestParts<Arc<TicketService>> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<TicketService>,
    ) -> Result<Self, Infallible> {
        Ok(client(parts, service))
    }
}

fn client(parts: &Parts, service: &TicketService) -> Client {
    let peer = parts.extensions.get::<Peer>().map(|Peer(address)| address.ip());
    service.client(peer, &parts.headers)
}

/// Returns the `user-id` header. Rejects a repeated header, because a proxy and this pod could read
/// different users from the same request.
fn user_header(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let mut values = headers.get_all(USER_ID).iter();
    let Some(user) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Error::invalid("the user-id header is given more than once"));
    }
    let user = user.to_str().map_err(|_| Error::invalid("the user-id header is not ASCII"))?;
    Ok(Some(user))
}

/// Returns the signed identity of the header or, in a request that no other site caused, of the cookie. Rejects a
/// repeated header, as that of the user.
fn identity(headers: &HeaderMap) -> Result<Option<String>, Error> {
    let mut values = headers.get_all(DAEGI_IDENTITY).iter();
    match (values.next(), values.next()) {
        (None, _) => {
            let cookie = || cookie_value(headers, DAEGI_IDENTITY).map(str::to_owned);
            Ok(is_same_site(headers).then(cookie).flatten())
        }
        (Some(value), None) => {
            let text = value.to_str();
            let text =
                text.map_err(|_| Error::invalid("the daegi-identity header is not ASCII"))?;
            Ok(Some(text.trim().to_owned()))
        }
        (Some(_), Some(_)) => {
            Err(Error::invalid("the daegi-identity header is given more than once"))
        }
    }
}

/// Returns the value of a cookie.
fn cookie_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(found, _)| found.trim() == name)?;
    Some(value.trim())
}

/// Returns whether no other site caused the request. Browsers send `Sec-Fetch-Site`; other clients have no cookies that
/// another site could use.
fn is_same_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    matches!(site, None | Some(b"same-origin" | b"none"))
}
