//! Numbers of waiting tickets and entries.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use daegi_domain::ItemId;
use daegi_store::LineCounts;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::auth::Identity;
use super::requests::{QueryPairs, query_values};
use super::{AdminError, AdminResult, AdminState, store_call};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "items": [{ "itemId": "concert", "waitingTokenCount": 4200, "enteredTokenCount": 200 }],
    "unknownItemIds": [],
    "totalWaiting": 4200,
    "totalEntered": 200,
}))]
pub(super) struct TokenCounts {
    items: Vec<TokenCount>,
    /// Requested ids that are not items.
    unknown_item_ids: Vec<ItemId>,
    total_waiting: u64,
    total_entered: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TokenCount {
    item_id: ItemId,
    waiting_token_count: u64,
    entered_token_count: u64,
}

/// Counts the tickets of all items, or of the requested `itemId`s in their order; ids that are not
/// items are listed. Returning tickets count as waiting.
pub(super) async fn show(
    State(admin): State<Arc<AdminState>>,
    Extension(identity): Extension<Identity>,
    query: QueryPairs,
) -> AdminResult<Json<TokenCounts>> {
    let requested = requested_ids(query)?;
    let mut ids = if requested.is_empty() {
        let items = store_call(admin.store.items()).await?;
        items.into_iter().map(|item| item.id).collect()
    } else {
        requested.clone()
    };
    ids.retain(|id| identity.covers(id));
    let counts = store_call(admin.store.counts(&ids)).await?;
    let mut counts: HashMap<_, _> =
        counts.into_iter().map(|line| (line.item.clone(), line)).collect();
    let unknown = requested.into_iter().filter(|id| !counts.contains_key(id)).collect();
    let items = ids.iter().filter_map(|id| counts.remove(id)).map(TokenCount::from);
    Ok(Json(TokenCounts::new(items.collect(), unknown)))
}

fn requested_ids(query: QueryPairs) -> AdminResult<Vec<ItemId>> {
    let mut seen = HashSet::new();
    let mut ids = Vec::new();
    for text in query_values(query, "itemId")? {
        let id = ItemId::parse(&text).map_err(|error| AdminError::Invalid(error.to_string()))?;
        if seen.insert(id.clone()) {
            ids.push(id);
        }
    }
    Ok(ids)
}

impl TokenCounts {
    fn new(items: Vec<TokenCount>, unknown_item_ids: Vec<ItemId>) -> Self {
        Self {
            unknown_item_ids,
            total_waiting: items.iter().map(|item| item.waiting_token_count).sum(),
            total_entered: items.iter().map(|item| item.entered_token_count).sum(),
            items,
        }
    }
}

impl From<LineCounts> for TokenCount {
    fn from(line: LineCounts) -> Self {
        Self {
            item_id: line.item,
            waiting_token_count: line.waiting + line.returning,
            entered_token_count: line.entered,
        }
    }
}
