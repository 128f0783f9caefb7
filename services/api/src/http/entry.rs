use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_runtime::http::JsonBody;

use super::presented::{OfItem, Traced};
use crate::error::{Error, Result};
use crate::room::{Presented, Proof, Room};
use crate::wire::{Complete, Completed, Verdict, Verify};

/// `POST …/entry/verify`
pub(crate) async fn verify(
    State(room): State<Arc<Room>>,
    OfItem(item): OfItem,
    JsonBody(body): JsonBody<Verify>,
) -> Result<Json<Verdict>> {
    let proof = match (body.token, body.pass) {
        (Some(token), None) => Proof::Token(token),
        (None, Some(pass)) => Proof::Pass(pass),
        _ => return Err(Error::invalid("exactly one of token and pass is needed")),
    };
    Ok(Json(room.verify(&item, proof).await?))
}

/// `POST …/entry/complete`
pub(crate) async fn complete(
    State(room): State<Arc<Room>>,
    Traced(begun): Traced,
    OfItem(item): OfItem,
    JsonBody(body): JsonBody<Complete>,
) -> Result<Json<Completed>> {
    let presented = Presented { item, token: body.token, user: None };
    let released = room.complete(&presented, begun.as_ref()).await?;
    Ok(Json(Completed { released }))
}
