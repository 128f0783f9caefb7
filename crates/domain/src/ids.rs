//! Ids. A value of these types is valid: it is parsed once at the edge.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

/// Prefix of ids that daegi uses itself (the warm-up line). They are never accepted from outside, so that
/// no client can see, join or create them.
const RESERVED_PREFIX: &str = "~daegi.";

/// The id of an item: 1–64 of `A-Z a-z 0-9 . _ ~ -`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ItemId(Arc<str>);

/// The id of a user: 1–128 of the item's characters and `@ : +`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct UserId(Arc<str>);

/// A ticket's number: 48 bits, given by the line's counter and nothing else.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Number(pub u64);

/// The serving order of a waiting ticket: a lower rank is served first. Positions, the frontier and departed
/// sets are computed with ranks, while [`Number`] identifies a ticket. In a first-come line the rank of a
/// ticket is its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rank(pub u64);

/// A class of users of one item with its own numbers and share of the rate: 4 bits of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Lane(u8);

/// A number with its lane, as ids that are hashes contain it. Numbers count per lane; the text of the standard lane
/// is the number alone, as before there were lanes.
#[derive(Clone, Copy)]
pub(crate) struct NumberInLane(pub(crate) Lane, pub(crate) Number);

/// How far a line's counter may be behind the clock: 1 h. A line that lags more continues at the clock
/// before it issues the next number.
pub const MAX_CLOCK_LAG_MS: crate::Millis = 3_600_000;

/// Why a text is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("{what} is empty")]
    Empty {
        /// `itemId` or `userId`.
        what: &'static str,
    },
    /// Longer than the limit.
    #[error("{what} has {length} characters, at most {max} are allowed")]
    TooLong {
        /// `itemId` or `userId`.
        what: &'static str,
        /// Its length.
        length: usize,
        /// The longest allowed length.
        max: usize,
    },
    /// A character outside the alphabet.
    #[error("{what} contains {found:?}, allowed are {allowed}")]
    InvalidChar {
        /// `itemId` or `userId`.
        what: &'static str,
        /// The first offending character.
        found: char,
        /// The alphabet, for the reader of the error.
        allowed: &'static str,
    },
    /// A path segment that clients and proxies remove from addresses (RFC 3986, 5.2.4).
    #[error("{what} is \".\" or \"..\", which no client can address, choose another one")]
    DotSegment {
        /// `itemId` or `userId`.
        what: &'static str,
    },
    /// The id has the prefix of daegi's own ids.
    #[error("item ids that begin with \"{RESERVED_PREFIX}\" are reserved")]
    Reserved,
}

impl ItemId {
    /// The longest item id.
    pub const MAX_LEN: usize = 64;

    /// Parses an id from outside.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let id = Self::parse_stored(text)?;
        reject_dot_segments("itemId", text)?;
        if id.is_reserved() { Err(IdError::Reserved) } else { Ok(id) }
    }

    /// Parses an id that daegi wrote, reserved ones included.
    pub fn parse_stored(text: &str) -> Result<Self, IdError> {
        check("itemId", text, Self::MAX_LEN, is_item_char, "A-Z a-z 0-9 . _ ~ -")?;
        Ok(Self(text.into()))
    }

    /// Returns a reserved id. Characters outside the alphabet become `_`.
    pub fn reserved(suffix: &str) -> Self {
        let keep = |c: char| {
            if c.is_ascii() && is_item_char(c as u8) { c } else { '_' }
        };
        let text: String =
            RESERVED_PREFIX.chars().chain(suffix.chars().map(keep)).take(64).collect();
        Self(text.into())
    }

    /// Returns whether this is a reserved id.
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(RESERVED_PREFIX)
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl UserId {
    /// The longest user id.
    pub const MAX_LEN: usize = 128;

    /// Parses an id from outside.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let id = Self::parse_stored(text)?;
        reject_dot_segments("userId", text)?;
        Ok(id)
    }

    /// Parses an id that daegi wrote or signed; also `.` and `..`, which earlier releases accepted.
    pub fn parse_stored(text: &str) -> Result<Self, IdError> {
        check("userId", text, Self::MAX_LEN, is_user_char, "A-Z a-z 0-9 . _ ~ - @ : +")?;
        Ok(Self(text.into()))
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Number {
    /// The largest number a token can carry.
    pub const MAX: Self = Self((1 << 48) - 1);

    /// How many numbers a line can issue per millisecond before its counter runs ahead of the clock.
    pub const PER_MS: u64 = 64;

    /// Returns where the counter of a line created at `now` starts. Numbers of a line that is created again
    /// later are above all earlier ones, as long as fewer than 64 users join per millisecond.
    pub fn base_at(now: crate::Millis) -> Self {
        Self((now * Self::PER_MS).min(Self::MAX.0))
    }

    /// Returns when the number was issued, in Unix milliseconds: at most [`MAX_CLOCK_LAG_MS`] before its join.
    pub fn issued_at_ms(self) -> crate::Millis {
        self.0 / Self::PER_MS
    }

    /// Returns whether the number is older than `max_age` at `now`. The counter of a line may be behind the clock
    /// by [`MAX_CLOCK_LAG_MS`], so this much is added. A number ahead of the clock has age 0.
    pub fn is_older_than(self, max_age: crate::Millis, now: crate::Millis) -> bool {
        now.saturating_sub(self.issued_at_ms()) > max_age.saturating_add(MAX_CLOCK_LAG_MS)
    }

    /// Returns the number after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns the rank of a ticket with this number in a first-come line.
    pub fn rank(self) -> Rank {
        Rank(self.0)
    }
}

impl Lane {
    /// The lane of users without another one.
    pub const STANDARD: Self = Self(0);

    /// Returns the lane with this index: 0 is the standard lane. Returns `None` above [`crate::MAX_LANES`].
    #[must_use]
    pub fn numbered(index: usize) -> Option<Self> {
        u8::try_from(index).ok().filter(|_| index <= crate::MAX_LANES).map(Self)
    }

    /// Returns the index of the lane: 0 for the standard lane.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// Returns whether this is the lane of users without another one.
    #[must_use]
    pub fn is_standard(self) -> bool {
        self == Self::STANDARD
    }

    /// Returns the lane of the lower 4 bits.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self((bits & 0xf) as u8)
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }
}

