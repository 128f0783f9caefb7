//! The entry of an admitted user.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use daegi_domain::{ItemId, LaneName, Number, UserId};
use uuid::Uuid;

/// An admitted user, as stated by their pass. Handlers behind a [`GuardLayer`](crate::GuardLayer)
/// extract it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The admitted user.
    pub user: UserId,
    /// The item they were admitted to.
    pub item: ItemId,
    /// The id of the pass. It changes when daegi's ticket secret is rotated. Use `item`, `user` and
    /// `number` as the key for one order per entry: all passes of an entry share them.
    pub pass_id: Uuid,
    /// The ticket's number, unique in its lane.
    pub number: Number,
    /// The name of the ticket's lane; `None` for the standard lane.
    pub lane: Option<LaneName>,
    /// When the entry expires, in seconds since the Unix epoch.
    pub expires_at: u64,
    /// Whether the signature was verified. False only with
    /// [`OnUnavailable::FailOpen`](crate::OnUnavailable::FailOpen).
    pub signature_verified: bool,
}

impl Entry {
    /// Returns the ticket's token, `{userId}-{itemId}-{passId}`, which identifies the entry to daegi.
    #[must_use]
    pub fn token(&self) -> String {
        format!("{}-{}-{}", self.user, self.item, self.pass_id)
    }
}

impl<S: Sync> FromRequestParts<S> for Entry {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let missing = (StatusCode::INTERNAL_SERVER_ERROR, "this route is not behind a GuardLayer");
        parts.extensions.get().cloned().ok_or(missing)
    }
}
