//! Items: list, create, replace, remove, and the three levers of a line.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use daegi_domain::{Item, ItemChange, ItemId};
use daegi_runtime::http::{JsonBody, PathParams};
use daegi_store::Put;
use serde::Serialize;

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
    let items = ask(admin.store.items()).await?.into_iter();
    let now = admin.clock.now_ms();
    let items = items.map(|item| ItemView::new(item, &settings, now)).collect();
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
    JsonBody(body): JsonBody<NewItem>,
) -> Answer<(StatusCode, Json<ItemView>)> {
    let mut change = body.change()?;
    // Version 0 is older than anything stored: one atomic "create if absent".
    change.version = Some(0);
    let mut item = put(&admin, &change).await?;
    if item.is_none() && ask(admin.store.item(&change.id)).await?.is_none() {
        // Only the memory of a removed item is in the way, and an operator may go over that.
        change.version = None;
        item = put(&admin, &change).await?;
    }
    let (_, item) = item.ok_or(AdminError::Exists(change.id))?;
    Ok((StatusCode::CREATED, Json(ItemView::now(&admin, item).await?)))
}

/// Creates an item or replaces all of it: a policy that is not given is the default one.
pub(super) async fn replace(
    State(admin): Context,
    PathParams(id): Id,
    JsonBody(body): JsonBody<WholeItem>,
) -> Answer<(StatusCode, Json<ItemView>)> {
    upsert(&admin, body.change(id)?).await
}

/// What a product event would do, by hand: creates an item or changes it, and keeps its policy.
pub(super) async fn manually(
    State(admin): Context,
    PathParams(id): Id,
    JsonBody(body): JsonBody<ByHand>,
) -> Answer<Json<ItemView>> {
    let (_, item) = upsert(&admin, body.change(id)).await?;
    Ok(item)
}

pub(super) async fn remove(State(admin): Context, PathParams(id): Id) -> Answer<StatusCode> {
    if !ask(admin.store.remove_item(&id)).await? {
        return Err(AdminError::NoItem(id));
    }
    tracing::info!(admin.call = "remove item", item.id = %id, "admin change");
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn pause(State(admin): Context, PathParams(id): Id) -> Answer<Json<ItemView>> {
    let item = ask(admin.store.set_paused(&id, true)).await?;
    pulled(&admin, id, "pause", item).await
}

pub(super) async fn resume(State(admin): Context, PathParams(id): Id) -> Answer<Json<ItemView>> {
    let item = ask(admin.store.set_paused(&id, false)).await?;
    pulled(&admin, id, "resume", item).await
}

pub(super) async fn reset(State(admin): Context, PathParams(id): Id) -> Answer<Json<ItemView>> {
    let item = ask(admin.store.reset(&id, admin.clock.now_ms())).await?;
    pulled(&admin, id, "reset", item).await
}

/// The answer after a lever was pulled; no item, no lever.
async fn pulled(
    admin: &Admin,
    id: ItemId,
    lever: &'static str,
    item: Option<Item>,
) -> Answer<Json<ItemView>> {
    let item = item.ok_or_else(|| AdminError::NoItem(id.clone()))?;
    tracing::info!(admin.call = lever, item.id = %id, revision = item.revision, "admin change");
    Ok(Json(ItemView::now(admin, item).await?))
}

async fn upsert(admin: &Admin, change: ItemChange) -> Answer<(StatusCode, Json<ItemView>)> {
    let item = put(admin, &change).await?;
    let (status, item) = item.ok_or(AdminError::Contended(change.id))?;
    Ok((status, Json(ItemView::now(admin, item).await?)))
}

/// Puts the item and writes down who it was before; none if the store holds something newer.
async fn put(admin: &Admin, change: &ItemChange) -> Answer<Option<(StatusCode, Item)>> {
    let from = ask(admin.store.item(&change.id)).await?;
    let put = ask(admin.store.put_item(change, admin.clock.now_ms())).await?;
    let (status, item) = match put {
        Put::Created(item) => (StatusCode::CREATED, item),
        Put::Updated(item) => (StatusCode::OK, item),
        Put::Stale => return Ok(None),
    };
    tracing::info!(admin.call = "put item", item.id = %item.id, ?from, to = ?item, "admin change");
    Ok(Some((status, item)))
}
