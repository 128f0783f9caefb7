//! Handing a ticket over to another device.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::response::IntoResponse;
use daegi_runtime::http::JsonBody;

use super::ItemPath;
use super::tickets::ticket_response;
use crate::access::Client;
use crate::error::Result;
use crate::tickets::{TicketService, UnverifiedToken};
use crate::wire::TakeOver;

/// `POST …/waiting-queue/{token}/handover`
pub(crate) async fn issue(
    State(service): State<Arc<TicketService>>,
    presented: UnverifiedToken,
) -> Result<impl IntoResponse> {
    Ok(([(CACHE_CONTROL, "no-store")], Json(service.issue_handover(&presented)?)))
}

/// `GET …/waiting-queue/{token}/handover`
pub(crate) async fn used(
    State(service): State<Arc<TicketService>>,
    presented: UnverifiedToken,
) -> Result<impl IntoResponse> {
    Ok(([(CACHE_CONTROL, "no-store")], Json(service.handover_use(&presented).await?)))
}

/// `POST …/waiting-queue/handover`
pub(crate) async fn take(
    State(service): State<Arc<TicketService>>,
    ItemPath(item): ItemPath,
    client: Client,
    JsonBody(body): JsonBody<TakeOver>,
) -> Result<impl IntoResponse> {
    Ok(ticket_response(&service.take_over(&item, &body.code, client).await?))
}
