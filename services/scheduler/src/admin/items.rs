//! Items: list, create, replace and remove; pause, resume and reset of a line.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use daegi_domain::{Item, ItemChange, ItemId, Millis, Opening, Policy};
use daegi_runtime::http::{JsonBody, PathParams};
use daegi_store::PutOutcome;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::audit::{Operator, audited_fields};
use super::auth::Identity;
use super::requests::{CreateItem, ReplaceItem, UpdateItem};
use super::view::{self, ItemView};
use super::{AdminError, AdminResult, AdminState, policy, store_call};

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "items": [view::example()] }))]
pub(super) struct Items {
    items: Vec<ItemView>,
}

/// A time that no lobby reaches.
const NEVER_MS: Millis = 253_402_300_799_000;

type Context = State<Arc<AdminState>>;
type Id = PathParams<ItemId>;

pub(super) async fn list(
    State(admin): Context,
    Extension(identity): Extension<Identity>,
) -> AdminResult<Json<Items>> {
    let settings = store_call(admin.store.settings()).await?;
    let mut items = store_call(admin.store.items()).await?;
    items.retain(|item| identity.covers(&item.id));
    let ids: Vec<_> = items.iter().map(|item| item.id.clone()).collect();
    // Both are sorted by id; an item that was removed between the two reads has no counts.
    let mut counts = store_call(admin.store.counts(&ids)).await?.into_iter().peekable();
    let now = admin.clock.now_ms();
    let view = |item: Item| {
        let counts = counts.next_if(|counts| counts.item == item.id);
        ItemView::new(item, counts.as_ref(), &settings, now)
    };
    let items = items.into_iter().map(view).collect();
    Ok(Json(Items { items }))
}

pub(super) async fn one(State(admin): Context, PathParams(id): Id) -> AdminResult<Json<ItemView>> {
    let item = store_call(admin.store.item(&id)).await?;
    let item = item.ok_or(AdminError::ItemNotFound(id))?;
    Ok(Json(ItemView::load(&admin, item).await?))
}

/// Creates an item that does not exist.
pub(super) async fn create(
    State(admin): Context,
    operator: Operator,
    JsonBody(body): JsonBody<CreateItem>,
) -> AdminResult<(StatusCode, Json<ItemView>)> {
    let mut change = body.change()?;
    let opening = planned_later(&mut change, admin.clock.now_ms())?;
    // Version 0 is older than anything stored: one atomic "create if absent".
    change.version = Some(0);
    let mut changed = put(&admin, &change).await?;
    if changed.is_none() && store_call(admin.store.item(&change.id)).await?.is_none() {
        // The store keeps the version of a removed item and rejects version 0. An operator may
        // override it, which a change without a version does.
        change.version = None;
        changed = put(&admin, &change).await?;
    }
    let changed = changed.ok_or(AdminError::ItemExists(change.id))?;
    let (status, before, item) = changed;
    let item = match opening {
        Some(opening) => plan(&admin, &item, opening).await?,
        None => item,
    };
    let (_, view) =
        audited_response(&admin, operator, "create item", (status, before, item)).await?;
    Ok((StatusCode::CREATED, view))
}

/// Takes the opening out of a change that creates an item and leaves one that never opens, because the
/// opening is set with a second call. If that call fails, no user can join meanwhile.
///
/// # Errors
/// If a time of the opening is in the past.
fn planned_later(change: &mut ItemChange, now: Millis) -> AdminResult<Option<Opening>> {
    let new = Item::new(change.id.clone(), change.name.clone(), change.stock);
    let Some(policy) = &mut change.policy else { return Ok(None) };
    let Some(opening) = policy.opening.take() else { return Ok(None) };
    let checked = Opening::check_change(&new, Some(&opening), now);
    checked.map_err(|error| AdminError::Policy(error.into()))?;
    policy.opening = Some(Opening { lobby_at: Some(NEVER_MS), ..Opening::default() });
    Ok(Some(opening))
}

async fn plan(admin: &AdminState, item: &Item, opening: Opening) -> AdminResult<Item> {
    let policy = Policy { opening: Some(opening), ..item.policy.clone() };
    let planned = policy::update(admin, &item.id, |_, _| Ok(policy.clone())).await?;
    Ok(planned.1)
}

