//! What nearly every request is, answered before the router sees it: the poll of somebody who waits,
//! and the join of somebody whom a header names. Everything else, above all everything that is
//! wrong, goes the way of `http/queue.rs`.

use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse, Response};
use daegi_domain::{ItemId, UserId};
use daegi_runtime::http::{Head, Taken};

use super::presented::{bearer, user_header};
use super::queue::{answer, joined};
use crate::room::{Presented, Room};

pub(crate) fn take(room: &Arc<Room>, head: Head<'_>) -> Option<Taken> {
    let path = head.uri.path().strip_prefix("/api/v1/item/")?;
    let (item, path) = path.split_once('/')?;
    let rest = path.strip_prefix("waiting-queue")?;
    if head.uri.query().is_some() {
        return None;
    }
    // No id and no genuine token has an escaped character in it, so what is read here is what the
    // router would read.
    let item = ItemId::parse(item).ok()?;
    match (head.method, rest.strip_prefix('/')) {
        (&Method::GET, Some(token)) => poll(room, item, token, head.headers).map(Taken::Now),
        (&Method::POST, None) if rest.is_empty() => join(room, item, head.headers),
        _ => None,
    }
}

fn poll(room: &Room, item: ItemId, token: &str, headers: &HeaderMap) -> Option<Response> {
    let began = Instant::now();
    let user = user_header(headers).ok()?.map(str::to_owned);
    let ticket = room.poll_at_once(Presented { item, token: token.to_owned(), user })?;
    room.meters.poll_seconds.record(began.elapsed());
    Some(answer(&ticket))
}

fn join(room: &Arc<Room>, item: ItemId, headers: &HeaderMap) -> Option<Taken> {
    let user = UserId::parse(user_header(headers).ok()??).ok()?;
    let token = bearer(headers).map(str::to_owned);
    let begun = room.traces.begin(headers);
    let room = Arc::clone(room);
    Some(Taken::Soon(Box::pin(async move {
        let outcome = room.join(&item, user, token.as_deref(), begun.as_ref()).await;
        outcome.map(|(new, ticket)| joined(new, &ticket)).into_response()
    })))
}
