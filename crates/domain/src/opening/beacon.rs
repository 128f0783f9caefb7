use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Opening;
use crate::{Item, Millis};

/// The time of round 1 of drand's quicknet, in Unix milliseconds.
const GENESIS_MS: Millis = 1_692_803_367_000;

/// Time between two rounds of drand's quicknet.
const PERIOD_MS: Millis = 3_000;

/// The least time between the opening and the round that the server chooses, so that a leader fixes the cohort
/// before the round is published. Ten ticks of the default length.
const LEAD_MS: Millis = 10_000;

/// The longest time between the opening and its round, because the users of the lobby wait for it.
const MAX_WAIT_MS: Millis = 600_000;

/// A round of a public randomness beacon, whose value is mixed into the seed of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Beacon {
    /// Which beacon.
    pub kind: BeaconKind,
    /// The round. If it is missing or null, the server chooses the first round that is published at least 10
    /// seconds after `opensAt`; with `opensAt: null` it does so when an operator opens the line.
    #[serde(default)]
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub round: Option<u64>,
}

/// A public randomness beacon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BeaconKind {
    /// The chain quicknet of drand, with a round every 3 seconds.
    Drand,
}

/// Why the beacon of an opening is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BeaconError {
    /// The order of arrival needs no random number.
    #[error("opening.beacon needs opening.order draw")]
    NoDraw,
    /// A line without a time is opened by an operator, who decides when.
    #[error(
        "opening.beacon.round must be null while opening.opensAt is null: the round is chosen when the line is opened"
    )]
    ByHand,
    /// The round is known while the lobby is open, or long after the opening.
    #[error(
        "opening.beacon.round {round} is published at {}, it must be published within 10 minutes after opensAt: \
         the first round at least 10 s after it is {first}; send beacon.round null to take it",
        time(*.round)
    )]
    Round {
        /// The round of the opening.
        round: u64,
        /// The round that the server would choose.
        first: u64,
    },
    /// The line closes before its order is drawn.
    #[error("opening.closesAt must be after {}, when opening.beacon.round {_0} is published", time(*_0))]
    Closes(u64),
}

/// Returns the time at which a round of quicknet is published.
#[must_use]
pub fn round_published_at(round: u64) -> Millis {
    GENESIS_MS.saturating_add(PERIOD_MS.saturating_mul(round.saturating_sub(1)))
}

/// Returns the first round of quicknet that is published at `time` or later.
#[must_use]
pub fn first_round_from(time: Millis) -> u64 {
    time.saturating_sub(GENESIS_MS).div_ceil(PERIOD_MS) + 1
}

/// Returns the randomness of a round: the SHA-256 of its signature.
#[must_use]
pub fn beacon_of(signature: &[u8; 48]) -> [u8; 32] {
    Sha256::digest(signature).into()
}

/// Returns the time of a round as text. A time beyond RFC 3339 is that of no opening.
fn time(round: u64) -> String {
    /// The last millisecond of the year 9999.
    const LAST_MS: Millis = 253_402_300_799_999;
    crate::rfc3339(round_published_at(round).min(LAST_MS))
}

/// Returns the round that the server chooses for a time of opening.
fn chosen_round(opens_at: Millis) -> u64 {
    first_round_from(opens_at.saturating_add(LEAD_MS))
}

impl Opening {
    /// Chooses the round of a beacon that has none, if the time of the opening is known.
    #[must_use]
    pub fn with_beacon_round(mut self) -> Self {
        if let (Some(beacon), Some(opens_at)) = (&mut self.beacon, self.opens_at) {
            beacon.round.get_or_insert_with(|| chosen_round(opens_at));
        }
        self
    }

    /// Moves the opening to another time. Its beacon gets the round that follows from it.
    #[must_use]
    pub fn moved_to(self, opens_at: Millis) -> Self {
        let beacon = self.beacon.map(|beacon| Beacon { round: None, ..beacon });
        Self { opens_at: Some(opens_at), beacon, ..self }.with_beacon_round()
    }

    /// Returns the round of the beacon, if there is one and it is chosen.
    pub fn beacon_round(&self) -> Option<u64> {
        self.beacon?.round
    }

    pub(super) fn check_beacon(&self) -> Result<(), BeaconError> {
        let Some(beacon) = self.beacon else { return Ok(()) };
        if self.order != super::Order::Draw {
            return Err(BeaconError::NoDraw);
        }
        let Some(round) = beacon.round else { return Ok(()) };
        let opens_at = self.opens_at.ok_or(BeaconError::ByHand)?;
        let published = round_published_at(round);
        if published <= opens_at || published > opens_at.saturating_add(MAX_WAIT_MS) {
            return Err(BeaconError::Round { round, first: chosen_round(opens_at) });
        }
        if self.closes_at.is_some_and(|closes_at| closes_at <= published) {
            return Err(BeaconError::Closes(round));
        }
        Ok(())
    }

