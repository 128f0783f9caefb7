//! Changing some rules of a line and keeping the others.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::{Item, ItemId, Policy};
use daegi_runtime::http::{JsonBody, PathParams};
use daegi_store::PolicyChange;
use serde_json::{Map, Value, json};

use super::audit::Operator;
use super::view::ItemView;
use super::{Admin, AdminError, Answer, ask};

/// How often a change starts over because somebody else changed the item meanwhile.
const TRIES: u32 = 5;

/// A JSON merge patch (RFC 7396): what is named changes, null goes back to the default, the rest
/// stays. `page` is merged field by field.
pub(super) async fn patch(
    State(admin): State<Arc<Admin>>,
    operator: Operator,
    PathParams(id): PathParams<ItemId>,
    JsonBody(changes): JsonBody<Map<String, Value>>,
) -> Answer<Json<ItemView>> {
    let (before, item) = change(&admin, &id, &changes).await?;
    let policies = (json!(before.policy), json!(item.policy));
    admin.note(operator, "set policy", Some(&id), policies).await;
    Ok(Json(ItemView::now(&admin, item).await?))
}

/// Compare and set on the revision, so that two operators who change different rules at the same
/// time both get what they asked for. Answers the item before and after.
async fn change(admin: &Admin, id: &ItemId, changes: &Map<String, Value>) -> Answer<(Item, Item)> {
    for _ in 0..TRIES {
        let before = ask(admin.store.item(id)).await?;
        let before = before.ok_or_else(|| AdminError::NoItem(id.clone()))?;
        let policy = merged(&before.policy, changes)?;
        let now = admin.clock.now_ms();
        match ask(admin.store.set_policy(id, &policy, before.revision, now)).await? {
            PolicyChange::Changed(item) => return Ok((before, *item)),
            PolicyChange::Conflict => {}
            PolicyChange::NotFound => return Err(AdminError::NoItem(id.clone())),
        }
    }
    Err(AdminError::Contended(id.clone()))
}

fn merged(policy: &Policy, changes: &Map<String, Value>) -> Answer<Policy> {
    let invalid = |error: serde_json::Error| AdminError::Invalid(format!("policy: {error}"));
    let mut rules: Map<String, Value> =
        serde_json::to_value(policy).and_then(serde_json::from_value).map_err(invalid)?;
    merge(&mut rules, changes)?;
    let policy: Policy = serde_json::from_value(Value::Object(rules)).map_err(invalid)?;
    policy.check()?;
    Ok(policy)
}

fn merge(rules: &mut Map<String, Value>, changes: &Map<String, Value>) -> Answer<()> {
    for (name, value) in changes {
        // Serde would not notice an unknown name whose value is null.
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
    fn what_is_named_changes_and_null_goes_back_to_the_default() {
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
