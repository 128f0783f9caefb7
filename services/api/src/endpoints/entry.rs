//! Verification and completion of entries for order services, and reports about the origin.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use daegi_runtime::http::JsonBody;

use super::{ItemPath, RequestTrace};
use crate::error::{Error, Result};
use crate::tickets::{Credential, TicketService};
use crate::wire::{Completed, OriginHealth, TokenOrPass, Verdict};

/// `POST …/entry/verify`
pub(crate) async fn verify(
    State(service): State<Arc<TicketService>>,
    ItemPath(item): ItemPath,
    JsonBody(body): JsonBody<TokenOrPass>,
) -> Result<Json<Verdict>> {
    Ok(Json(service.verify(&item, credential(body)?).await?))
}

/// `POST …/entry/complete`
pub(crate) async fn complete(
    State(service): State<Arc<TicketService>>,
    RequestTrace(begun): RequestTrace,
    ItemPath(item): ItemPath,
    JsonBody(body): JsonBody<TokenOrPass>,
) -> Result<Json<Completed>> {
    let released = service.complete(item, credential(body)?, begun.as_ref()).await?;
    Ok(Json(Completed { released }))
}

/// `POST …/origin-health`
pub(crate) async fn origin_health(
    State(service): State<Arc<TicketService>>,
    ItemPath(item): ItemPath,
    JsonBody(report): JsonBody<OriginHealth>,
) -> Result<StatusCode> {
    service.report_origin(item, report).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn credential(body: TokenOrPass) -> Result<Credential> {
    match (body.token, body.pass) {
        (Some(token), None) => Ok(Credential::Token(token)),
        (None, Some(pass)) => Ok(Credential::Pass(pass)),
        _ => Err(Error::invalid("exactly one of token and pass is needed")),
    }
}
