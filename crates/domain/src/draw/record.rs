//! The public record of a draw: the JSON of `GET …/draw`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{Cohort, DRAW_VERSION, commitment, draw_seed};
use crate::{Draw, ItemId, Number};

/// Bytes of a fixed length; hexadecimal text in JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hex<const N: usize>(pub [u8; N]);

/// The public record of a draw. `docs/DRAW.md` says how to check it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrawRecord {
    /// The item of the line.
    pub item_id: ItemId,
    /// The version of the draw: 1.
    pub version: u32,
    /// Whether the draw has happened.
    pub state: DrawState,
    /// SHA-256 of the reveal, public before the lobby opens.
    pub commitment: Hex<32>,
    /// The secret of the draw; null until drawn.
    pub reveal: Option<Hex<32>>,
    /// The lowest number of the cohort; null until drawn.
    pub cohort_first: Option<Number>,
    /// How many numbers the cohort has, including those that left before the opening; null until drawn.
    pub cohort_size: Option<u64>,
    /// The Merkle root over the tokens of the cohort; null until drawn.
    pub cohort_root: Option<Hex<32>>,
    /// The randomness of the beacon; null until drawn, or if the opening has no beacon.
    pub beacon: Option<Hex<32>>,
    /// The seed of the order; null until drawn.
    pub seed: Option<Hex<32>>,
    /// The round of drand's quicknet that gives the beacon; absent if the opening has no beacon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beacon_round: Option<u64>,
    /// The signature of that round, whose SHA-256 is the beacon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beacon_signature: Option<Hex<48>>,
    /// The cohort that takes part, while the draw waits for the round of its beacon. Note it: the record of the
    /// draw must have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<FrozenCohort>,
    /// The ticket of the token that was sent with the request, if the cohort has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<DrawTicket>,
}

/// Whether a draw has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DrawState {
    /// Only the commitment is public.
    Committed,
    /// The line has opened, and everything is public.
    Drawn,
}

/// A cohort that is fixed before its order is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrozenCohort {
    /// The lowest number of the cohort.
    pub cohort_first: Number,
    /// How many numbers the cohort has.
    pub cohort_size: u64,
    /// The Merkle root over the tokens of the cohort.
    pub cohort_root: Hex<32>,
}

/// One ticket of the cohort, with the proof that the draw included its token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrawTicket {
    /// The number of the ticket.
    pub number: Number,
    /// SHA-256 of the token, or zeros if the ticket ended before the opening.
    pub leaf: Hex<32>,
    /// The index of the leaf: number − cohortFirst.
    pub index: u64,
    /// The inclusion path (RFC 6962), from the leaf's sibling upwards.
    pub path: Vec<Hex<32>>,
    /// The place in the drawn order, from 1.
    pub rank: u64,
}

impl DrawRecord {
    /// Returns the record of a draw that has not happened.
    #[must_use]
    pub fn committed(item_id: ItemId, commitment: [u8; 32]) -> Self {
        Self {
            item_id,
            version: DRAW_VERSION,
            state: DrawState::Committed,
            commitment: Hex(commitment),
            reveal: None,
            cohort_first: None,
            cohort_size: None,
            cohort_root: None,
            beacon: None,
            seed: None,
            beacon_round: None,
            beacon_signature: None,
            frozen: None,
            ticket: None,
        }
    }

    /// Returns the record of a draw over the numbers `first … first + size − 1`.
    #[must_use]
    pub fn drawn(
        item_id: ItemId,
        reveal: [u8; 32],
        (first, size): (Number, u64),
        cohort_root: [u8; 32],
        beacon: Option<[u8; 32]>,
    ) -> Self {
        let seed = draw_seed(&item_id, &reveal, &cohort_root, beacon.as_ref());
        Self {
            state: DrawState::Drawn,
            reveal: Some(Hex(reveal)),
            cohort_first: Some(first),
            cohort_size: Some(size),
            cohort_root: Some(Hex(cohort_root)),
            beacon: beacon.map(Hex),
            seed: Some(Hex(seed)),
            ..Self::committed(item_id, commitment(&reveal))
        }
    }