impl Rank {
    /// Returns the number of the ticket with this rank in a first-come line.
    pub fn number(self) -> Number {
        Number(self.0)
    }

    /// Returns the rank after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

fn is_item_char(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'~' | b'-')
}

fn is_user_char(c: u8) -> bool {
    is_item_char(c) || matches!(c, b'@' | b':' | b'+')
}

fn check(
    what: &'static str,
    text: &str,
    max: usize,
    allows: fn(u8) -> bool,
    allowed: &'static str,
) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { what });
    }
    if let Some(found) = text.chars().find(|c| !c.is_ascii() || !allows(*c as u8)) {
        return Err(IdError::InvalidChar { what, found, allowed });
    }
    if text.len() > max {
        return Err(IdError::TooLong { what, length: text.len(), max });
    }
    Ok(())
}

fn reject_dot_segments(what: &'static str, text: &str) -> Result<(), IdError> {
    if matches!(text, "." | "..") { Err(IdError::DotSegment { what }) } else { Ok(()) }
}

fn schema_of(pattern: &str, max: usize) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": max, "pattern": pattern })
}

impl JsonSchema for ItemId {
    fn schema_name() -> Cow<'static, str> {
        "ItemId".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema_of(r"^(?!~daegi\.|\.{1,2}$)[A-Za-z0-9._~-]+$", Self::MAX_LEN)
    }
}

impl JsonSchema for UserId {
    fn schema_name() -> Cow<'static, str> {
        "UserId".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema_of(r"^(?!\.{1,2}$)[A-Za-z0-9._~@:+-]+$", Self::MAX_LEN)
    }
}

macro_rules! text_id {
    ($id:ty) => {
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
        impl FromStr for $id {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }
        impl TryFrom<String> for $id {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(&text)
            }
        }
        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

text_id!(ItemId);
text_id!(UserId);

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for NumberInLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(lane, number) = self;
        if lane.is_standard() { number.fmt(f) } else { write!(f, "{number}\n{}", lane.index()) }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_accept_their_alphabet_and_nothing_else() {
        for good in ["a", "A-1", "con.cert_2026~x", &"x".repeat(64)] {
            assert_eq!(ItemId::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", " ", "a b", "a/b", "a@b", "é", "a\n", "콘서트", "a\0", &"x".repeat(65)]
        {
            assert!(ItemId::parse(bad).is_err(), "{bad:?} must be refused");
        }
        for good in ["kim@example.com", "user:1+2", "a-b-c", &"x".repeat(128)] {
            assert_eq!(UserId::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a/b", "%41", &"x".repeat(129)] {
            assert!(UserId::parse(bad).is_err(), "{bad:?} must be refused");
        }
    }

    #[test]
    fn reserved_ids_cannot_come_from_outside() {
        let id = ItemId::reserved("warm-up/1");
        assert_eq!(id.as_str(), "~daegi.warm-up_1");
        assert_eq!(ItemId::parse(id.as_str()), Err(IdError::Reserved));
        assert_eq!(ItemId::parse_stored(id.as_str()), Ok(id));
    }

    #[test]
    fn ids_that_no_client_can_address_are_refused_but_read_back() {
        for dots in [".", ".."] {
            assert_eq!(ItemId::parse(dots), Err(IdError::DotSegment { what: "itemId" }));
            assert_eq!(UserId::parse(dots), Err(IdError::DotSegment { what: "userId" }));
            assert_eq!(ItemId::parse_stored(dots).unwrap().as_str(), dots);
            assert_eq!(UserId::parse_stored(dots).unwrap().as_str(), dots);
        }
        assert!(ItemId::parse("...").is_ok() && UserId::parse(".a").is_ok());
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let error = UserId::parse("kim lee").unwrap_err().to_string();
        assert_eq!(error, "userId contains ' ', allowed are A-Z a-z 0-9 . _ ~ - @ : +");
    }
}
