//! The passes that were verified before, so that a signature is verified once.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use daegi_domain::{ItemId, Millis};

use super::Allowed;

/// Maximum passes of one generation. A pass has about 450 bytes, so that both generations have about 12 MB at most.
const GENERATION: usize = 8_192;

/// The passes of two generations. A pass that is used moves to the current one; when that is full, it becomes the
/// previous one, whose passes are forgotten: the next check verifies them again.
#[derive(Debug, Default)]
pub(super) struct VerifiedPasses(RwLock<Generations>);

#[derive(Debug, Default)]
struct Generations {
    current: HashMap<Box<str>, Arc<Allowed>>,
    previous: HashMap<Box<str>, Arc<Allowed>>,
}

impl VerifiedPasses {
    /// Returns the answer for a pass of this item that has not expired.
    pub(super) fn get(&self, pass: &str, item: &ItemId, now: Millis) -> Option<Arc<Allowed>> {
        let (allowed, is_current) = self.find(pass)?;
        if allowed.item != *item || allowed.expires_at <= now / 1000 {
            return None;
        }
        if !is_current {
            self.insert(pass, Arc::clone(&allowed));
        }
        Some(allowed)
    }

    fn find(&self, pass: &str) -> Option<(Arc<Allowed>, bool)> {
        let generations = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let current = generations.current.get(pass).map(|found| (Arc::clone(found), true));
        current.or_else(|| Some((Arc::clone(generations.previous.get(pass)?), false)))
    }

    pub(super) fn insert(&self, pass: &str, allowed: Arc<Allowed>) {
        let mut generations = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if generations.current.len() >= GENERATION {
            generations.previous = std::mem::take(&mut generations.current);
        }
        generations.current.insert(pass.into(), allowed);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let generations = self.0.read().unwrap();
        generations.current.len() + generations.previous.len()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn allowed(item: &str, expires_at: u64) -> Arc<Allowed> {
        let text = HeaderValue::from_static("x");
        let item = ItemId::parse(item).unwrap();
        let (user, number, lane) = (text.clone(), text.clone(), text);
        Arc::new(Allowed { item, user, number, lane, expires_at })
    }

    #[test]
    fn a_known_pass_is_good_for_its_item_until_it_expires() {
        let passes = VerifiedPasses::default();
        passes.insert("pass", allowed("concert", 10));
        let concert = ItemId::parse("concert").unwrap();
        assert!(passes.get("pass", &concert, 9_999).is_some());
        assert!(passes.get("pass", &concert, 10_000).is_none());
        assert!(passes.get("pass", &ItemId::parse("play").unwrap(), 0).is_none());
        assert!(passes.get("pas", &concert, 0).is_none());
    }

    #[test]
    fn a_flood_of_passes_is_bounded_and_a_used_pass_survives_it() {
        let passes = VerifiedPasses::default();
        let concert = ItemId::parse("concert").unwrap();
        passes.insert("used", allowed("concert", 10));
        for n in 0..GENERATION * 5 {
            passes.insert(&format!("other-{n}"), allowed("concert", 10));
            if n % 1_000 == 0 {
                assert!(passes.get("used", &concert, 0).is_some(), "{n}");
            }
        }
        assert!(passes.len() <= 2 * GENERATION, "{}", passes.len());
    }
}
