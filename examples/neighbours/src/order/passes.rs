//! Checking a pass offline: an EdDSA JWT, signed by daegi for one person and one item.

use daegi_domain::{ItemId, UserId};
use jsonwebtoken::errors::{Error as JwtError, ErrorKind};
use jsonwebtoken::{Algorithm, Validation};
use serde::Deserialize;
use uuid::Uuid;

use super::keys::Keys;

/// What a checked pass says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pass {
    /// Who was let in.
    #[serde(rename = "sub")]
    pub user: UserId,
    /// To buy what.
    #[serde(rename = "aud")]
    pub item: ItemId,
    /// The ticket's own id.
    #[serde(rename = "jti")]
    pub id: Uuid,
}

/// Why a pass does not count.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Malformed, forged, or signed by a key that daegi does not publish.
    #[error("the pass was not issued by the waiting room")]
    Invalid,
    /// Genuine, but for something else.
    #[error("the pass is for another item")]
    OtherItem,
    /// Genuine, but too old: the place was given to somebody else.
    #[error("the pass has expired, please join the line again")]
    Expired,
    /// Nobody can say: the key is not known here, and daegi does not answer.
    #[error("the keys of the waiting room cannot be fetched")]
    NoKeys(#[from] reqwest::Error),
}

impl Pass {
    /// Checks a pass that somebody presents to buy `item`.
    ///
    /// # Errors
    /// If it does not count, and why.
    pub async fn check(keys: &Keys, item: &ItemId, text: &str) -> Result<Self, Refusal> {
        let header = jsonwebtoken::decode_header(text).map_err(|_| Refusal::Invalid)?;
        let kid = header.kid.ok_or(Refusal::Invalid)?;
        let key = keys.find(&kid).await?.ok_or(Refusal::Invalid)?;
        let pass = jsonwebtoken::decode::<Self>(text, &key, &rules(item))?;
        Ok(pass.claims)
    }

    /// The ticket's token, `{userId}-{itemId}-{id}`, which `order.closed` carries back.
    #[must_use]
    pub fn token(&self) -> String {
        format!("{}-{}-{}", self.user, self.item, self.id)
    }
}

/// The algorithm is ours to say, never the pass's. Issuer, item and expiry must be there.
fn rules(item: &ItemId) -> Validation {
    let mut rules = Validation::new(Algorithm::EdDSA);
    rules.set_required_spec_claims(&["iss", "aud", "sub", "exp"]);
    rules.set_issuer(&["daegi"]);
    rules.set_audience(&[item]);
    // The default grants a minute more; daegi gives the place away at the second.
    rules.leeway = 0;
    rules
}

