use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_runtime::http::JsonBody;

use super::presented::{OfItem, Traced};
use crate::error::{Error, Result};
use crate::room::{Proof, Room};
use crate::wire::{Completed, TokenOrPass, Verdict};

/// `POST …/entry/verify`
pub(crate) async fn verify(
    State(room): State<Arc<Room>>,
    OfItem(item): OfItem,
    JsonBody(body): JsonBody<TokenOrPass>,
) -> Result<Json<Verdict>> {
    Ok(Json(room.verify(&item, proof(body)?).await?))
}

/// `POST …/entry/complete`
pub(crate) async fn complete(
    State(room): State<Arc<Room>>,
    Traced(begun): Traced,
    OfItem(item): OfItem,
    JsonBody(body): JsonBody<TokenOrPass>,
) -> Result<Json<Completed>> {
    let released = room.complete(item, proof(body)?, begun.as_ref()).await?;
    Ok(Json(Completed { released }))
}

fn proof(body: TokenOrPass) -> Result<Proof> {
    match (body.token, body.pass) {
        (Some(token), None) => Ok(Proof::Token(token)),
        (None, Some(pass)) => Ok(Proof::Pass(pass)),
        _ => Err(Error::invalid("exactly one of token and pass is needed")),
    }
}
