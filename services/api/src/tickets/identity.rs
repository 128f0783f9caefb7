//! Who joins: the user that the client names, or the one that a signed identity proves.

use daegi_domain::{LaneName, UserId};
use daegi_identity::{Identity, IdentityError, IdentityVerifier};

use super::TicketService;
use crate::error::{Error, Result};

/// What a client says about the user of a join.
#[derive(Debug, Default)]
pub(crate) struct ClaimedUser<'a> {
    /// The user that the client names.
    pub(crate) named: Option<UserId>,
    /// The assertion that proves a user.
    pub(crate) assertion: Option<&'a str>,
}

impl TicketService {
    /// Returns whether a join needs a signed identity.
    pub(crate) fn needs_identity(&self) -> bool {
        self.identity.is_some()
    }

    /// Returns the user of a join and the lane that a signed identity assigns. A join returns the token of an existing
    /// ticket, so that this check also protects the places of users who wait.
    pub(crate) async fn identify(
        &self,
        claimed: ClaimedUser<'_>,
    ) -> Result<(UserId, Option<LaneName>)> {
        let Some(verifier) = &self.identity else {
            let missing = Error::invalid("the user id is missing: send a user-id header or userId");
            return Ok((claimed.named.ok_or(missing)?, None));
        };
        let proven = self.prove(verifier, claimed).await;
        if let Err(error) = &proven {
            self.metrics.joined(Err(error));
        }
        proven
    }

    async fn prove(
        &self,
        verifier: &IdentityVerifier,
        claimed: ClaimedUser<'_>,
    ) -> Result<(UserId, Option<LaneName>)> {
        let assertion = claimed.assertion.ok_or(IdentityError::Missing)?;
        let Identity { user, lane } = verifier.verify(assertion, self.clock.now_ms()).await?;
        if claimed.named.is_some_and(|named| named != user) {
            return Err(Error::OtherIdentity);
        }
        Ok((user, lane))
    }
}
