//! HTTP handlers: extract, call one use case, map its result.
//!
//! | file | endpoints |
//! |---|---|
//! | `endpoints/tickets.rs` | join, poll, leave, the public line; the fast path of polls and joins |
//! | `endpoints/streams.rs` | server-sent events and WebSocket |
//! | `endpoints/entry.rs` | verify and complete, for order services |
//! | `endpoints/docs.rs` | public keys, OpenAPI document, docs page |
//! | `endpoints/waiting_page.rs` | the waiting page |
//!
//! This file has the extractors that they share.

pub(crate) mod docs;
pub(crate) mod draw;
pub(crate) mod entry;
pub(crate) mod streams;
pub(crate) mod tickets;
pub(crate) mod waiting_page;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use daegi_domain::{ItemId, UserId};
use daegi_runtime::Problem;
use daegi_runtime::http::{PathParams, Peer, bearer};
use daegi_runtime::spans::RequestStart;

use crate::Error;
use crate::tickets::{TicketService, UnverifiedToken};

/// Path segment that stands for the token in the `Authorization` header, for clients that keep
/// tokens out of URLs. It is not a valid token.
const ME: &str = "me";
const USER_ID: &str = "user-id";
const DAEGI_CODE: &str = "daegi-code";
const DAEGI_CHALLENGE: &str = "daegi-challenge";

/// The item of the path.
pub(crate) struct ItemPath(pub(crate) ItemId);

/// The user of the `user-id` header, if present.
pub(crate) struct UserHeader(pub(crate) Option<UserId>);

/// The headers of a join, where present.
pub(crate) struct JoinHeaders {
    /// The token of an earlier ticket, from `Authorization`.
    pub(crate) token: Option<String>,
    /// The invitation code, from `daegi-code`.
    pub(crate) code: Option<String>,
    /// The solution of a challenge, from `daegi-challenge`.
    pub(crate) challenge: Option<String>,
}

/// The address of the client; `None` for a request without a connection.
pub(crate) struct ClientAddress(pub(crate) Option<IpAddr>);

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

impl FromRequestParts<Arc<TicketService>> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<TicketService>,
    ) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<Peer>();
        Ok(Self(peer.map(|Peer(peer)| service.rate_limits.client(peer.ip(), &parts.headers))))
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
        _: &Arc<TicketService>,
    ) -> Result<Self, Problem> {
        let text = |name: &str| match parts.headers.get(name).map(|value| value.to_str()) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value.to_owned())),
            Some(Err(_)) => Err(Error::invalid(format!("the {name} header is not ASCII"))),
        };
        let token = bearer(&parts.headers).map(str::to_owned);
        Ok(Self { token, code: text(DAEGI_CODE)?, challenge: text(DAEGI_CHALLENGE)? })
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
        Ok(Self { item, token, user: user_header(&parts.headers)?.map(str::to_owned) })
    }
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
