//! Named operators: list, create, remove, and the caller's own identity.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use daegi_domain::{
    ItemPrefix, OperatorName, OperatorRecord, OperatorRole, OperatorToken, parse_rfc3339, rfc3339,
};
use daegi_runtime::http::{JsonBody, PathParams};
use daegi_store::{MAX_OPERATORS, PutOperator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::audit::Operator;
use super::auth::Identity;
use super::{AdminError, AdminResult, AdminState, store_call};

/// One operator. The token is shown once, when the operator is created.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Operator")]
pub(super) struct OperatorView {
    name: OperatorName,
    role: OperatorRole,
    /// The beginning of the ids of the items that the operator may use; null for all.
    items: Option<ItemPrefix>,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    /// Null for the admin token.
    created_by: Option<String>,
    /// Null if the token does not expire.
    #[schemars(extend("format" = "date-time"))]
    expires_at: Option<String>,
}

/// All operators.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "operators": [example()] }))]
pub(super) struct Operators {
    operators: Vec<OperatorView>,
}

/// An operator with the token, which is not stored and cannot be shown again.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "operator": example(), "token": "daegi_op_00112233445566778899aabbccddeeff0011223344556677",
}))]
pub(super) struct CreatedOperator {
    operator: OperatorView,
    token: String,
}

/// The body of a call that creates an operator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "name": "kim", "role": "operator", "items": "spring-" }))]
pub(super) struct NewOperator {
    name: OperatorName,
    role: OperatorRole,
    /// The beginning of the ids of the items that the operator may use; null for all. Not for admins.
    #[serde(default)]
    items: Option<ItemPrefix>,
    /// When the token expires, RFC 3339; null if it does not.
    #[serde(default)]
    #[schemars(extend("format" = "date-time"))]
    expires_at: Option<String>,
}

/// The caller.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "name": "kim", "role": "operator", "items": null }))]
pub(super) struct Me {
    /// Null for the admin token.
    name: Option<OperatorName>,
    role: OperatorRole,
    /// The beginning of the ids of the items that the caller may use; null for all.
    items: Option<ItemPrefix>,
}

fn example() -> Value {
    json!({
        "name": "kim", "role": "operator", "items": "spring-",
        "createdAt": "2026-11-20T19:00:00.000Z", "createdBy": null, "expiresAt": null,
    })
}

/// `GET …/me`.
pub(super) async fn me(Extension(identity): Extension<Identity>) -> Json<Me> {
    let items = identity.items().cloned();
    Json(Me { name: identity.name, role: identity.role, items })
}

/// `GET …/operators`, sorted by name.
pub(super) async fn list(State(admin): State<Arc<AdminState>>) -> AdminResult<Json<Operators>> {
    let records = store_call(admin.store.operators()).await?;
    let records =
        records.iter().filter_map(|text| serde_json::from_str::<OperatorRecord>(text).ok());
    Ok(Json(Operators { operators: records.map(OperatorView::from).collect() }))
}

/// `POST …/operators`.
pub(super) async fn create(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
    JsonBody(new): JsonBody<NewOperator>,
) -> AdminResult<(StatusCode, Json<CreatedOperator>)> {
    let now = admin.clock.now_ms();
    if new.role == OperatorRole::Admin && new.items.is_some() {
        let detail = "an admin's access is not limited to items: leave items out, or choose the role operator";
        return Err(AdminError::Invalid(detail.to_owned()));
    }
    let expires_at = new.expires_at.map(|at| {
        let invalid = |reason: &str| AdminError::Invalid(format!("expiresAt {reason}"));
        let at = parse_rfc3339(&at).map_err(|error| invalid(&format!("is invalid: {error}")))?;
        if at <= now { Err(invalid("is in the past")) } else { Ok(rfc3339(at)) }
    });
    let token = OperatorToken::generate().map_err(AdminError::NoRandomness)?;
    let record = OperatorRecord {
        name: new.name,
        role: new.role,
        items: new.items,
        token_hash: OperatorToken::hash_of(token.reveal()),
        created_at: rfc3339(now),
        created_by: operator.name().map(str::to_owned),
        expires_at: expires_at.transpose()?,
    };
    let text = serde_json::to_string(&record).unwrap_or_default();
    match store_call(admin.store.put_operator(record.name.as_str(), &text)).await? {
        PutOperator::Stored => {}
        PutOperator::NameTaken => return Err(AdminError::OperatorExists(record.name)),
        PutOperator::LimitReached => return Err(AdminError::TooManyOperators(MAX_OPERATORS)),
    }
    admin.operator_cache.invalidate().await;
    let recorded = json!({
        "name": record.name, "role": record.role, "items": record.items,
        "expiresAt": record.expires_at,
    });
    admin.record_audit(operator, "create operator", None, (Value::Null, recorded)).await;
    let created = CreatedOperator { operator: record.into(), token: token.reveal().to_owned() };
    Ok((StatusCode::CREATED, Json(created)))
}

/// `DELETE …/operators/{name}`. Other replicas refuse the token within 2 s.
pub(super) async fn remove(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
    PathParams(name): PathParams<String>,
) -> AdminResult<StatusCode> {
    if !store_call(admin.store.remove_operator(&name)).await? {
        return Err(AdminError::OperatorNotFound(name));
    }
    admin.operator_cache.invalidate().await;
    let change = (json!({ "name": name }), Value::Null);
    admin.record_audit(operator, "remove operator", None, change).await;
    Ok(StatusCode::NO_CONTENT)
}

impl From<OperatorRecord> for OperatorView {
    fn from(record: OperatorRecord) -> Self {
        Self {
            name: record.name,
            role: record.role,
            items: record.items,
            created_at: record.created_at,
            created_by: record.created_by,
            expires_at: record.expires_at,
        }
    }
}