impl From<JwtError> for Refusal {
    fn from(error: JwtError) -> Self {
        match error.kind() {
            ErrorKind::ExpiredSignature => Self::Expired,
            ErrorKind::InvalidAudience => Self::OtherItem,
            _ => Self::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use axum::{Json, Router, routing::get};
    use daegi_domain::{Number, PassKeys, Ticket, TicketKeys};
    use tokio::sync::RwLock;

    use super::*;
    use crate::now_ms;

    /// daegi as far as the order service knows it: published keys, which may change.
    struct Daegi {
        keys: Arc<RwLock<PassKeys>>,
        asked: Arc<AtomicUsize>,
        serving: tokio::task::JoinSet<()>,
        url: String,
    }

    impl Daegi {
        async fn start() -> Self {
            let keys = Arc::new(RwLock::new(PassKeys::generate()));
            let asked = Arc::new(AtomicUsize::new(0));
            let (published, count) = (Arc::clone(&keys), Arc::clone(&asked));
            let jwks = get(async move || {
                count.fetch_add(1, Ordering::SeqCst);
                Json(published.read().await.jwks())
            });
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let router = Router::new().route("/.well-known/jwks.json", jwks);
            let mut serving = tokio::task::JoinSet::new();
            serving.spawn(async { axum::serve(listener, router).await.unwrap() });
            Self { keys, asked, serving, url }
        }

        /// The pass of a person who was let in just now, for this long.
        async fn pass(&self, for_ms: i64) -> String {
            let (ticket, now) = (ticket(), now_ms());
            let expires = now.saturating_add_signed(for_ms);
            self.keys.read().await.pass(&ticket, tickets().uuid(&ticket), now, expires)
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::SeqCst)
        }
    }

    fn tickets() -> TicketKeys {
        format!("1:{}", "ab".repeat(32)).parse().unwrap()
    }

    fn ticket() -> Ticket {
        let (item, user) = (concert(), UserId::parse("kim").unwrap());
        Ticket { item, user, number: Number(77) }
    }

    fn concert() -> ItemId {
        ItemId::parse("concert").unwrap()
    }

    #[tokio::test]
    async fn a_pass_is_checked_against_the_published_keys_which_are_fetched_once() {
        let daegi = Daegi::start().await;
        let keys = Keys::of(&daegi.url);
        for _ in 0..3 {
            let pass = Pass::check(&keys, &concert(), &daegi.pass(60_000).await).await.unwrap();
            assert_eq!(pass.user.as_str(), "kim");
            assert_eq!(pass.token(), tickets().token(&ticket()), "daegi knows it by this token");
        }
        assert_eq!(daegi.asked(), 1);
    }

    #[tokio::test]
    async fn an_expired_pass_and_one_for_another_item_are_refused() {
        let daegi = Daegi::start().await;
        let keys = Keys::of(&daegi.url);
        let late = Pass::check(&keys, &concert(), &daegi.pass(-2_000).await).await;
        assert!(matches!(late, Err(Refusal::Expired)), "{late:?}");
        let other = ItemId::parse("other").unwrap();
        let wrong = Pass::check(&keys, &other, &daegi.pass(60_000).await).await;
        assert!(matches!(wrong, Err(Refusal::OtherItem)), "{wrong:?}");
    }

    #[tokio::test]
    async fn a_forged_pass_is_refused() {
        let daegi = Daegi::start().await;
        let keys = Keys::of(&daegi.url);
        let genuine = daegi.pass(60_000).await;
        let (signed, signature) = genuine.rsplit_once('.').unwrap();
        let (_, claims) = signed.split_once('.').unwrap();
        // `{"alg":"none"}`, and the claims of the genuine one.
        let unsigned = format!("eyJhbGciOiJub25lIn0.{claims}.");
        let other = Daegi::start().await.pass(60_000).await;
        let flipped = format!("{signed}.{}", signature.chars().rev().collect::<String>());
        for forged in ["", "a.b.c", &unsigned, &other, &flipped] {
            let refused = Pass::check(&keys, &concert(), forged).await;
            assert!(matches!(refused, Err(Refusal::Invalid)), "{forged}: {refused:?}");
        }
    }

    #[tokio::test]
    async fn a_new_key_is_fetched_when_it_is_met_but_not_for_every_stranger() {
        let daegi = Daegi::start().await;
        let keys = Keys::of(&daegi.url).with_pause(Duration::ZERO);
        assert!(Pass::check(&keys, &concert(), &daegi.pass(60_000).await).await.is_ok());
        *daegi.keys.write().await = PassKeys::generate();
        assert!(Pass::check(&keys, &concert(), &daegi.pass(60_000).await).await.is_ok());
        assert_eq!(daegi.asked(), 2);

        let keys = keys.with_pause(Duration::from_secs(3600));
        let stranger = Daegi::start().await.pass(60_000).await;
        for _ in 0..3 {
            assert!(Pass::check(&keys, &concert(), &stranger).await.is_err());
        }
        assert_eq!(daegi.asked(), 2, "asked a moment ago");
    }

    #[tokio::test]
    async fn without_keys_nobody_can_say() {
        let mut daegi = Daegi::start().await;
        let (keys, pass) = (Keys::of(&daegi.url), daegi.pass(60_000).await);
        daegi.serving.shutdown().await;
        let refused = Pass::check(&keys, &concert(), &pass).await;
        assert!(matches!(refused, Err(Refusal::NoKeys(_))), "{refused:?}");
    }
}
