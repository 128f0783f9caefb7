//! Lanes: classes of users of one item, each with its own numbers and a share of the rate. [`share`] divides
//! the admissions of a round among them.

pub mod share;

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::Lane;

/// Lanes of one item at most, besides the standard lane.
pub const MAX_LANES: usize = 8;

/// The sum of all weights.
const TOTAL_WEIGHT: u32 = 100;

/// A lane of a line, in addition to the standard lane. Its index in the policy plus one is its [`Lane`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LanePolicy {
    /// The name: what codes and claims refer to, and what users see.
    pub name: LaneName,
    /// The share of the rate in percent, 1 to 99; the standard lane has what is left of 100. Not used by a
    /// lane with `first`.
    #[serde(default)]
    #[schemars(range(max = 99))]
    pub weight: u32,
    /// Whether the lane is served before all lanes that have a weight, in the order of the policy.
    #[serde(default)]
    pub first: bool,
}

/// The name of a lane: 1–32 of `A-Z a-z 0-9 . _ ~ -`, but not `standard`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LaneName(String);

/// Why lanes are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// A name that is not allowed.
    #[error(
        "the lane name {0:?} is not allowed: use 1 to 32 of A-Z a-z 0-9 . _ ~ -, and not \"standard\""
    )]
    Name(String),
    /// Two lanes with one name.
    #[error("two lanes are named {0:?}")]
    DuplicateName(String),
    /// Too many lanes.
    #[error("the policy has {0} lanes, at most 8 are allowed")]
    TooMany(usize),
    /// A lane without a share.
    #[error("lane {0:?} has weight 0: give it 1 to 99 percent of the rate, or \"first\": true")]
    NoWeight(String),
    /// No share left for the standard lane.
    #[error(
        "the weights of the lanes sum to {0}, at most 99 leave a share for users without a lane"
    )]
    NoneLeft(u32),
}

impl LaneName {
    /// The longest name.
    pub const MAX_LEN: usize = 32;

    /// The name of the lane of all other users.
    pub const STANDARD: &'static str = "standard";

    /// Parses a name.
    ///
    /// # Errors
    /// If it is empty, too long, reserved, or has other characters.
    pub fn parse(text: &str) -> Result<Self, LaneError> {
        let is_allowed =
            |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'~' | b'-');
        let fits = (1..=Self::MAX_LEN).contains(&text.len()) && text.bytes().all(is_allowed);
        if !fits || text == Self::STANDARD {
            return Err(LaneError::Name(text.chars().take(Self::MAX_LEN + 1).collect()));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks the lanes of a policy.
///
/// # Errors
/// The first rule that they break.
pub fn check(lanes: &[LanePolicy]) -> Result<(), LaneError> {
    if lanes.len() > MAX_LANES {
        return Err(LaneError::TooMany(lanes.len()));
    }
    for (index, lane) in lanes.iter().enumerate() {
        let name = || lane.name.as_str().to_owned();
        if lanes[..index].iter().any(|other| other.name == lane.name) {
            return Err(LaneError::DuplicateName(name()));
        }
        if lane.weight == 0 && !lane.first {
            return Err(LaneError::NoWeight(name()));
        }
    }
    let sum = sum_of_weights(lanes);
    if sum >= TOTAL_WEIGHT { Err(LaneError::NoneLeft(sum)) } else { Ok(()) }
}

/// Returns the weight of the standard lane: what the others leave of 100, at least 1.
#[must_use]
pub fn standard_weight(lanes: &[LanePolicy]) -> u32 {
    TOTAL_WEIGHT.saturating_sub(sum_of_weights(lanes)).max(1)
}

fn sum_of_weights(lanes: &[LanePolicy]) -> u32 {
    let weights = lanes.iter().filter(|lane| !lane.first).map(|lane| lane.weight);
    weights.fold(0, u32::saturating_add)
}

/// Returns the lane with this name.
#[must_use]
pub fn find(lanes: &[LanePolicy], name: &LaneName) -> Option<Lane> {
    let index = lanes.iter().position(|lane| lane.name == *name)?;
    Lane::numbered(index + 1)
}

/// Returns the name of a lane; `None` for the standard lane and for a lane that the policy does not have.
#[must_use]
pub fn name(lanes: &[LanePolicy], lane: Lane) -> Option<&LaneName> {
    lanes.get(lane.index().checked_sub(1)?).map(|lane| &lane.name)
}

impl fmt::Display for LaneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for LaneName {
    type Error = LaneError;
    fn try_from(text: String) -> Result<Self, LaneError> {
        Self::parse(&text)
    }
}

impl From<LaneName> for String {
    fn from(name: LaneName) -> Self {
        name.0
    }
}

impl JsonSchema for LaneName {
    fn schema_name() -> Cow<'static, str> {
        "LaneName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = r"^(?!standard$)[A-Za-z0-9._~-]+$";
        json_schema!({ "type": "string", "minLength": 1, "maxLength": Self::MAX_LEN, "pattern": pattern })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(json: &str) -> Result<Vec<LanePolicy>, String> {
        let lanes: Vec<LanePolicy> =
            serde_json::from_str(json).map_err(|error| error.to_string())?;
        check(&lanes).map_err(|error| error.to_string())?;
        Ok(lanes)
    }

    #[test]
    fn the_standard_lane_has_what_is_left() {
        let lanes = lanes(
            r#"[{"name":"members","weight":20},{"name":"vip","first":true},{"name":"press","weight":10}]"#,
        )
        .unwrap();
        assert_eq!(standard_weight(&lanes), 70);
        assert_eq!(standard_weight(&[]), 100);
        let press = find(&lanes, &LaneName::parse("press").unwrap()).unwrap();
        assert_eq!((press.index(), name(&lanes, press).unwrap().as_str()), (3, "press"));
        assert_eq!(name(&lanes, Lane::STANDARD), None);
        assert_eq!(find(&lanes, &LaneName::parse("other").unwrap()), None);
    }

    #[test]
    fn lanes_that_cannot_be_served_are_refused() {
        let nine: Vec<_> = (0..9).map(|n| format!(r#"{{"name":"l{n}","weight":1}}"#)).collect();
        for (bad, says) in [
            (format!("[{}]", nine.join(",")), "9 lanes"),
            (r#"[{"name":"a","weight":0}]"#.to_owned(), "weight 0"),
            (r#"[{"name":"a"}]"#.to_owned(), "weight 0"),
            (r#"[{"name":"a","weight":60},{"name":"b","weight":40}]"#.to_owned(), "sum to 100"),
            (r#"[{"name":"a","weight":1},{"name":"a","weight":1}]"#.to_owned(), "two lanes"),
            (r#"[{"name":"standard","weight":1}]"#.to_owned(), "not allowed"),
            (r#"[{"name":"a b","weight":1}]"#.to_owned(), "not allowed"),
            (r#"[{"name":"","weight":1}]"#.to_owned(), "not allowed"),
            (r#"[{"name":"a","weight":1,"speed":2}]"#.to_owned(), "speed"),
        ] {
            let error = lanes(&bad).unwrap_err();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}
