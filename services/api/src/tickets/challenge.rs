//! Challenges at the join: who is challenged, and how hard the work is. No store call is made.

use daegi_domain::{Challenge, ChallengeError, ItemId, UserId};
use daegi_runtime::problem::{ChallengeKind, PresentedChallenge};

use super::TicketService;
use crate::error::{Error, Result};

/// What a client presents so that it is not challenged.
#[derive(Debug, Clone, Copy)]
pub(super) enum JoinProof<'a> {
    /// The valid token of an earlier ticket of this user at this item. Its first join was challenged.
    Token,
    /// None, because an allow rule exempts the join.
    Exempt,
    /// The solution of a challenge, if the client sent one.
    Solution(Option<&'a str>),
}

/// The pressure of a source that joins no faster than others.
const NO_PRESSURE: u8 = 0;

/// Returns the zero bits of a challenge. The pressure of a source is how many times its rate of joins doubled beyond
/// its share: each doubling doubles the work of a join.
fn difficulty(base: u8, source_pressure: u8) -> u8 {
    base.saturating_add(source_pressure).min(Challenge::MAX_DIFFICULTY)
}

impl TicketService {
    /// Lets a join pass that needs no challenge or has solved it.
    ///
    /// # Errors
    /// [`Error::ChallengeRequired`] with a new challenge.
    pub(super) fn require_proof(
        &self,
        item: &ItemId,
        user: &UserId,
        proof: JoinProof<'_>,
    ) -> Result<()> {
        let refused = match proof {
            JoinProof::Token | JoinProof::Exempt => return Ok(()),
            JoinProof::Solution(None) => None,
            JoinProof::Solution(Some(solution)) => {
                let now = self.clock.now_ms();
                match self.ticket_keys.verify_solution(item, user, solution, now) {
                    Ok(_) => {
                        self.metrics.challenge_solved();
                        return Ok(());
                    }
                    Err(error) => Some(error),
                }
            }
        };
        Err(self.challenge(item, user, refused))
    }

    fn challenge(&self, item: &ItemId, user: &UserId, refused: Option<ChallengeError>) -> Error {
        self.metrics.challenged(refused);
        // The rate of a source is not measured yet: the limits per source will give its pressure.
        let difficulty = difficulty(self.challenge_bits, NO_PRESSURE);
        let challenge = Challenge { issued_at: self.clock.now_ms(), difficulty };
        let challenge = self.ticket_keys.challenge(item, user, challenge);
        let kind = ChallengeKind::Pow;
        let challenge = Box::new(PresentedChallenge { kind, challenge, difficulty });
        Error::ChallengeRequired { refused, challenge }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_raises_the_difficulty_up_to_the_maximum() {
        assert_eq!(difficulty(18, NO_PRESSURE), 18);
        assert_eq!(difficulty(18, 3), 21);
        assert_eq!(difficulty(18, u8::MAX), Challenge::MAX_DIFFICULTY);
    }
}
