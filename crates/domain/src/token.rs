//! The token is the ticket: `{userId}-{itemId}-{UUID}`.
//!
//! The UUID is a version 8: 48 bits number · 4 version · 4 lane · 4 key id · 4 zero · 2 variant ·
//! 62 bits of HMAC-SHA256 over (item, user, lane, number). A process with the secret verifies
//! a token and reads its number without a store call, and writes the same token again from the ticket. So
//! no token is ever stored. See `docs/adr/001-the-token.md`.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::{ItemId, Lane, MAX_CLOCK_LAG_MS, Millis, Number, Ticket, UserId};

/// Dashes of a refused token that are tried as the border between user and item. Limits the cost of a
/// forged token; with more dashes, the response is 401 instead of 403.
const MAX_MISMATCH_ATTEMPTS: usize = 16;
const UUID_LEN: usize = 36;
const MAC_BITS: u64 = (1 << 62) - 1;

/// The secrets of tokens: the first signs, all verify.
#[derive(Clone)]
pub struct TicketKeys {
    keys: Vec<TicketKey>,
    /// How old a ticket may be, in milliseconds.
    max_age: Millis,
}

#[derive(Clone)]
struct TicketKey {
    id: u8,
    /// Initialised with the key. Cloning it per token saves two of the four SHA-256 blocks.
    mac: Hmac<Sha256>,
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Malformed or forged.
    #[error("the token is malformed or was not issued here")]
    Invalid,
    /// Valid, but for another item.
    #[error("the token belongs to another item")]
    WrongItem,
    /// Valid, but older than a ticket may be.
    #[error("the ticket is too old, join again")]
    TooOld,
}

/// Why a text is not a valid ticket secret or pass key. The message never contains the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No key at all.
    #[error("no key given")]
    Empty,
    /// Not `id:hex`.
    #[error("ticket secret {0} is not of the form id:hex")]
    InvalidFormat(usize),
    /// The key id does not fit four bits.
    #[error("ticket secret {0}: the id must be a number from 0 to 15")]
    InvalidId(usize),
    /// Two secrets with one id.
    #[error("ticket secret {0}: the id {1} is given twice")]
    DuplicateId(usize, u8),
    /// Not hexadecimal, or too short to be a secret.
    #[error("ticket secret {0}: at least 32 hexadecimal digits (16 bytes) are needed")]
    InvalidSecret(usize),
    /// Not a private key of a supported kind.
    #[error(
        "pass key {0} is not an Ed25519, P-256 or RSA (2048 bits or more) private key in PKCS#8 PEM"
    )]
    InvalidPem(usize),
}

impl TicketKeys {
    /// Generates a random key, for a single process.
    pub fn generate() -> Self {
        Self::unlimited(vec![TicketKey::new(0, &crate::pass::random_bytes())])
    }

    fn unlimited(keys: Vec<TicketKey>) -> Self {
        Self { keys, max_age: Millis::MAX }
    }

    /// The same keys, but [`TicketKeys::verify_at`] refuses tickets older than `max_age` milliseconds.
    /// Without this call tickets do not age.
    #[must_use]
    pub fn with_max_age(mut self, max_age: Millis) -> Self {
        self.max_age = max_age;
        self
    }

    /// Returns whether a ticket with this number is older than a ticket may be at `now`; see
    /// [`Number::is_older_than`].
    pub fn is_too_old(&self, number: Number, now: Millis) -> bool {
        number.is_older_than(self.max_age, now)
    }

    /// Returns when the oldest ticket that is not too old at `now` was issued, in Unix milliseconds.
    pub fn oldest_issue(&self, now: Millis) -> Millis {
        now.saturating_sub(self.max_age.saturating_add(MAX_CLOCK_LAG_MS))
    }

    /// Verifies a token for `item` at `now`. Unlike [`TicketKeys::verify`], refuses tickets that
    /// are too old.
    ///
    /// # Errors
    /// As [`TicketKeys::verify`], and [`TokenError::TooOld`].
    pub fn verify_at(&self, item: &ItemId, token: &str, now: Millis) -> Result<Ticket, TokenError> {
        let ticket = self.verify(item, token)?;
        if self.is_too_old(ticket.number, now) { Err(TokenError::TooOld) } else { Ok(ticket) }
    }

