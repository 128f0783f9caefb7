//! The item created in an empty store, so that a first start has something to try.

use daegi_domain::{ItemChange, ItemId, ItemName, Millis, Policy};
use daegi_store::{ItemStore, Result};

const ID: &str = "demo";
const NAME: &str = "Friday 8 pm concert";

/// Creates the item with version 0, so that a change of the product service replaces it.
///
/// # Errors
/// If the store is unavailable.
pub async fn create(store: &dyn ItemStore, now: Millis) -> Result<()> {
    store.put_item(&item(), now).await?;
    tracing::info!(item.id = ID, "initial item created");
    Ok(())
}

/// Stock 100, with entries of 120 s, so that the line also moves when not all users order.
fn item() -> ItemChange {
    #[expect(clippy::expect_used, reason = "constants, covered by a test")]
    let (id, name) =
        (ItemId::parse(ID).expect("a valid id"), ItemName::parse(NAME).expect("a valid name"));
    ItemChange {
        id,
        name,
        stock: 100,
        enabled: true,
        version: Some(0),
        policy: Some(Policy { pass_ttl_seconds: 120, ..Policy::default() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_item_is_valid() {
        assert_eq!(item().policy.unwrap().check(), Ok(()));
    }
}
