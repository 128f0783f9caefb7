use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use daegi_domain::{ItemId, UserId};
use daegi_runtime::Problem;
use daegi_runtime::http::PathParams;
use daegi_runtime::traces::Begun;

use crate::Error;
use crate::room::{Presented, Room};

/// Stands for a token in the `Authorization` header, for clients that keep tokens out of
/// addresses. No token reads like this.
const ME: &str = "me";
const USER_ID: &str = "user-id";

/// The item of an address.
pub(crate) struct OfItem(pub(crate) ItemId);

/// Whom the `user-id` header names, if it is there.
pub(crate) struct UserHeader(pub(crate) Option<UserId>);

/// The token of a person who joins again, if they present it.
pub(crate) struct HeldToken(pub(crate) Option<String>);

/// When the request began, for its span; nothing where traces are off.
pub(crate) struct Traced(pub(crate) Option<Begun>);

impl FromRequestParts<Arc<Room>> for Traced {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, room: &Arc<Room>) -> Result<Self, Infallible> {
        Ok(Self(room.traces.begin(&parts.headers)))
    }
}

impl FromRequestParts<Arc<Room>> for HeldToken {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Room>) -> Result<Self, Problem> {
        Ok(Self(bearer(&parts.headers).map(str::to_owned)))
    }
}

impl FromRequestParts<Arc<Room>> for OfItem {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, room: &Arc<Room>) -> Result<Self, Problem> {
        let PathParams(item) = PathParams::<String>::from_request_parts(parts, room).await?;
        Ok(Self(ItemId::parse(&item).map_err(Error::from)?))
    }
}

impl FromRequestParts<Arc<Room>> for UserHeader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Room>) -> Result<Self, Problem> {
        let user = user_header(&parts.headers)?.map(UserId::parse).transpose();
        Ok(Self(user.map_err(Error::from)?))
    }
}

impl FromRequestParts<Arc<Room>> for Presented {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, room: &Arc<Room>) -> Result<Self, Problem> {
        let path = PathParams::<(String, String)>::from_request_parts(parts, room).await;
        let PathParams((item, token)) = path?;
        let item = ItemId::parse(&item).map_err(Error::from)?;
        let token = match token.as_str() {
            ME => bearer(&parts.headers).ok_or(Error::NoToken)?.to_owned(),
            _ => token,
        };
        Ok(Self { item, token, user: user_header(&parts.headers)?.map(str::to_owned) })
    }
}

/// Two different headers would let two readers of one request see two people.
pub(super) fn user_header(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let mut named = headers.get_all(USER_ID).iter();
    let Some(user) = named.next() else {
        return Ok(None);
    };
    if named.next().is_some() {
        return Err(Error::invalid("the user-id header is given more than once"));
    }
    let user = user.to_str().map_err(|_| Error::invalid("the user-id header is not ASCII"))?;
    Ok(Some(user))
}

pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