    /// Returns the token of a ticket, which is always the same for one ticket and signing key.
    pub fn token(&self, ticket: &Ticket) -> String {
        let uuid = self.uuid(ticket);
        let mut text = String::with_capacity(
            ticket.user.as_str().len() + ticket.item.as_str().len() + UUID_LEN + 2,
        );
        text.push_str(ticket.user.as_str());
        text.push('-');
        text.push_str(ticket.item.as_str());
        text.push('-');
        text.push_str(uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        text
    }

    /// Returns the token's UUID, which is the `jti` of a pass.
    pub fn uuid(&self, ticket: &Ticket) -> Uuid {
        let key = &self.keys[0];
        let Ticket { item, user, number, lane } = ticket;
        encode_uuid(*number, *lane, key.id, key.mac62(item, user, *lane, *number))
    }

    /// Returns the lane in the UUID of a token or a pass.
    pub(crate) fn lane(uuid: Uuid) -> Lane {
        Lane::from_bits(uuid.as_u64_pair().0 >> 8)
    }

    /// Returns the id of the first secret and its MAC without input, for texts other than tokens.
    pub(crate) fn signing_mac(&self) -> (u8, Hmac<Sha256>) {
        (self.keys[0].id, self.keys[0].mac.clone())
    }

    /// Returns the MAC without input of the secret with this id.
    pub(crate) fn verifying_mac(&self, id: u8) -> Option<&Hmac<Sha256>> {
        self.keys.iter().find(|key| key.id == id).map(|key| &key.mac)
    }

    /// Verifies a token for `item`, whatever its age.
    pub fn verify(&self, item: &ItemId, token: &str) -> Result<Ticket, TokenError> {
        let (holder, uuid) = split_uuid(token).ok_or(TokenError::Invalid)?;
        let fields = TokenFields::decode(uuid).ok_or(TokenError::Invalid)?;
        let key = self.keys.iter().find(|key| key.id == fields.key).ok_or(TokenError::Invalid)?;
        if let Some(user) = user_prefix(holder, item)
            && key.is_signed_for(item, &user, &fields)
        {
            return Ok(Ticket {
                item: item.clone(),
                user,
                number: fields.number,
                lane: fields.lane,
            });
        }
        Err(if key.is_signed_for_other_item(holder, &fields) {
            TokenError::WrongItem
        } else {
            TokenError::Invalid
        })
    }
}

impl TicketKey {
    fn new(id: u8, secret: &[u8]) -> Self {
        #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
        let mac = Hmac::new_from_slice(secret).expect("any length");
        Self { id, mac }
    }

    /// Returns the first 62 bits of the MAC. The lengths are hashed first, so that ("a-b", "c") and ("a", "b-c"),
    /// whose tokens begin with the same text, have different MACs.
    fn mac62(&self, item: &ItemId, user: &UserId, lane: Lane, number: Number) -> u64 {
        let (item, user) = (item.as_str().as_bytes(), user.as_str().as_bytes());
        let mut mac = self.mac.clone();
        mac.update(&[item.len() as u8]);
        mac.update(item);
        mac.update(&[user.len() as u8]);
        mac.update(user);
        mac.update(&[lane.bits()]);
        mac.update(&number.0.to_be_bytes());
        let bytes = mac.finalize().into_bytes();
        let mut first = [0; 8];
        first.copy_from_slice(&bytes[..8]);
        u64::from_be_bytes(first) >> 2
    }

    fn is_signed_for(&self, item: &ItemId, user: &UserId, fields: &TokenFields) -> bool {
        let expected = self.mac62(item, user, fields.lane, fields.number);
        expected.ct_eq(&fields.mac).into()
    }

