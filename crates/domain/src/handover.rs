//! Codes that hand a ticket over to another device of its user.
//!
//! A code is `<30 bytes in hexadecimal>-<userId>`. The bytes: 4 bits key id · 4 bits version (1) · 8 bits lane · 48 bits
//! time of issue in Unix milliseconds · 48 bits number · 128 bits of HMAC-SHA256 over (item, user, the 14 bytes before).
//!
//! Nothing is stored when a code is issued. The store remembers per ticket when the last used code was issued: a code
//! that was issued then or earlier is used, so that each code works once, and a newer one voids those before it.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{ItemId, Lane, Millis, Number, Ticket, TicketKeys, UserId};

/// Distinguishes handovers from tokens, invitations and challenges, which are signed with the same secrets.
const PREFIX: &[u8] = b"daegi-handover\0";
const VERSION: u8 = 1;
const SIGNED_LEN: usize = 14;
const MAC_LEN: usize = 16;
const CODE_LEN: usize = SIGNED_LEN + MAC_LEN;

/// How long a code is valid: 2 min, enough to take the other device.
pub const HANDOVER_LIFETIME_MS: Millis = 120_000;

/// Why a code is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HandoverError {
    /// Malformed or forged, of another item, or signed with a removed secret.
    #[error("the handover code is malformed or is not of this item")]
    Invalid,
    /// Valid, but older than [`HANDOVER_LIFETIME_MS`].
    #[error("the handover code has expired")]
    Expired,
}

impl TicketKeys {
    /// Returns a code that hands a ticket over, signed with the first secret.
    #[must_use]
    pub fn handover_code(&self, ticket: &Ticket, issued_at: Millis) -> String {
        let (key, mac) = self.signing_mac();
        let mut bytes = [0; CODE_LEN];
        bytes[..8].copy_from_slice(&issued_at.to_be_bytes());
        bytes[0] = key << 4 | VERSION;
        bytes[1] = ticket.lane.bits();
        bytes[8..SIGNED_LEN].copy_from_slice(&ticket.number.0.to_be_bytes()[2..]);
        let signature = sign(mac, &ticket.item, &ticket.user, &bytes[..SIGNED_LEN]);
        bytes[SIGNED_LEN..].copy_from_slice(&signature);
        format!("{}-{}", hex::encode(bytes), ticket.user)
    }

    /// Verifies a code for an item. Returns its ticket and when it was issued. Only the store knows whether the code
    /// was used.
    ///
    /// # Errors
    /// If the code is refused.
    pub fn verify_handover(
        &self,
        item: &ItemId,
        code: &str,
        now: Millis,
    ) -> Result<(Ticket, Millis), HandoverError> {
        let (bytes, user) = decode(code).ok_or(HandoverError::Invalid)?;
        let (signed, signature) = bytes.split_at(SIGNED_LEN);
        let mac = self.verifying_mac(signed[0] >> 4).ok_or(HandoverError::Invalid)?;
        if !bool::from(sign(mac.clone(), item, &user, signed).ct_eq(signature)) {
            return Err(HandoverError::Invalid);
        }
        let issued_at = number(&signed[2..8]);
        // In both directions, so that a pod whose clock is ahead issues no code that outlives its lifetime.
        if issued_at.abs_diff(now) > HANDOVER_LIFETIME_MS {
            return Err(HandoverError::Expired);
        }
        let (number, lane) = (Number(number(&signed[8..])), Lane::from_bits(signed[1].into()));
        Ok((Ticket { item: item.clone(), user, number, lane }, issued_at))
    }
}

fn decode(code: &str) -> Option<([u8; CODE_LEN], UserId)> {
    let (digits, user) = code.split_at_checked(2 * CODE_LEN)?;
    let mut bytes = [0; CODE_LEN];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    let user = UserId::parse(user.strip_prefix('-')?).ok()?;
    (bytes[0] & 0xf == VERSION).then_some((bytes, user))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the first 128 bits of the MAC. Lengths come before texts, so that no two lists of fields have the same
/// bytes.
fn sign(mut mac: Hmac<Sha256>, item: &ItemId, user: &UserId, fields: &[u8]) -> [u8; MAC_LEN] {
    mac.update(PREFIX);
    for text in [item.as_str(), user.as_str()] {
        mac.update(&[text.len() as u8]);
        mac.update(text.as_bytes());
    }
    mac.update(fields);
    let bytes = mac.finalize().into_bytes();
    let mut first = [0; MAC_LEN];
    first.copy_from_slice(&bytes[..MAC_LEN]);
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_800_000_000_000;

    fn ticket() -> Ticket {
        let (item, user) =
            (ItemId::parse("concert").unwrap(), UserId::parse("kim+a@b.c:1-2").unwrap());
        Ticket { item, user, number: Number(0xfedc_ba98_7654), lane: Lane::numbered(3).unwrap() }
    }

    #[test]
    fn a_code_names_its_ticket_for_two_minutes() {
        let (keys, ticket) = (TicketKeys::generate(), ticket());
        let code = keys.handover_code(&ticket, NOW);
        let verify = |now| keys.verify_handover(&ticket.item, &code, now);
        assert_eq!(verify(NOW), Ok((ticket.clone(), NOW)));
        assert_eq!(verify(NOW + HANDOVER_LIFETIME_MS), Ok((ticket.clone(), NOW)));
        assert_eq!(verify(NOW + HANDOVER_LIFETIME_MS + 1), Err(HandoverError::Expired));
        assert_eq!(verify(NOW - HANDOVER_LIFETIME_MS - 1), Err(HandoverError::Expired));
    }

    #[test]
    fn every_changed_character_is_refused() {
        let (keys, ticket) = (TicketKeys::generate(), ticket());
        let code = keys.handover_code(&ticket, NOW);
        for at in 0..code.len() {
            let other = if &code[at..=at] == "5" { "6" } else { "5" };
            let changed = format!("{}{other}{}", &code[..at], &code[at + 1..]);
            assert_eq!(
                keys.verify_handover(&ticket.item, &changed, NOW),
                Err(HandoverError::Invalid),
                "{changed}"
            );
        }
        let other = ItemId::parse("other").unwrap();
        assert_eq!(keys.verify_handover(&other, &code, NOW), Err(HandoverError::Invalid));
        let others = TicketKeys::generate();
        assert_eq!(others.verify_handover(&ticket.item, &code, NOW), Err(HandoverError::Invalid));
        for text in ["", "-", "kim", &code[..60], &code[..61], &keys.token(&ticket)] {
            assert_eq!(keys.verify_handover(&ticket.item, text, NOW), Err(HandoverError::Invalid));
        }
    }
}
