//! The item somebody finds who starts daegi for the first time.

use daegi_domain::{ItemChange, ItemId, ItemName, Millis, Policy};
use daegi_store::{Result, Store};

const ID: &str = "demo";
const NAME: &str = "Friday 8 pm concert";

/// Creates the demo item if nobody else does at the same moment.
///
/// # Errors
/// If the store does not answer.
pub async fn plant(store: &dyn Store, now: Millis) -> Result<()> {
    store.put_item(&item(), now).await?;
    tracing::info!(item.id = ID, "demo item created");
    Ok(())
}

/// A hundred seats, and entries short enough that a demo with more people than seats moves on.
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
    fn the_demo_item_is_valid() {
        assert_eq!(item().policy.unwrap().check(), Ok(()));
    }
}
