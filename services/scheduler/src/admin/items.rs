//! Items: list, create, replace, remove, and the three levers of a line.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use daegi_domain::{Item, ItemChange, ItemId};
use daegi_runtime::http::{JsonBody, PathParams};
use daegi_store::Put;
use serde::Serialize;
use serde_json::{Value, json};

use super::audit::{Operator, facts};
use super::body::{ByHand, NewItem, WholeItem};
use super::view::ItemView;
use super::{Admin, AdminError, Answer, ask};

#[derive(Debug, Serialize)]
pub(super) struct Items {
    items: Vec<ItemView>,
}

type Context = State<Arc<Admin>>;
type Id = PathParams<ItemId>;

pub(super) async fn list(State(admin): Context) -> Answer<Json<Items>> {
    let settings = ask(admin.store.settings()).await?;
    let items = ask(admin.store.items()).await?;
    let ids: Vec<_> = items.iter().map(|item| item.id.clone()).collect();
    // Both are sorted by id; an item that was removed between the two reads has no counts.
    let mut counts = ask(admin.store.counts(&ids)).await?.into_iter().peekable();
    let now = admin.clock.now_ms();
    let view = |item: Item| {
        let counts = counts.next_if(|counts| counts.item == item.id);
        ItemView::new(item, counts.as_ref(), &settings, now)
    };
    let items = items.into_iter().map(view).collect();
    Ok(Json(Items { items }))
}

pub(super) async fn one(State(admin): Context, PathParams(id): Id) -> Answer<Json<ItemView>> {
    let item = ask(admin.store.item(&id)).await?;
    let item = item.ok_or(AdminError::NoItem(id))?;
    Ok(Json(ItemView::now(&admin, item).await?))
}

/// Creates an item that is not there yet.
pub(super) async fn create(
    State(admin): Context,
    operator: Operator,
    JsonBody(body): JsonBody<NewItem>,
) -> Answer<(StatusCode, Json<ItemView>)> {
    let mut change = body.change()?;
    // Version 0 is older than anything stored: one atomic "create if absent".
    change.version = Some(0);
    let mut changed = put(&admin, &change).await?;
    if changed.is_none() && ask(admin.store.item(&change.id)).await?.is_none() {
        // Only the memory of a removed item is in the way, and an operator may go over that.
        change.version = None;
        changed = put(&admin, &change).await?;
    }
    let changed = changed.ok_or(AdminError::Exists(change.id))?;
    let (_, view) = noted(&admin, operator, "create item", changed).await?;
    Ok((StatusCode::CREATED, view))
}

/// Creates an item or replaces all of it: a policy that is not given is the default one.
pub(super) async fn replace(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
    JsonBody(body): JsonBody<WholeItem>,
) -> Answer<(StatusCode, Json<ItemView>)> {
    let changed = upsert(&admin, body.change(id)?).await?;
    noted(&admin, operator, "replace item", changed).await
}

/// What a product event would do, by hand: creates an item or changes it, and keeps its policy.
pub(super) async fn manually(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
    JsonBody(body): JsonBody<ByHand>,
) -> Answer<Json<ItemView>> {
    let changed = upsert(&admin, body.change(id)).await?;
    let (_, view) = noted(&admin, operator, "set by hand", changed).await?;
    Ok(view)
}

pub(super) async fn remove(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
) -> Answer<StatusCode> {
    let before = ask(admin.store.item(&id)).await?;
    if !ask(admin.store.remove_item(&id)).await? {
        return Err(AdminError::NoItem(id));
    }
    let change = (before.as_ref().map_or(Value::Null, facts), Value::Null);
    admin.note(operator, "remove item", Some(&id), change).await;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn pause(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
) -> Answer<Json<ItemView>> {
    set_paused(&admin, operator, id, true).await
}

pub(super) async fn resume(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
) -> Answer<Json<ItemView>> {
    set_paused(&admin, operator, id, false).await
}

async fn set_paused(
    admin: &Admin,
    operator: Operator,
    id: ItemId,
    paused: bool,
) -> Answer<Json<ItemView>> {
    let before = ask(admin.store.item(&id)).await?;
    let item = ask(admin.store.set_paused(&id, paused, admin.clock.now_ms())).await?;
    let item = item.ok_or_else(|| AdminError::NoItem(id.clone()))?;
    let was = before.is_some_and(|before| before.paused);
    let change = (json!({ "paused": was }), json!({ "paused": paused }));
    admin.note(operator, if paused { "pause" } else { "resume" }, Some(&id), change).await;
    Ok(Json(ItemView::now(admin, item).await?))
}

/// Sends everybody away who waits; the journal says how many that were.
pub(super) async fn reset(
    State(admin): Context,
    operator: Operator,
    PathParams(id): Id,
) -> Answer<Json<ItemView>> {
    let counts = ask(admin.store.counts(std::slice::from_ref(&id))).await?;
    let item = ask(admin.store.reset(&id, admin.clock.now_ms())).await?;
    let item = item.ok_or_else(|| AdminError::NoItem(id.clone()))?;
    let waiting = counts.first().map_or(0, |line| line.waiting + line.returning);
    let change = (json!({ "waitingCount": waiting }), json!({ "waitingCount": 0 }));
    admin.note(operator, "reset", Some(&id), change).await;
    Ok(Json(ItemView::now(&admin, item).await?))
}

/// An item that was put: how, what it was before, and what it is now.
type Changed = (StatusCode, Option<Item>, Item);

/// Writes down how an item was changed, and answers it.
async fn noted(
    admin: &Admin,
    operator: Operator,
    action: &str,
    (status, before, item): Changed,
) -> Answer<(StatusCode, Json<ItemView>)> {
    let change = (before.as_ref().map_or(Value::Null, facts), facts(&item));
    admin.note(operator, action, Some(&item.id), change).await;
    Ok((status, Json(ItemView::now(admin, item).await?)))
}

async fn upsert(admin: &Admin, change: ItemChange) -> Answer<Changed> {
    put(admin, &change).await?.ok_or(AdminError::Contended(change.id))
}

/// Puts the item; none if the store holds something newer.
async fn put(admin: &Admin, change: &ItemChange) -> Answer<Option<Changed>> {
    let before = ask(admin.store.item(&change.id)).await?;
    let put = ask(admin.store.put_item(change, admin.clock.now_ms())).await?;
    Ok(match put {
        Put::Created(item) => Some((StatusCode::CREATED, before, item)),
        Put::Updated(item) => Some((StatusCode::OK, before, item)),
        Put::Stale => None,
    })
}