    /// Returns whether another split of `{userId}-{itemId}` makes the token valid: then it is a ticket of
    /// another item, and the error says so.
    fn is_signed_for_other_item(&self, holder: &str, fields: &TokenFields) -> bool {
        holder.match_indices('-').take(MAX_MISMATCH_ATTEMPTS).any(|(dash, _)| {
            match (UserId::parse_stored(&holder[..dash]), ItemId::parse_stored(&holder[dash + 1..]))
            {
                (Ok(user), Ok(item)) => self.is_signed_for(&item, &user, fields),
                _ => false,
            }
        })
    }
}

/// The fields of a token's UUID.
struct TokenFields {
    number: Number,
    lane: Lane,
    key: u8,
    mac: u64,
}

impl TokenFields {
    fn decode(uuid: Uuid) -> Option<Self> {
        let (high, low) = uuid.as_u64_pair();
        let genuine = (high >> 12) & 0xf == 8 && high & 0xf == 0 && low >> 62 == 0b10;
        genuine.then_some(Self {
            number: Number(high >> 16),
            lane: TicketKeys::lane(uuid),
            key: ((high >> 4) & 0xf) as u8,
            mac: low & MAC_BITS,
        })
    }
}

fn encode_uuid(number: Number, lane: Lane, key: u8, mac: u64) -> Uuid {
    let high = (number.0 << 16) | (8 << 12) | (u64::from(lane.bits()) << 8) | (u64::from(key) << 4);
    Uuid::from_u64_pair(high, (0b10 << 62) | mac)
}

/// Splits the UUID from the end. Only the canonical spelling is accepted: tokens are compared, logged and
/// cached as text, so that one ticket must not have two spellings.
fn split_uuid(token: &str) -> Option<(&str, Uuid)> {
    let cut = token.len().checked_sub(UUID_LEN + 1)?;
    let (holder, rest) = (token.get(..cut)?, token.get(cut..)?);
    let text = rest.strip_prefix('-')?;
    let uuid = Uuid::try_parse(text).ok()?;
    let canonical = uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text;
    canonical.then_some((holder, uuid))
}

/// Returns the user before `-{itemId}`. Both ids may contain dashes, but the item is known from the path.
fn user_prefix(holder: &str, item: &ItemId) -> Option<UserId> {
    UserId::parse_stored(holder.strip_suffix(item.as_str())?.strip_suffix('-')?).ok()
}

impl FromStr for TicketKeys {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut keys: Vec<TicketKey> = Vec::new();
        for (index, entry) in text.split(',').enumerate() {
            let index = index + 1;
            let (id, secret) =
                entry.trim().split_once(':').ok_or(KeyError::InvalidFormat(index))?;
            let id: u8 = id.parse().ok().filter(|id| *id < 16).ok_or(KeyError::InvalidId(index))?;
            let secret = hex::decode(secret).ok().filter(|bytes| bytes.len() >= 16);
            if keys.iter().any(|key| key.id == id) {
                return Err(KeyError::DuplicateId(index, id));
            }
            keys.push(TicketKey::new(id, &secret.ok_or(KeyError::InvalidSecret(index))?));
        }
        if keys.is_empty() { Err(KeyError::Empty) } else { Ok(Self::unlimited(keys)) }
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<u8> = self.keys.iter().map(|key| key.id).collect();
        write!(f, "TicketKeys(ids {ids:?}, secrets hidden)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OLD: &str = "3:000102030405060708090a0b0c0d0e0f";
    const NEW: &str = "4:f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

    fn ticket(item: &str, user: &str, number: u64) -> Ticket {
        let (item, user) = (ItemId::parse(item).unwrap(), UserId::parse(user).unwrap());
        Ticket::new(item, user, Number(number))
    }

    fn keys(text: &str) -> TicketKeys {
        text.parse().unwrap()
    }

    #[test]
    fn the_uuid_is_a_version_8_that_carries_the_number() {
        let uuid = keys(OLD).uuid(&ticket("concert", "kim", 0x1234_5678_9abc));
        let text = uuid.to_string();
        assert!(text.starts_with("12345678-9abc-8030-"), "{text}");
        assert_eq!(uuid.get_version_num(), 8);
        assert_eq!(uuid.get_variant(), uuid::Variant::RFC4122);
    }

    #[test]
    fn a_token_carries_its_lane_and_is_signed_for_it() {
        let keys = keys(OLD);
        let standard = ticket("concert", "kim", 7);
        let members = Ticket { lane: Lane::from_bits(5), ..standard.clone() };
        let token = keys.token(&members);
        assert_eq!(keys.verify(&members.item, &token), Ok(members.clone()));
        let moved = token.replace("-8530-", "-8030-");
        assert_ne!(moved, token);
        assert_eq!(keys.verify(&members.item, &moved), Err(TokenError::Invalid));
    }

    #[test]
    fn ids_with_dashes_are_distinguished() {
        let keys = keys(OLD);
        let one = keys.token(&ticket("c", "a-b", 7));
        let two = keys.token(&ticket("b-c", "a", 7));
        assert_eq!(one[..5], two[..5]);
        assert_ne!(one, two);
        assert_eq!(keys.verify(&ItemId::parse("c").unwrap(), &one).unwrap().user.as_str(), "a-b");
        assert_eq!(keys.verify(&ItemId::parse("b-c").unwrap(), &two).unwrap().user.as_str(), "a");
        let other = keys.verify(&ItemId::parse("b-c").unwrap(), &one);
        assert_eq!(other, Err(TokenError::WrongItem));
    }

    #[test]
    fn a_rotated_secret_still_verifies_until_it_is_removed() {
        let ticket = ticket("concert", "kim", 99);
        let token = keys(OLD).token(&ticket);
        let both = keys(&format!("{NEW},{OLD}"));
        assert_eq!(both.verify(&ticket.item, &token), Ok(ticket.clone()));
        assert_ne!(both.token(&ticket), token, "the new secret signs");
        assert_eq!(keys(NEW).verify(&ticket.item, &token), Err(TokenError::Invalid));
    }

    #[test]
    fn a_ticket_ages_by_the_clock_of_its_number() {
        let (hour, day) = (3_600_000, 86_400_000);
        let issued = 1_794_600_000_000;
        let ticket = ticket("concert", "kim", issued * 64 + 63);
        let (token, aging) = (keys(OLD).token(&ticket), keys(OLD).with_max_age(day));
        let read = |now| aging.verify_at(&ticket.item, &token, now);
        assert_eq!(ticket.number.issued_at_ms(), issued);
        assert_eq!(read(issued + day + hour), Ok(ticket.clone()), "1 h for the lag of the counter");
        assert_eq!(read(issued + day + hour + 1), Err(TokenError::TooOld));
        assert_eq!(read(issued - 400 * day), Ok(ticket.clone()), "ahead of the clock");
        assert_eq!(aging.verify(&ticket.item, &token), Ok(ticket.clone()), "whatever its age");
        let later = issued + 400 * day;
        assert_eq!(keys(OLD).verify_at(&ticket.item, &token, later), Ok(ticket.clone()));
    }

    #[test]
    fn errors_do_not_contain_the_secret() {
        for bad in ["", "x", "1:zz", "16:000102030405060708090a0b0c0d0e0f", "1:0001", "-1:00"] {
            let error = bad.parse::<TicketKeys>().unwrap_err().to_string();
            assert!(!error.contains("0001"), "{error}");
        }
        assert_eq!(
            format!("{OLD},{OLD}").parse::<TicketKeys>().unwrap_err(),
            KeyError::DuplicateId(2, 3)
        );
        assert!(!format!("{:?}", keys(OLD)).contains("0405"));
    }

    #[test]
    fn every_changed_bit_is_refused() {
        let keys = keys(OLD);
        let ticket = ticket("concert-A", "kim", 114_000_000_000_123);
        let token = keys.token(&ticket);
        for bit in 0..token.len() * 8 {
            let mut bytes = token.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(changed) = String::from_utf8(bytes) {
                assert!(keys.verify(&ticket.item, &changed).is_err(), "{changed}");
            }
        }
        let made_up = format!("kim-concert-A-{}", Uuid::from_u128(0x1234));
        assert_eq!(keys.verify(&ticket.item, &made_up), Err(TokenError::Invalid));
    }

    proptest! {
        #[test]
        fn issued_tokens_verify(
            item in "[A-Za-z0-9._~-]{1,64}",
            user in "[A-Za-z0-9._~@:+-]{1,128}",
            number in 0u64..(1 << 48),
        ) {
            prop_assume!(ItemId::parse(&item).is_ok() && UserId::parse(&user).is_ok());
            let (keys, ticket) = (keys(OLD), ticket(&item, &user, number));
            let token = keys.token(&ticket);
            prop_assert_eq!(keys.verify(&ticket.item, &token), Ok(ticket));
        }

        #[test]
        fn no_text_panics(text in ".{0,260}") {
            let _ = keys(OLD).verify(&ItemId::parse("concert").unwrap(), &text);
        }
    }
}
