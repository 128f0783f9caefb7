//! Challenges at the join: who is challenged, how hard the work is, and whether a solution is accepted. No store call
//! is made.

mod pressure;
mod widget;

use std::net::IpAddr;

use daegi_domain::{Challenge, ChallengeError, ChallengePolicy, ItemId, UserId};
use daegi_runtime::http::Source;
use daegi_runtime::problem::{ChallengeKind, PresentedChallenge};

use self::pressure::SourcePressure;
use super::TicketService;
use crate::access::Client;
use crate::app::ApiLimits;
use crate::error::{Error, Result};
use crate::lines::LineKey;

pub(crate) use self::widget::Widget;

/// What a client presents so that it is not challenged.
#[derive(Debug, Clone, Copy)]
pub(super) enum JoinProof<'a> {
    /// The valid token of an earlier ticket of this user at this item. Its first join was challenged.
    Token,
    /// A valid invitation code of this item, whose number of uses the operator has set.
    Invitation,
    /// None, because an allow rule exempts the join.
    Exempt,
    /// The solution of a challenge, if the client sent one.
    Solution(Option<&'a str>),
}

/// How hard proofs of work are.
#[derive(Debug)]
pub(super) struct ProofOfWork {
    base: u8,
    pressure: SourcePressure,
}

impl ProofOfWork {
    pub(super) fn new(limits: &ApiLimits) -> Self {
        let pressure = SourcePressure::new(limits.challenge_share, limits.challenge_extra_bits);
        Self { base: limits.challenge_bits, pressure }
    }

    /// Counts a challenge of a source. Returns its zero bits, and whether they are more than those of other sources.
    fn difficulty(&self, source: Option<Source>, is_over_limit: bool) -> (u8, bool) {
        let measured = source.map_or(0, |source| self.pressure.count(source));
        let extra = if is_over_limit { self.pressure.max_bits() } else { measured };
        (self.base.saturating_add(extra).min(Challenge::MAX_DIFFICULTY), extra > 0)
    }
}

impl TicketService {
    /// Returns whether the line of an item challenges new users, as far as this pod has it in memory.
    pub(crate) fn is_challenged(&self, item: &ItemId) -> bool {
        let line = self.lines.get(&LineKey::standard(item)).and_then(|line| line.cached());
        line.is_some_and(|cached| cached.line.item.policy.challenge != ChallengePolicy::Off)
    }

    /// Lets a join pass that needs no challenge or has solved it.
    ///
    /// # Errors
    /// [`Error::ChallengeRequired`] with a new challenge. [`Error::WidgetUnavailable`] if nothing can verify a widget.
    pub(super) async fn require_proof(
        &self,
        policy: ChallengePolicy,
        (item, user): (&ItemId, &UserId),
        proof: JoinProof<'_>,
        client: &Client,
    ) -> Result<()> {
        let JoinProof::Solution(solution) = proof else { return Ok(()) };
        // The solution that a client has not sent is not refused.
        let refused = match (policy, solution) {
            (ChallengePolicy::Off, _) => return Ok(()),
            (_, None) => None,
            (ChallengePolicy::Pow, Some(solution)) => {
                let now = self.clock.now_ms();
                match self.ticket_keys.verify_solution(item, user, solution, now) {
                    Ok(_) => return self.solved(),
                    Err(error) => Some(error),
                }
            }
            (ChallengePolicy::Widget, Some(solution)) => {
                // Boxed, because few joins need it and its size would be part of every join's future.
                match Box::pin(self.verify_widget((item, user), solution, client.address())).await?
                {
                    None => return self.solved(),
                    refused => refused,
                }
            }
        };
        Err(match policy {
            ChallengePolicy::Widget => self.widget_challenge((item, user), refused),
            _ => self.proof_of_work((item, user), client.source(), refused),
        })
    }

    fn solved(&self) -> Result<()> {
        self.metrics.challenge_solved();
        Ok(())
    }

    fn proof_of_work(
        &self,
        (item, user): (&ItemId, &UserId),
        source: Option<Source>,
        refused: Option<ChallengeError>,
    ) -> Error {
        let is_over_limit = source.is_some_and(|source| self.rate_limits.is_over_joins(source));
        let (difficulty, is_raised) = self.proof_of_work.difficulty(source, is_over_limit);
        self.metrics.challenged(refused, is_raised);
        let challenge = Challenge { issued_at: self.clock.now_ms(), difficulty };
        let challenge = self.ticket_keys.challenge(item, user, challenge);
        let kind = ChallengeKind::Pow;
        let challenge = PresentedChallenge { kind, challenge, difficulty, widget: None };
        Error::ChallengeRequired { refused, challenge: Box::new(challenge) }
    }

    /// Returns the error with a challenge that a widget solves.
    fn widget_challenge(
        &self,
        (item, user): (&ItemId, &UserId),
        refused: Option<ChallengeError>,
    ) -> Error {
        let widget = match self.widget.presented() {
            Ok(widget) => Some(widget),
            Err(error) => return error,
        };
        self.metrics.challenged(refused, false);
        let challenge = self.ticket_keys.widget_challenge(item, user, self.clock.now_ms());
        let kind = ChallengeKind::Widget;
        let challenge = PresentedChallenge { kind, challenge, difficulty: 0, widget };
        Error::ChallengeRequired { refused, challenge: Box::new(challenge) }
    }

    /// Verifies the solution of a widget: first what this pod signed, then the response, at its provider. Returns why
    /// the solution is refused.
    async fn verify_widget(
        &self,
        (item, user): (&ItemId, &UserId),
        solution: &str,
        client: Option<IpAddr>,
    ) -> Result<Option<ChallengeError>> {
        let now = self.clock.now_ms();
        match self.ticket_keys.verify_widget_challenge(item, user, solution, now) {
            Ok((challenge, response)) => {
                let is_confirmed = self.widget.verify(challenge, response, client).await?;
                Ok((!is_confirmed).then_some(ChallengeError::WrongResponse))
            }
            Err(error) => Ok(Some(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_over_its_limit_gets_the_hardest_challenge_of_all_sources() {
        let limits =
            ApiLimits { challenge_bits: 18, challenge_extra_bits: 3, ..ApiLimits::default() };
        let (work, source) = (ProofOfWork::new(&limits), Source::new([192, 0, 2, 1].into()));
        assert_eq!(work.difficulty(Some(source), false), (18, false));
        assert_eq!(work.difficulty(Some(source), true), (21, true));
        assert_eq!(work.difficulty(None, false), (18, false), "no connection");
        let work = ProofOfWork::new(&ApiLimits { challenge_bits: 23, ..limits });
        assert_eq!(work.difficulty(Some(source), true), (Challenge::MAX_DIFFICULTY, true));
    }
}