    /// Adds the beacon of the draw, and the cohort that waits for it.
    #[must_use]
    pub fn with_beacon(mut self, draw: &Draw) -> Self {
        let Some(beacon) = draw.beacon else { return self };
        self.beacon_round = Some(beacon.round);
        match self.state {
            DrawState::Drawn => self.beacon_signature = beacon.signature.map(Hex),
            DrawState::Committed => {
                let frozen = draw.cohort.zip(draw.root);
                self.frozen = frozen.map(|(cohort, root)| FrozenCohort {
                    cohort_first: cohort.first,
                    cohort_size: cohort.size,
                    cohort_root: Hex(root),
                });
            }
        }
        self
    }

    /// Adds the ticket with this number, leaf and inclusion path. Adds none if the cohort does not contain
    /// the number, or before the draw.
    #[must_use]
    pub fn with_ticket(mut self, number: Number, leaf: [u8; 32], path: &[[u8; 32]]) -> Self {
        self.ticket = self.cohort().and_then(|cohort| {
            Some(DrawTicket {
                number,
                leaf: Hex(leaf),
                index: number.0.checked_sub(cohort.first().0)?,
                path: path.iter().copied().map(Hex).collect(),
                rank: cohort.cohort_rank(number)?,
            })
        });
        self
    }

    /// Returns the cohort with its order. Returns `None` before the draw, or if a field of it is missing or the
    /// numbers are not valid ones.
    #[must_use]
    pub fn cohort(&self) -> Option<Cohort> {
        let (first, size) = (self.cohort_first?, self.cohort_size?);
        let end = first.0.checked_add(size)?;
        (end <= Number::MAX.0 + 1).then_some(Cohort::new(first, size, self.seed?.0))
    }
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl<const N: usize> fmt::Debug for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(self.0))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let mut bytes = [0; N];
        let digits = N * 2;
        let is_canonical = hex::decode_to_slice(&*text, &mut bytes).is_ok()
            && !text.bytes().any(|digit| digit.is_ascii_uppercase());
        let expected = format_args!("expected {digits} hexadecimal digits in lower case");
        if is_canonical { Ok(Self(bytes)) } else { Err(D::Error::custom(expected)) }
    }
}

impl<const N: usize> JsonSchema for Hex<N> {
    fn schema_name() -> Cow<'static, str> {
        format!("Hex{N}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": format!("^[0-9a-f]{{{}}}$", N * 2) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn item() -> ItemId {
        ItemId::parse("concert").unwrap()
    }

    #[test]
    fn the_json_before_the_draw_has_nulls() {
        let record = DrawRecord::committed(item(), [0xab; 32]);
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(
            json,
            json!({
                "itemId": "concert", "version": 1, "state": "COMMITTED",
                "commitment": "ab".repeat(32), "reveal": null, "cohortFirst": null,
                "cohortSize": null, "cohortRoot": null, "beacon": null, "seed": null,
            })
        );
        assert_eq!(serde_json::from_value::<DrawRecord>(json).unwrap(), record);
    }

    #[test]
    fn the_json_after_the_draw_is_read_back() {
        let record = DrawRecord::drawn(item(), [1; 32], (Number(64), 5), [2; 32], Some([3; 32]))
            .with_ticket(Number(66), [4; 32], &[[5; 32]]);
        let ticket = record.ticket.as_ref().unwrap();
        assert_eq!((ticket.index, ticket.number), (2, Number(66)));
        assert!((1..=5).contains(&ticket.rank));
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(json["ticket"]["path"], json!(["05".repeat(32)]));
        assert_eq!(serde_json::from_value::<DrawRecord>(json).unwrap(), record);
    }

    #[test]
    fn a_number_outside_the_cohort_gets_no_ticket() {
        let record = DrawRecord::drawn(item(), [1; 32], (Number(64), 5), [2; 32], None);
        for number in [63, 69].map(Number) {
            assert_eq!(record.clone().with_ticket(number, [4; 32], &[]).ticket, None);
        }
        let committed = DrawRecord::committed(item(), [1; 32]);
        assert_eq!(committed.with_ticket(Number(64), [4; 32], &[]).ticket, None);
    }

    #[test]
    fn a_hash_with_other_digits_is_refused() {
        for bad in ["", "ab", &"ab".repeat(33), &"zz".repeat(32), &"AB".repeat(32), "é"] {
            let error = serde_json::from_value::<Hex<32>>(Value::from(bad)).unwrap_err();
            assert_eq!(error.to_string(), "expected 64 hexadecimal digits in lower case");
        }
    }
}
