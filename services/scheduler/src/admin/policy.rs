//! Changes some rules of a policy and keeps the others.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::{
    Item, ItemId, LaneName, Millis, Opening, OpeningChange, Order, Phase, Policy, PolicyChange,
    PolicyError, Reveal, lane,
};
use daegi_runtime::http::{JsonBody, PathParams};
use daegi_store::PolicyUpdateOutcome;
use serde_json::{Map, Value, json};

use super::audit::Operator;
use super::view::ItemView;
use super::{AdminError, AdminResult, AdminState, store_call};

/// Attempts of a change that conflicts with concurrent changes of the item.
const MAX_ATTEMPTS: u32 = 5;

/// How far ahead `open` plans the opening: a time of an opening must not be in the past.
const OPEN_NOW_MS: Millis = 1;

/// Applies a JSON merge patch (RFC 7396): named fields change, null restores the default, other
/// fields stay. `page` and `opening` are merged field by field; a text per language is replaced as a whole.
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
    update(admin, id, |before, _| merged(&before.policy, changes)).await
}

/// Sets the policy that `policy` computes from the item and the time, and repeats that while others change
/// the item. Returns the item before and after.
pub(super) async fn update(
    admin: &AdminState,
    id: &ItemId,
    policy: impl Fn(&Item, Millis) -> AdminResult<Policy>,
) -> AdminResult<(Item, Item)> {
    for _ in 0..MAX_ATTEMPTS {
        let before = store_call(admin.store.item(id)).await?;
        let before = before.ok_or_else(|| AdminError::ItemNotFound(id.clone()))?;
        let now = admin.clock.now_ms();
        let change = policy_change(&before, policy(&before, now)?, now)?;
        match store_call(admin.store.set_policy(id, &change, before.revision, now)).await? {
            PolicyUpdateOutcome::Changed(item) => return Ok((before, *item)),
            PolicyUpdateOutcome::Conflict => {}
            PolicyUpdateOutcome::LaneNotEmpty(lane) => {
                let name = lane::name(&before.policy.lanes, lane).map(LaneName::to_string);
                return Err(AdminError::LaneNotEmpty(id.clone(), name.unwrap_or_default()));
            }
            PolicyUpdateOutcome::LineNotEmpty => return Err(AdminError::LineNotEmpty(id.clone())),
            PolicyUpdateOutcome::NotFound => return Err(AdminError::ItemNotFound(id.clone())),
        }
    }
    Err(AdminError::Conflict(id.clone()))
}

/// Returns the change to a policy. Another draw gets another secret.
fn policy_change(item: &Item, policy: Policy, now: Millis) -> AdminResult<PolicyChange> {
    let opening = Opening::check_change(item, policy.opening.as_ref(), now)
        .map_err(|error| AdminError::Policy(error.into()))?;
    let is_draw = policy.opening.as_ref().is_some_and(|opening| opening.order == Order::Draw);
    let reveal = match opening {
        OpeningChange::Replaced if is_draw => Some(new_reveal()?),
        OpeningChange::Replaced | OpeningChange::Times => None,
    };
    Ok(PolicyChange { policy, opening, reveal })
}

fn new_reveal() -> AdminResult<Reveal> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(AdminError::NoRandomness)?;
    Ok(Reveal(bytes))
}

/// `POST …/open`: opens a line now. The leader opens it with its next tick.
pub(super) async fn open(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
    PathParams(id): PathParams<ItemId>,
) -> AdminResult<Json<ItemView>> {
    let open_now = |item: &Item, now| {
        if item.policy.opening.as_ref().is_some_and(|opening| opening.beacon.is_some())
            && (item.is_drawing() || item.is_opening_due(now))
        {
            return Err(AdminError::DrawBegun(item.id.clone()));
        }
        let is_ahead = matches!(item.phase(now), Phase::Scheduled | Phase::Lobby);
        let opening = item.policy.opening.clone().filter(|_| is_ahead);
        let opening = opening.ok_or_else(|| AdminError::NotScheduled(item.id.clone()))?;
        let lobby_at = opening.lobby_at.map(|at| at.min(now));
        let opening = Opening { lobby_at, ..opening }.moved_to(now + OPEN_NOW_MS);
        opening.check().map_err(PolicyError::from)?;
        Ok(Policy { opening: Some(opening), ..item.policy.clone() })
    };
    let (before, item) = update(&admin, &id, open_now).await?;
    let policies = (json!(before.policy), json!(item.policy));
    admin.record_audit(operator, "open", Some(&id), policies).await;
    Ok(Json(ItemView::load(&admin, item).await?))
}

fn merged(policy: &Policy, changes: &Map<String, Value>) -> AdminResult<Policy> {
    let invalid = |error: serde_json::Error| AdminError::Invalid(format!("policy: {error}"));
    let mut rules: Map<String, Value> =
        serde_json::to_value(policy).and_then(serde_json::from_value).map_err(invalid)?;
    merge(&mut rules, changes)?;
    let policy: Policy = serde_json::from_value(Value::Object(rules)).map_err(invalid)?;
    let policy = policy.with_beacon_round();
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
            // The fields of an absent object have their defaults.
            (Value::Null, Value::Object(fields)) if name == "opening" => {
                let mut opening = default_opening()?;
                merge(&mut opening, fields)?;
                Value::Object(opening)
            }
            // A text per language is one value.
            (_, value) if matches!(name.as_str(), "title" | "message" | "label") => value.clone(),
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

fn default_opening() -> AdminResult<Map<String, Value>> {
    let opening = serde_json::to_value(Opening::default()).and_then(serde_json::from_value);
    opening.map_err(|error| AdminError::Invalid(format!("policy: {error}")))
}

#[cfg(test)]
mod tests {
    use daegi_domain::Language;

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
        assert_eq!((page.title, page.message), (Some("Friday".into()), None));
        assert!(page.accent.is_some());
        let each = json!({"page": {"message": {"en": "Soon.", "ko": "곧."}, "links": {"home": {"url": "/a"}}}});
        let before = patched(&before, each).unwrap();
        let after =
            patched(&before, json!({"page": {"message": {"ja": "すぐに。"}}})).unwrap().page;
        let languages: Vec<_> = after.message.iter().flat_map(|text| text.languages()).collect();
        assert_eq!(languages, [Language::Japanese], "a text per language is one value");
        assert!(after.links.home.is_some());
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
