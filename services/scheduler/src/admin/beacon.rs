//! The signature of a draw's beacon, handed in by an operator.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_beacon::{is_signed, parse_signature};
use daegi_domain::ItemId;
use daegi_runtime::http::{JsonBody, PathParams};
use daegi_store::BeaconOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::audit::Operator;
use super::view::ItemView;
use super::{AdminError, AdminResult, AdminState, store_call};

/// The signature of a round of drand's quicknet, as its relays publish it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({
    "round": 657_413,
    "signature": "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b",
}))]
pub(super) struct BeaconSignature {
    /// The round that the opening names.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    round: u64,
    /// Hexadecimal text of 96 characters.
    #[schemars(extend("pattern" = "^[0-9a-fA-F]{96}$"))]
    signature: String,
}

/// `PUT …/opening/beacon`: stores the signature for which a draw waits. The leader opens the line with its next
/// tick. A repeat changes nothing.
pub(super) async fn put(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
    PathParams(id): PathParams<ItemId>,
    JsonBody(body): JsonBody<BeaconSignature>,
) -> AdminResult<Json<ItemView>> {
    let item = store_call(admin.store.item(&id)).await?;
    let item = item.ok_or_else(|| AdminError::ItemNotFound(id.clone()))?;
    let beacon = item.draw.and_then(|draw| draw.beacon);
    let expected = beacon.ok_or_else(|| AdminError::NoBeacon(id.clone()))?.round;
    let given = body.round;
    if given != expected {
        return Err(AdminError::OtherRound { item: id, expected, given });
    }
    let signature =
        parse_signature(&body.signature).filter(|signature| is_signed(given, signature));
    let signature = signature.ok_or(AdminError::NotSigned(given))?;
    let put = admin.store.put_beacon(&id, given, &signature, admin.clock.now_ms());
    match store_call(put).await? {
        BeaconOutcome::Stored => {
            let change = (Value::Null, json!({ "beacon": body }));
            admin.record_audit(operator, "hand in beacon", Some(&id), change).await;
        }
        BeaconOutcome::Known => {}
        BeaconOutcome::NotAwaited => return Err(AdminError::NoBeacon(id)),
    }
    let item = store_call(admin.store.item(&id)).await?.ok_or(AdminError::ItemNotFound(id))?;
    Ok(Json(ItemView::load(&admin, item).await?))
}