/// Creates an item or replaces it completely; an absent policy becomes the default. An existing opening
/// and existing lanes stay.
pub(super) async fn replace(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
    JsonBody(body): JsonBody<ReplaceItem>,
) -> AdminResult<(StatusCode, Json<ItemView>)> {
    let mut change = body.change(id)?;
    let before = store_call(admin.store.item(&change.id)).await?;
    let planned = match before {
        None => planned_later(&mut change, admin.clock.now_ms())?,
        Some(_) => None,
    };
    let opening = change.policy.as_ref().and_then(|policy| policy.opening.as_ref());
    let stored = before.as_ref().and_then(|before| before.policy.opening.as_ref());
    if before.is_some() && opening.is_some() && opening != stored {
        return Err(AdminError::OpeningInPut(change.id));
    }
    let lanes = change.policy.iter().flat_map(|policy| &policy.lanes);
    let stored = before.iter().flat_map(|before| &before.policy.lanes);
    if before.is_some() && lanes.clone().next().is_some() && !lanes.eq(stored) {
        return Err(AdminError::LanesInPut(change.id));
    }
    let (status, before, mut item) = upsert(&admin, change).await?;
    if let Some(opening) = planned {
        item = plan(&admin, &item, opening).await?;
    }
    audited_response(&admin, operator, "replace item", (status, before, item)).await
}

/// Creates an item, or changes it and keeps its policy, as a product event does.
pub(super) async fn manually(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
    JsonBody(body): JsonBody<UpdateItem>,
) -> AdminResult<Json<ItemView>> {
    let changed = upsert(&admin, body.change(id)).await?;
    let (_, view) = audited_response(&admin, operator, "set by hand", changed).await?;
    Ok(view)
}

pub(super) async fn remove(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
) -> AdminResult<StatusCode> {
    let before = store_call(admin.store.item(&id)).await?;
    if !store_call(admin.store.remove_item(&id, admin.clock.now_ms())).await? {
        return Err(AdminError::ItemNotFound(id));
    }
    let change = (before.as_ref().map_or(Value::Null, audited_fields), Value::Null);
    admin.record_audit(operator, "remove item", Some(&id), change).await;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn pause(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
) -> AdminResult<Json<ItemView>> {
    set_paused(&admin, operator, id, true).await
}

pub(super) async fn resume(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
) -> AdminResult<Json<ItemView>> {
    set_paused(&admin, operator, id, false).await
}

async fn set_paused(
    admin: &AdminState,
    operator: Operator,
    id: ItemId,
    paused: bool,
) -> AdminResult<Json<ItemView>> {
    let before = store_call(admin.store.item(&id)).await?;
    let item = store_call(admin.store.set_paused(&id, paused, admin.clock.now_ms())).await?;
    let item = item.ok_or_else(|| AdminError::ItemNotFound(id.clone()))?;
    let was_paused = before.is_some_and(|before| before.paused);
    let change = (json!({ "paused": was_paused }), json!({ "paused": paused }));
    admin.record_audit(operator, if paused { "pause" } else { "resume" }, Some(&id), change).await;
    Ok(Json(ItemView::load(admin, item).await?))
}

/// Ends all waiting tickets; the audit log records how many.
pub(super) async fn reset(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
) -> AdminResult<Json<ItemView>> {
    let counts = store_call(admin.store.counts(std::slice::from_ref(&id))).await?;
    let item = store_call(admin.store.reset(&id, admin.clock.now_ms())).await?;
    let item = item.ok_or_else(|| AdminError::ItemNotFound(id.clone()))?;
    let waiting = counts.first().map_or(0, |line| line.waiting + line.returning);
    let change = (json!({ "waitingCount": waiting }), json!({ "waitingCount": 0 }));
    admin.record_audit(operator, "reset", Some(&id), change).await;
    Ok(Json(ItemView::load(&admin, item).await?))
}

/// The status of the response, the item before the change and after it.
type ItemChangeResult = (StatusCode, Option<Item>, Item);

/// Records the change of an item and builds the response.
async fn audited_response(
    admin: &AdminState,
    operator: Operator,
    action: &str,
    (status, before, item): ItemChangeResult,
) -> AdminResult<(StatusCode, Json<ItemView>)> {
    let change = (before.as_ref().map_or(Value::Null, audited_fields), audited_fields(&item));
    admin.record_audit(operator, action, Some(&item.id), change).await;
    Ok((status, Json(ItemView::load(admin, item).await?)))
}

async fn upsert(admin: &AdminState, change: ItemChange) -> AdminResult<ItemChangeResult> {
    put(admin, &change).await?.ok_or(AdminError::Conflict(change.id))
}

/// Writes the item; `None` if the store holds a newer version.
async fn put(admin: &AdminState, change: &ItemChange) -> AdminResult<Option<ItemChangeResult>> {
    let before = store_call(admin.store.item(&change.id)).await?;
    let put = store_call(admin.store.put_item(change, admin.clock.now_ms())).await?;
    Ok(match put {
        PutOutcome::Created(item) => Some((StatusCode::CREATED, before, item)),
        PutOutcome::Updated(item) => Some((StatusCode::OK, before, item)),
        PutOutcome::Stale => None,
    })
}
