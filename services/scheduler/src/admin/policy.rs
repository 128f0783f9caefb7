//! Changes some rules of a policy and keeps the others.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::{Item, ItemId, Policy};
use daegi_runtime::http::{JsonBody, PathParams};
use daegi_store::PolicyUpdateOutcome;
use serde_json::{Map, Value, json};

use super::audit::Operator;
use super::view::ItemView;
use super::{AdminError, AdminResult, AdminState, store_call};

/// Attempts of a change that conflicts with concurrent changes of the item.
const MAX_ATTEMPTS: u32 = 5;

/// Applies a JSON merge patch (RFC 7396): named fields change, null restores the default, other
/// fields stay. `page` is merged field by field.
pub(super) async fn patch(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
    PathParams(id): PathParams<ItemId>,
    JsonBody(changes): JsonBody<Map<String, Value>>,
) -> AdminResult<Json<ItemView>> {
    let (before, item) = change(&admin, &id, &changes).await?;
    let policies = (json!(before.policy), json!(item.policy));
    admin.record_audit(operator, "set policy", Some(&id), policies).await;
    Ok(Json(ItemView::load(&admin, item).await?))
}

/// Compares and sets the revision, so that concurrent changes of different rules both succeed.
/// Returns the item before and after.
async fn change(
    admin: &AdminState,
    id: &ItemId,
    changes: &Map<String, Value>,
) -> AdminResult<(Item, Item)> {
    for _ in 0..MAX_ATTEMPTS {
        let before = store_call(admin.store.item(id)).await?;
        let before = before.ok_or_else(|| AdminError::ItemNotFound(id.clone()))?;
        let policy = merged(&before.policy, changes)?;
        let now = admin.clock.now_ms();
        match store_call(admin.store.set_policy(id, &policy, before.revision, now)).await? {
            PolicyUpdateOutcome::Changed(item) => return Ok((before, *item)),
            PolicyUpdateOutcome::Conflict => {}
            PolicyUpdateOutcome::NotFound => return Err(AdminError::ItemNotFound(id.clone())),
        }
    }
    Err(AdminError::Conflict(id.clone()))
}

fn merged(policy: &Policy, changes: &Map<String, Value>) -> AdminResult<Policy> {
    let invalid = |error: serde_json::Error| AdminError::Invalid(format!("policy: {error}"));
    let mut rules: Map<String, Value> =
        serde_json::to_value(policy).and_then(serde_json::from_value).map_err(invalid)?;
    merge(&mut rules, changes)?;
    let policy: Policy = serde_json::from_value(Value::Object(rules)).map_err(invalid)?;
    policy.check()?;
    Ok(policy)
}

fn merge(rules: &mut Map<String, Value>, changes: &Map<String, Value>) -> AdminResult<()> {
    for (name, value) in changes {
        // Serde would not reject an unknown name whose value is null, because null removes the field.
        let Some(before) = rules.remove(name) else {
            return Err(AdminError::Invalid(format!("policy: unknown field {name:?}")));
        };
        let after = match (before, value) {
            (_, Value::Null) => continue,
            (Value::Object(mut fields), Value::Object(changes)) => {
                merge(&mut fields, changes)?;
                Value::Object(fields)
            }
            (_, value) => value.clone(),
        };
        rules.insert(name.clone(), after);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(policy: &Policy, changes: Value) -> Result<Policy, String> {
        let changes = serde_json::from_value(changes).unwrap();
        merged(policy, &changes).map_err(|error| error.to_string())
    }

    #[test]
    fn named_fields_change_and_null_restores_the_default() {
        let before =
            patched(&Policy::default(), json!({"maxActive": 7, "graceSeconds": 30})).unwrap();
        assert_eq!((before.max_active, before.grace_seconds), (Some(7), 30));
        let after = patched(&before, json!({"maxActive": null, "graceSeconds": null})).unwrap();
        assert_eq!(after, Policy::default());
        assert_eq!(patched(&before, json!({})), Ok(before));
    }

    #[test]
    fn the_page_is_merged_field_by_field_and_null_removes() {
        let page = json!({"page": {"title": "Friday", "message": "Soon."}});
        let before = patched(&Policy::default(), page).unwrap();
        let after = patched(&before, json!({"page": {"message": null, "accent": "#0a3d91"}}));
        let page = after.unwrap().page;
        assert_eq!((page.title.as_deref(), page.message), (Some("Friday"), None));
        assert!(page.accent.is_some());
        let after = patched(&before, json!({"page": null})).unwrap();
        assert_eq!(after, Policy::default());
        for value in [json!("x"), json!(null)] {
            let error = patched(&before, json!({"page": {"font": value}})).unwrap_err();
            assert!(error.contains("font"), "{error}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_even_if_it_is_null() {
        for value in [json!(1), json!(null)] {
            let error = patched(&Policy::default(), json!({ "maxActve": value })).unwrap_err();
            assert!(error.contains("maxActve"), "{error}");
        }
    }
}
