use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use daegi_domain::UserId;
use daegi_runtime::Problem;
use daegi_runtime::http::{JsonBody, QueryParams};

use super::presented::{HeldToken, OfItem, Traced, UserHeader};
use crate::error::{Error, Result};
use crate::room::{Presented, Room};
use crate::wire::{Join, Ticket, Wait};

/// `POST …/waiting-queue`
pub(crate) async fn join(
    State(room): State<Arc<Room>>,
    Traced(begun): Traced,
    OfItem(item): OfItem,
    UserHeader(named): UserHeader,
    HeldToken(token): HeldToken,
    body: Option<JsonBody<Join>>,
) -> Result<Response> {
    let user = one_user(named, body.and_then(|JsonBody(body)| body.user_id))?;
    let (new, ticket) = room.join(&item, user, token.as_deref(), begun.as_ref()).await?;
    Ok(joined(new, &ticket))
}

/// `GET …/waiting-queue/{token}`
pub(crate) async fn poll(
    State(room): State<Arc<Room>>,
    presented: Presented,
    QueryParams(wait): QueryParams<Wait>,
) -> Result<Response> {
    let (began, patience) = (Instant::now(), patience(&wait)?);
    let polled = room.poll(presented, patience).await;
    if patience.is_zero() {
        room.meters.poll_seconds.record(began.elapsed());
    }
    Ok(answer(&polled?))
}

/// `DELETE …/waiting-queue/{token}`
pub(crate) async fn leave(
    State(room): State<Arc<Room>>,
    Traced(begun): Traced,
    presented: Presented,
) -> Result<StatusCode> {
    room.leave(&presented, begun.as_ref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET …/waiting-queue`
pub(crate) async fn line(
    State(room): State<Arc<Room>>,
    OfItem(item): OfItem,
) -> Result<impl IntoResponse> {
    let line = room.line(&item).await?;
    Ok(([(CACHE_CONTROL, "public, max-age=1")], Json(line)))
}

fn one_user(header: Option<UserId>, body: Option<UserId>) -> Result<UserId> {
    match (header, body) {
        (Some(header), Some(body)) if header != body => {
            Err(Error::invalid("the user-id header and userId name different people"))
        }
        (Some(user), _) | (None, Some(user)) => Ok(user),
        (None, None) => Err(Error::invalid("who joins? Give a user-id header or userId")),
    }
}

fn patience(wait: &Wait) -> Result<Duration> {
    match wait.wait_ms.unwrap_or(0) {
        ms @ 0..=Wait::MAX_MS => Ok(Duration::from_millis(ms)),
        ms => Err(Error::invalid(format!("waitMs is {ms}, at most {} is allowed", Wait::MAX_MS))),
    }
}

/// The answer to a join.
pub(super) fn joined(new: bool, ticket: &Ticket) -> Response {
    let mut response = answer(ticket);
    if new {
        *response.status_mut() = StatusCode::CREATED;
    }
    response
}

/// A ticket is one person's, and old a moment later: no cache keeps it.
pub(super) fn answer(ticket: &Ticket) -> Response {
    let Ok(body) = ticket.to_json() else { return Problem::internal().into_response() };
    // By hand: a tuple of parts would take the body for bytes first and copy what is static here.
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if ticket.poll_after_ms > 0 {
        headers.insert(RETRY_AFTER, HeaderValue::from(ticket.poll_after_ms.div_ceil(1000)));
    }
    response
}
