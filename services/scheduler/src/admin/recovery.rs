//! Declares a data loss that no process has detected.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::rfc3339;
use daegi_store::RECLAIM_WINDOW_MS;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::audit::Operator;
use super::{AdminResult, AdminState, store_call};

/// The reclaim window that a declared loss opens.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeclaredLoss")]
#[schemars(example = json!({
    "declaredAt": "2026-11-20T19:00:00.000Z",
    "reclaimUntil": "2026-11-20T19:50:00.000Z",
}))]
pub(super) struct Declared {
    #[schemars(extend("format" = "date-time"))]
    declared_at: String,
    #[schemars(extend("format" = "date-time"))]
    reclaim_until: String,
}

/// Declares a data loss in every partition. Another declaration opens the reclaim window again.
pub(super) async fn declare_loss(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
) -> AdminResult<Json<Declared>> {
    let now = admin.clock.now_ms();
    store_call(admin.store.declare_loss(now)).await?;
    let reclaim_until = rfc3339(now + RECLAIM_WINDOW_MS);
    let change = (Value::Null, json!({ "reclaimUntil": reclaim_until }));
    admin.record_audit(operator, "declare data loss", None, change).await;
    Ok(Json(Declared { declared_at: rfc3339(now), reclaim_until }))
}
