//! The entry of a person who was let in.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use daegi_domain::{ItemId, Number, UserId};
use uuid::Uuid;

/// A person who was let in, as their pass says. Handlers behind a [`Protect`](crate::Protect)
/// take it as an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Who was let in.
    pub user: UserId,
    /// To what.
    pub item: ItemId,
    /// The pass's own id. Another one once daegi signs with another ticket secret: what all passes
    /// of an entry have in common is `item`, `user` and `number`, the key for one order per entry.
    pub pass_id: Uuid,
    /// Their number in the line.
    pub number: Number,
    /// When the entry ends, in seconds since 1970.
    pub expires_at: u64,
    /// Whether the signature was checked. False only under
    /// [`WhenAway::LetIn`](crate::WhenAway::LetIn).
    pub genuine: bool,
}

impl Entry {
    /// The ticket's token, `{userId}-{itemId}-{passId}`, by which daegi knows the entry.
    #[must_use]
    pub fn token(&self) -> String {
        format!("{}-{}-{}", self.user, self.item, self.pass_id)
    }
}

impl<S: Sync> FromRequestParts<S> for Entry {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let missing = (StatusCode::INTERNAL_SERVER_ERROR, "this route is not behind a guard");
        parts.extensions.get().cloned().ok_or(missing)
    }
}
