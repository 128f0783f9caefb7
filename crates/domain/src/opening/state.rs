use std::fmt;

use crate::{Item, Millis, Number, Opening, Order, Phase};

/// The secret of a draw: 32 random bytes, made when the draw is planned. Its hash is public from then on, the
/// secret itself once the line has opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reveal(pub [u8; 32]);

/// The draw of a line whose opening has the order `draw`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draw {
    /// The secret. It must not leave the store before `drawn` is set.
    pub reveal: Reveal,
    /// The tickets that take part, once the leader has begun to open the line.
    pub cohort: Option<CohortRange>,
    /// The Merkle root of the cohort's tokens. With a beacon it is fixed before the round is published, so that
    /// nothing of the draw can change when the round is known.
    pub root: Option<[u8; 32]>,
    /// The beacon, if the opening names a round of one.
    pub beacon: Option<DrawBeacon>,
    /// The result, once the line has opened.
    pub drawn: Option<Drawn>,
}

/// The round of a beacon in a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawBeacon {
    /// The round that the opening names.
    pub round: u64,
    /// The signature of the round, verified, once it is known.
    pub signature: Option<[u8; 48]>,
}

/// The numbers of a cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CohortRange {
    /// The first number.
    pub first: Number,
    /// How many numbers there are, those included that left the lobby.
    pub size: u64,
}

/// The result of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// The Merkle root of the cohort's tokens.
    pub root: [u8; 32],
    /// The randomness of the beacon's round, if the opening names one.
    pub beacon: Option<[u8; 32]>,
    /// The seed of the permutation.
    pub seed: [u8; 32],
}

impl Draw {
    /// Returns the draw of an opening that is planned.
    pub fn new(reveal: Reveal, opening: &Opening) -> Self {
        let beacon = opening.beacon_round().map(|round| DrawBeacon { round, signature: None });
        Self { reveal, cohort: None, root: None, beacon, drawn: None }
    }
}

impl CohortRange {
    /// Returns the last number; the one before the first if the cohort is empty.
    pub fn last(self) -> Number {
        Number(self.first.0 + self.size - 1)
    }

    /// Returns whether the number takes part.
    pub fn contains(self, number: Number) -> bool {
        self.first <= number && number.0 - self.first.0 < self.size
    }
}

impl Item {
    /// Returns whether the order of the waiting tickets is not drawn yet, so that they have no position.
    pub fn is_draw_undecided(&self, now: Millis) -> bool {
        let is_draw = |order| order == Order::Draw;
        self.policy.opening.as_ref().is_some_and(|opening| is_draw(opening.order))
            && matches!(self.phase(now), Phase::Scheduled | Phase::Lobby)
    }

    /// Returns the numbers of a drawn cohort and the result of the draw.
    pub fn drawn_cohort(&self) -> Option<(CohortRange, Drawn)> {
        let draw = self.draw.as_ref()?;
        draw.cohort.zip(draw.drawn)
    }
}

impl fmt::Debug for Reveal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reveal(…)")
    }
}
