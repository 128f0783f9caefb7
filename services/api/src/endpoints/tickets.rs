//! Join, poll and leave, and the public view of a line.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, TRANSFER_ENCODING,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use daegi_domain::{ItemId, UserId};
use daegi_runtime::Problem;
use daegi_runtime::http::{FastResponse, JsonBody, QueryParams, RequestHead};

use super::{
    DAEGI_CHALLENGE, DAEGI_CODE, DAEGI_PAGE, ItemPath, JoinHeaders, RequestTrace, UserHeader,
    bearer, user_header,
};
use crate::access::Client;
use crate::error::{Error, Result};
use crate::tickets::{ClaimedUser, JoinRequest, TicketService, UnverifiedToken};
use crate::visits::Visit;
use crate::wire::{Join, Ticket, Wait};

/// `POST …/waiting-queue`
pub(crate) async fn join(
    State(service): State<Arc<TicketService>>,
    RequestTrace(begun): RequestTrace,
    ItemPath(item): ItemPath,
    UserHeader(named): UserHeader,
    JoinHeaders { token, code, challenge, client, signals, identity }: JoinHeaders,
    visit: Visit,
    body: Option<JsonBody<Join>>,
) -> Result<Response> {
    let body = body.map_or_else(Join::default, |JsonBody(body)| body);
    let named = one_of(named, body.user_id)
        .ok_or(Error::invalid("the user-id header and userId name different users"))?;
    let code = one_of(code, body.code)
        .ok_or(Error::invalid("the daegi-code header and code contain different codes"))?;
    let solution = one_of(challenge, body.challenge).ok_or(Error::invalid(
        "the daegi-challenge header and challenge contain different solutions",
    ))?;
    let claimed = ClaimedUser { named, assertion: identity.as_deref() };
    let (user, lane) = service.identify(claimed).await?;
    let (token, code, solution) = (token.as_deref(), code.as_deref(), solution.as_deref());
    let client = &client;
    let request = JoinRequest { user, lane, token, code, solution, client, signals, visit };
    let (new, ticket) = service.join(&item, request, begun.as_ref()).await?;
    Ok(join_response(new, &ticket))
}

/// `GET …/waiting-queue/{token}`
pub(crate) async fn poll(
    State(service): State<Arc<TicketService>>,
    presented: UnverifiedToken,
    QueryParams(wait): QueryParams<Wait>,
) -> Result<Response> {
    let (began, wait) = (Instant::now(), wait_duration(&wait)?);
    let polled = service.poll(presented, wait).await;
    if wait.is_zero() {
        service.metrics.poll_seconds.record(began.elapsed());
    }
    Ok(ticket_response(&polled?))
}

/// `DELETE …/waiting-queue/{token}`
pub(crate) async fn leave(
    State(service): State<Arc<TicketService>>,
    RequestTrace(begun): RequestTrace,
    presented: UnverifiedToken,
) -> Result<StatusCode> {
    service.leave(&presented, begun.as_ref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET …/waiting-queue`
pub(crate) async fn line(
    State(service): State<Arc<TicketService>>,
    ItemPath(item): ItemPath,
) -> Result<impl IntoResponse> {
    let line = service.line(&item).await?;
    Ok(([(CACHE_CONTROL, "public, max-age=1")], Json(line)))
}

/// Fast path: answers polls of cached tickets, and joins without a body, a code, a solution and an identity whose
/// user is in a header, before the router.
/// These are nearly all requests. Returns `None` for all others, including invalid ones, which the
/// handlers above then answer.
pub(crate) fn fast_path(
    service: &Arc<TicketService>,
    head: RequestHead<'_>,
) -> Option<FastResponse> {
    let path = head.uri.path().strip_prefix("/api/v1/item/")?;
    let (item, path) = path.split_once('/')?;
    let rest = path.strip_prefix("waiting-queue")?;
    if head.uri.query().is_some() {
        return None;
    }
    // Valid ids and tokens contain no escaped characters, so the raw path equals the router's
    // decoded path.
    let item = ItemId::parse(item).ok()?;
    match (head.method, rest.strip_prefix('/')) {
        (&Method::GET, Some(token)) => {
            fast_poll(service, item, token, head).map(FastResponse::Ready)
        }
        (&Method::POST, None) if rest.is_empty() => fast_join(service, item, head),
        _ => None,
    }
}

fn fast_poll(
    service: &TicketService,
    item: ItemId,
    token: &str,
    head: RequestHead<'_>,
) -> Option<Response> {
    let began = Instant::now();
    let user = user_header(head.headers).ok()?.map(str::to_owned);
    let client = match service.access.is_empty() {
        true => Client::default(),
        false => service.client(head.peer, head.headers),
    };
    let presented = UnverifiedToken { item, token: token.to_owned(), user, client };
    let ticket = service.poll_cached(presented)?;
    service.metrics.poll_seconds.record(began.elapsed());
    Some(ticket_response(&ticket))
}

fn fast_join(
    service: &Arc<TicketService>,
    item: ItemId,
    head: RequestHead<'_>,
) -> Option<FastResponse> {
    let headers = head.headers;
    let user = UserId::parse(user_header(headers).ok()??).ok()?;
    // A code or a solution is in these headers or in the body.
    let has_body = headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0")
        || headers.contains_key(TRANSFER_ENCODING);
    if service.needs_identity() {
        return None;
    }
    if has_body || headers.contains_key(DAEGI_CODE) || headers.contains_key(DAEGI_CHALLENGE) {
        return None;
    }
    let token = bearer(headers).map(str::to_owned);
    let (begun, visit) = (service.tracer.begin(headers), service.visits.classify(headers));
    let client = service.client(head.peer, headers);
    let signals = service.signals.join_signals(client.source(), headers, DAEGI_PAGE);
    let service = Arc::clone(service);
    Some(FastResponse::Pending(Box::pin(async move {
        let token = token.as_deref();
        let client = &client;
        let (lane, code, solution) = (None, None, None);
        let request = JoinRequest { user, lane, token, code, solution, client, signals, visit };
        let joined = service.join(&item, request, begun.as_ref()).await;
        joined.map(|(new, ticket)| join_response(new, &ticket)).into_response()
    })))
}

/// Returns the value of a header or of the body. Returns `None` if they differ.
fn one_of<T: PartialEq>(header: Option<T>, body: Option<T>) -> Option<Option<T>> {
    let differ = header.is_some() && body.is_some() && header != body;
    (!differ).then(|| header.or(body))
}

fn wait_duration(wait: &Wait) -> Result<Duration> {
    match wait.wait_ms.unwrap_or(0) {
        ms @ 0..=Wait::MAX_MS => Ok(Duration::from_millis(ms)),
        ms => Err(Error::invalid(format!("waitMs is {ms}, at most {} is allowed", Wait::MAX_MS))),
    }
}

fn join_response(new: bool, ticket: &Ticket) -> Response {
    let mut response = ticket_response(ticket);
    if new {
        *response.status_mut() = StatusCode::CREATED;
    }
    response
}

/// Builds the response of a ticket. `no-store`, because it is private and changes at any time.
pub(super) fn ticket_response(ticket: &Ticket) -> Response {
    let Ok(body) = ticket.to_json() else { return Problem::internal().into_response() };
    // Not built from a tuple of parts: that would copy the static header values.
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if ticket.poll_after_ms > 0 {
        headers.insert(RETRY_AFTER, HeaderValue::from(ticket.poll_after_ms.div_ceil(1000)));
    }
    response
}
