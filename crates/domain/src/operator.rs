//! Operators with a name, a role and a token of their own.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

use crate::ItemId;

/// Prefix of every token of an operator, so that scanners of leaked secrets recognise one.
const TOKEN_PREFIX: &str = "daegi_op_";

/// Random bytes of a token: 192 bits, so that a hash without salt is enough to store it.
const TOKEN_BYTES: usize = 24;

/// What an operator may do. Each role may do what the roles before it may.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum OperatorRole {
    /// Reads everything except invitation codes and secrets.
    Viewer,
    /// Also runs sales: policies, stock, pauses, openings, invitation codes.
    Operator,
    /// Also resets and removes lines, changes the settings of all lines, and manages operators.
    Admin,
}

/// The name of an operator, as the audit log shows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[schemars(extend("pattern" = "^[A-Za-z0-9._@+-]{1,64}$"))]
pub struct OperatorName(String);

/// The beginning of the ids of the items that an operator may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(extend("pattern" = "^[A-Za-z0-9._~-]{1,64}$"))]
pub struct ItemPrefix(String);

/// One operator, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorRecord {
    /// The operator's name, unique in the store.
    pub name: OperatorName,
    /// What the operator may do.
    pub role: OperatorRole,
    /// The items that the operator may use; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemPrefix>,
    /// SHA-256 of the token, in hex.
    pub token_hash: String,
    /// When the record was made, RFC 3339.
    pub created_at: String,
    /// Who made it; `None` for the admin token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// When the token expires, RFC 3339; `None` if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A token of an operator. Only its hash is stored. Its `Debug` form hides it.
#[derive(Clone)]
pub struct OperatorToken(String);

/// A name or a prefix with other characters than allowed, or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// An invalid name.
    #[error("an operator's name has 1 to 64 of A-Z a-z 0-9 . _ @ + -")]
    Name,
    /// An invalid prefix.
    #[error("items is the beginning of an item id: 1 to 64 of A-Z a-z 0-9 . _ ~ -")]
    Prefix,
}

/// Longest name and longest prefix, in bytes.
const MAX_LEN: usize = 64;

fn fits(text: &str, others: &[u8]) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    (1..=MAX_LEN).contains(&text.len()) && text.bytes().all(is_allowed)
}

impl OperatorName {
    /// Parses a name.
    ///
    /// # Errors
    /// If it is empty, longer than 64 bytes, or has other characters.
    pub fn parse(text: &str) -> Result<Self, OperatorError> {
        fits(text, b"._@+-").then(|| Self(text.to_owned())).ok_or(OperatorError::Name)
    }

    /// Returns the name's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ItemPrefix {
    /// Parses a prefix.
    ///
    /// # Errors
    /// If no item id begins with it.
    pub fn parse(text: &str) -> Result<Self, OperatorError> {
        fits(text, b"._~-").then(|| Self(text.to_owned())).ok_or(OperatorError::Prefix)
    }

    /// Returns whether an item is one of those.
    #[must_use]
    pub fn covers(&self, item: &ItemId) -> bool {
        item.as_str().starts_with(&self.0)
    }

    /// Returns the prefix's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl OperatorToken {
    /// Generates a token.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{TOKEN_PREFIX}{}", hex::encode(bytes))))
    }

    /// Returns whether a text has the form of a token, so that it is worth a look-up.
    #[must_use]
    pub fn has_form(text: &str) -> bool {
        text.strip_prefix(TOKEN_PREFIX).is_some_and(|rest| rest.len() == 2 * TOKEN_BYTES)
    }

    /// Returns what is stored of a token. The comparison of hashes of random secrets needs no constant time,
    /// because its time reveals nothing that helps to find a preimage.
    #[must_use]
    pub fn hash_of(text: &str) -> String {
        hex::encode(Sha256::digest(text))
    }

    /// Returns the token itself, for the one response that shows it. Never for logs.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OperatorToken(…)")
    }
}

impl<'de> Deserialize<'de> for OperatorName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ItemPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_ordered_by_what_they_may_do() {
        use OperatorRole::{Admin, Operator, Viewer};
        assert!(Viewer < Operator && Operator < Admin);
        assert_eq!(serde_json::to_string(&Operator).unwrap(), r#""operator""#);
    }

    #[test]
    fn tokens_differ_and_are_recognised_and_hidden() {
        let (one, other) = (OperatorToken::generate().unwrap(), OperatorToken::generate().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert!(OperatorToken::has_form(one.reveal()));
        assert!(!OperatorToken::has_form("the-token-of-the-operator"));
        assert_eq!(OperatorToken::hash_of(one.reveal()).len(), 64);
        assert_eq!(format!("{one:?}"), "OperatorToken(…)");
    }

    #[test]
    fn a_prefix_covers_items_that_begin_with_it() {
        let prefix = ItemPrefix::parse("spring-").unwrap();
        let covers = |id: &str| prefix.covers(&ItemId::parse(id).unwrap());
        assert!(covers("spring-2026") && covers("spring-"));
        assert!(!covers("spring") && !covers("autumn-spring-"));
    }

    #[test]
    fn names_and_prefixes_have_a_limited_alphabet() {
        for name in ["kim", "kim@shop.example", "A.b_c+d-1"] {
            assert_eq!(OperatorName::parse(name).unwrap().as_str(), name);
        }
        for name in ["", "kim lee", "김", "a\n", &"a".repeat(65)] {
            assert_eq!(OperatorName::parse(name), Err(OperatorError::Name), "{name:?}");
            assert_eq!(ItemPrefix::parse(name), Err(OperatorError::Prefix), "{name:?}");
        }
        assert!(serde_json::from_str::<OperatorName>(r#""a b""#).is_err());
    }
}
