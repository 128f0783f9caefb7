//! The public record of a draw.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, VARY};
use axum::response::{IntoResponse, Response};
use daegi_runtime::http::QueryParams;

use super::{BearerToken, ItemPath};
use crate::access::Client;
use crate::error::Result;
use crate::tickets::{TicketService, UnverifiedToken};
use crate::wire::DrawQuery;

/// `GET …/waiting-queue/draw`
pub(crate) async fn draw(
    State(service): State<Arc<TicketService>>,
    ItemPath(item): ItemPath,
    BearerToken(bearer): BearerToken,
    QueryParams(query): QueryParams<DrawQuery>,
) -> Result<Response> {
    let Some(token) = query.token.or(bearer) else {
        let record = service.draw_record(&item).await?;
        // A cache must not answer a request that has a token with the record that has no proof.
        let headers = [(CACHE_CONTROL, "public, max-age=1"), (VARY, "authorization")];
        return Ok((headers, Json(record)).into_response());
    };
    let presented = UnverifiedToken { item, token, user: None, client: Client::default() };
    let record = service.draw_record_of(&presented).await?;
    Ok(([(CACHE_CONTROL, "no-store")], Json(record)).into_response())
}
