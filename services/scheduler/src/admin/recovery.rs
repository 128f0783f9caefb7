//! What an operator can do about data loss that no process has seen.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::rfc3339;
use daegi_store::TAKE_BACK_MS;
use serde::Serialize;
use serde_json::{Value, json};

use super::audit::Operator;
use super::{Admin, Answer, ask};

/// The reclaim window that a declared loss opens.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Declared {
    declared_at: String,
    reclaim_until: String,
}

/// Declares that the store lost data, in every partition. Declaring it again opens the window again.
pub(super) async fn declare_loss(
    State(admin): State<Arc<Admin>>,
    operator: Operator,
) -> Answer<Json<Declared>> {
    let now = admin.clock.now_ms();
    ask(admin.store.declare_loss(now)).await?;
    let reclaim_until = rfc3339(now + TAKE_BACK_MS);
    let change = (Value::Null, json!({ "reclaimUntil": reclaim_until }));
    admin.note(operator, "declare data loss", None, change).await;
    Ok(Json(Declared { declared_at: rfc3339(now), reclaim_until }))
}