    /// Returns whether the beacon of `new` continues this one: it is the same, or its round moves with the time
    /// of the opening. A round whose value may be known cannot be exchanged for another one.
    pub(super) fn keeps_beacon(&self, new: &Self, now: Millis) -> bool {
        match (self.beacon, new.beacon) {
            (Some(old), Some(new_beacon)) if self.opens_at != new.opens_at => {
                let is_secret = old.round.is_none_or(|round| round_published_at(round) > now);
                old.kind == new_beacon.kind && (is_secret || old.round == new_beacon.round)
            }
            (old, new) => old == new,
        }
    }
}

impl Item {
    /// Returns the round for which the line waits: its opening is due, and the signature is not stored.
    pub fn awaited_round(&self, now: Millis) -> Option<u64> {
        let beacon = self.draw.as_ref()?.beacon?;
        (self.is_opening_due(now) && beacon.signature.is_none()).then_some(beacon.round)
    }

    /// Returns when the line opens: at its time, or, once its cohort waits for the round of a beacon, when that is
    /// published.
    pub fn opens_at(&self) -> Option<Millis> {
        let opening = self.policy.opening.as_ref()?;
        let round = opening.beacon_round().filter(|_| self.is_drawing());
        round.map(round_published_at).or(opening.opens_at)
    }

    /// Returns whether the cohort of a draw is fixed and the line has not opened, so that nothing of the draw can
    /// change any more.
    pub fn is_drawing(&self) -> bool {
        let is_frozen = self.draw.as_ref().is_some_and(|draw| draw.cohort.is_some());
        is_frozen && self.opened_at.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Order;

    const OPENS_AT: Millis = 1_694_775_590_000;

    fn drawn(round: Option<u64>) -> Opening {
        let beacon = Some(Beacon { kind: BeaconKind::Drand, round });
        Opening { opens_at: Some(OPENS_AT), order: Order::Draw, beacon, ..Opening::default() }
    }

    #[test]
    fn rounds_follow_the_formula_of_quicknet() {
        assert_eq!(round_published_at(1), 1_692_803_367_000);
        assert_eq!(round_published_at(657_413), 1_694_775_603_000);
        for (time, round) in [
            (0, 1),
            (1_692_803_367_000, 1),
            (1_692_803_367_001, 2),
            (1_694_775_603_000, 657_413),
            (1_694_775_603_001, 657_414),
        ] {
            assert_eq!(first_round_from(time), round, "{time}");
        }
        assert_eq!(round_published_at(u64::MAX), u64::MAX, "no overflow");
    }

    #[test]
    fn the_server_chooses_the_first_round_ten_seconds_after_the_opening() {
        assert_eq!(drawn(None).with_beacon_round(), drawn(Some(657_412)));
        assert_eq!(round_published_at(657_412), OPENS_AT + 10_000);
        assert_eq!(drawn(Some(657_413)).with_beacon_round(), drawn(Some(657_413)));
        let by_hand = Opening { opens_at: None, ..drawn(None) };
        assert_eq!(by_hand.clone().with_beacon_round(), by_hand);
        assert_eq!(by_hand.check(), Ok(()));
        assert_eq!(by_hand.moved_to(OPENS_AT), drawn(Some(657_412)));
    }

    #[test]
    fn a_round_before_the_opening_or_long_after_it_is_refused_with_one_that_fits() {
        let check = |opening: Opening| opening.check_beacon();
        let refused = |round| Err(BeaconError::Round { round, first: 657_412 });
        for round in [0, 1, 657_408, 657_608 + 1, u64::MAX] {
            assert_eq!(check(drawn(Some(round))), refused(round), "{round}");
        }
        for round in [657_409, 657_412, 657_608] {
            assert_eq!(check(drawn(Some(round))), Ok(()), "{round}");
        }
        let error = check(drawn(Some(7))).unwrap_err().to_string();
        assert!(error.contains("2023-08-23T15:09:45.000Z") && error.contains("657412"), "{error}");
        assert!(check(drawn(Some(u64::MAX))).unwrap_err().to_string().contains("9999"));
    }

    #[test]
    fn a_beacon_needs_a_draw_and_a_time_that_follows_its_round() {
        let arrival = Opening { order: Order::Arrival, ..drawn(Some(657_413)) };
        assert_eq!(arrival.check_beacon(), Err(BeaconError::NoDraw));
        let by_hand = Opening { opens_at: None, ..drawn(Some(657_413)) };
        assert_eq!(by_hand.check_beacon(), Err(BeaconError::ByHand));
        let closes = |at| Opening { closes_at: Some(at), ..drawn(Some(657_413)) };
        let published = round_published_at(657_413);
        assert_eq!(closes(published).check_beacon(), Err(BeaconError::Closes(657_413)));
        assert_eq!(closes(published + 1).check_beacon(), Ok(()));
    }

    #[test]
    fn the_json_has_the_round_or_null() {
        let read = |text: &str| serde_json::from_str::<Beacon>(text).map(|beacon| beacon.round);
        assert_eq!(read(r#"{"kind":"drand","round":7}"#).unwrap(), Some(7));
        assert_eq!(read(r#"{"kind":"drand"}"#).unwrap(), None);
        for bad in [r#"{"round":7}"#, r#"{"kind":"nist"}"#, r#"{"kind":"drand","round":-1}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
