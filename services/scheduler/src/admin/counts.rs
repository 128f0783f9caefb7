//! How many people wait and how many are inside.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::ItemId;
use daegi_store::Counts;
use serde::Serialize;

use super::query::{Query, values_of};
use super::{Admin, AdminError, Answer, ask};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenCounts {
    items: Vec<TokenCount>,
    /// Ids that were asked for and are no items.
    unknown_item_ids: Vec<ItemId>,
    total_waiting: u64,
    total_entered: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenCount {
    item_id: ItemId,
    waiting_token_count: u64,
    entered_token_count: u64,
}

/// Counts all items, or those asked for in that order; ids that are no items are listed. Users who
/// came back after missing their turn count as waiting.
pub(super) async fn show(
    State(admin): State<Arc<Admin>>,
    query: Query,
) -> Answer<Json<TokenCounts>> {
    let asked = asked_for(query)?;
    let ids = if asked.is_empty() {
        let items = ask(admin.store.items()).await?;
        items.into_iter().map(|item| item.id).collect()
    } else {
        asked.clone()
    };
    let counts = ask(admin.store.counts(&ids)).await?;
    let mut counts: HashMap<_, _> =
        counts.into_iter().map(|line| (line.item.clone(), line)).collect();
    let unknown = asked.into_iter().filter(|id| !counts.contains_key(id)).collect();
    let items = ids.iter().filter_map(|id| counts.remove(id)).map(TokenCount::from);
    Ok(Json(TokenCounts::of(items.collect(), unknown)))
}

fn asked_for(query: Query) -> Answer<Vec<ItemId>> {
    let mut seen = HashSet::new();
    let mut ids = Vec::new();
    for text in values_of(query, "itemId")? {
        let id = ItemId::parse(&text).map_err(|error| AdminError::Invalid(error.to_string()))?;
        if seen.insert(id.clone()) {
            ids.push(id);
        }
    }
    Ok(ids)
}

impl TokenCounts {
    fn of(items: Vec<TokenCount>, unknown_item_ids: Vec<ItemId>) -> Self {
        Self {
            unknown_item_ids,
            total_waiting: items.iter().map(|item| item.waiting_token_count).sum(),
            total_entered: items.iter().map(|item| item.entered_token_count).sum(),
            items,
        }
    }
}

impl From<Counts> for TokenCount {
    fn from(line: Counts) -> Self {
        Self {
            item_id: line.item,
            waiting_token_count: line.waiting + line.returning,
            entered_token_count: line.entered,
        }
    }
}
