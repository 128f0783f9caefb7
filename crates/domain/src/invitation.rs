//! Invitation codes: signed texts that let their holder join in a lane.
//!
//! A code is 20 bytes in Crockford's base32: 4 bits key id · 4 bits lane · 32 bits expiry in Unix seconds ·
//! 16 bits uses · 40 bits id · 64 bits of HMAC-SHA256 over (item, name of the lane, the 12 bytes before).
//! Nothing is stored when a code is made; the store counts its uses from the first one on.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{ItemId, Lane, LaneName, LanePolicy, Millis, TicketKeys};

/// Distinguishes invitations from tokens, which are signed with the same secrets. A token's text begins with
/// the length of an item id, at most 64, which is no letter.
const PREFIX: &[u8] = b"daegi-invitation\0";

/// Crockford's base32, without the letters I, L, O and U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const DIGITS: usize = 32;
const GROUP: usize = 8;

/// A code may have a space or dash after each digit. Longer texts are not read.
const MAX_TEXT: usize = 2 * DIGITS;

const SIGNED_LEN: usize = 12;
const MAC_LEN: usize = 8;
const CODE_LEN: usize = SIGNED_LEN + MAC_LEN;
const ID_BITS: u32 = 40;

/// A verified invitation code, as the store counts its uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Invitation {
    /// Identifies the code within its item.
    pub id: u64,
    /// How many users may join with it.
    pub uses: u32,
    /// When it expires.
    pub expires_at: Millis,
}

/// Why an invitation code is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvitationError {
    /// Malformed or forged, of another item, of a renamed lane, or signed with a removed secret.
    #[error("the invitation code is misspelt or is not valid for this item")]
    Invalid,
    /// The item has fewer lanes than when the code was made.
    #[error("the lane of the invitation code was removed")]
    UnknownLane,
    /// Valid, but expired.
    #[error("the invitation code has expired")]
    Expired,
}

impl Invitation {
    /// The most uses of one code.
    pub const MAX_USES: u32 = 10_000;

    /// The longest time until a code expires: 400 days, as for an opening. A longer one is a typing error.
    pub const MAX_AHEAD_MS: Millis = 400 * 24 * 3_600_000;

    /// Returns the id that is this many above `first`, within the bits that a code has for it.
    #[must_use]
    pub fn id_after(first: u64, offset: u64) -> u64 {
        first.wrapping_add(offset) & ((1 << ID_BITS) - 1)
    }
}

impl TicketKeys {
    /// Returns the code of an invitation to a lane, signed with the first secret. A code has whole seconds of
    /// the expiry, 40 bits of the id and at most 65,535 uses.
    #[must_use]
    pub fn invitation_code(
        &self,
        item: &ItemId,
        (lane, name): (Lane, &LaneName),
        invitation: &Invitation,
    ) -> String {
        let (key, mac) = self.signing_mac();
        let seconds = u32::try_from(invitation.expires_at / 1000).unwrap_or(u32::MAX);
        let uses = u16::try_from(invitation.uses).unwrap_or(u16::MAX);
        let mut code = [0; CODE_LEN];
        code[0] = key << 4 | lane.bits();
        code[1..5].copy_from_slice(&seconds.to_be_bytes());
        code[5..7].copy_from_slice(&uses.to_be_bytes());
        code[7..SIGNED_LEN].copy_from_slice(&invitation.id.to_be_bytes()[3..]);
        let signature = sign(mac, item, name, &code[..SIGNED_LEN]);
        code[SIGNED_LEN..].copy_from_slice(&signature);
        encode(&code)
    }

    /// Verifies an invitation code for an item with these lanes. The name of the lane is signed, its index is
    /// not binding: a code stays valid while its lane has its name, wherever the lane stands in the policy.
    ///
    /// # Errors
    /// If the code is refused. A code that is used up is not; only the store has the count.
    pub fn verify_invitation(
        &self,
        item: &ItemId,
        lanes: &[LanePolicy],
        text: &str,
        now: Millis,
    ) -> Result<(Lane, Invitation), InvitationError> {
        let code = decode(text).ok_or(InvitationError::Invalid)?;
        let (signed, signature) = code.split_at(SIGNED_LEN);
        let mac = self.verifying_mac(signed[0] >> 4).ok_or(InvitationError::Invalid)?;
        let is_signed_for = |lane: &LanePolicy| -> bool {
            sign(mac.clone(), item, &lane.name, signed).ct_eq(signature).into()
        };
        let lane = lanes.iter().position(is_signed_for);
        let lane = lane.and_then(|index| Lane::numbered(index + 1)).ok_or({
            let index = Lane::from_bits(signed[0].into()).index();
            if index > lanes.len() {
                InvitationError::UnknownLane
            } else {
                InvitationError::Invalid
            }
        })?;
        let invitation = Invitation {
            id: number(&signed[7..]),
            uses: u32::from(u16::from_be_bytes([signed[5], signed[6]])),
            expires_at: number(&signed[1..5]) * 1000,
        };
        if invitation.expires_at <= now {
            Err(InvitationError::Expired)
        } else {
            Ok((lane, invitation))
        }
    }
}

/// Returns the first 64 bits of the MAC. Lengths come before texts, so that no two lists of fields have the
/// same bytes.
fn sign(mut mac: Hmac<Sha256>, item: &ItemId, lane: &LaneName, fields: &[u8]) -> [u8; MAC_LEN] {
    mac.update(PREFIX);
    for text in [item.as_str(), lane.as_str()] {
        mac.update(&[text.len() as u8]);
        mac.update(text.as_bytes());
    }
    mac.update(fields);
    let mut first = [0; MAC_LEN];
    first.copy_from_slice(&mac.finalize().into_bytes()[..MAC_LEN]);
    first
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Writes the bytes in groups of 8 digits, joined by dashes.
fn encode(code: &[u8; CODE_LEN]) -> String {
    let mut text = String::with_capacity(DIGITS + DIGITS / GROUP - 1);
    // Five bytes are eight digits, which are one group.
    for (index, bytes) in code.chunks_exact(5).enumerate() {
        if index > 0 {
            text.push('-');
        }
        let bits = number(bytes);
        for digit in (0..GROUP).rev() {
            text.push(char::from(ALPHABET[(bits >> (5 * digit)) as usize & 31]));
        }
    }
    text
}

/// Reads a code as a user types it: in any case, with dashes and spaces or without them, and with O for 0 and
/// I or L for 1. Returns `None` if it has another length or other characters.
fn decode(text: &str) -> Option<[u8; CODE_LEN]> {
    let text = text.trim();
    if text.len() > MAX_TEXT {
        return None;
    }
    let mut digits = [0; DIGITS];
    let mut count = 0;
    for byte in text.bytes().filter(|byte| !matches!(byte, b'-' | b' ')) {
        *digits.get_mut(count)? = value(byte)?;
        count += 1;
    }
    if count != DIGITS {
        return None;
    }
    let mut code = [0; CODE_LEN];
    for (bytes, digits) in code.chunks_exact_mut(5).zip(digits.chunks_exact(GROUP)) {
        let bits = digits.iter().fold(0_u64, |bits, digit| bits << 5 | u64::from(*digit));
        bytes.copy_from_slice(&bits.to_be_bytes()[3..]);
    }
    Some(code)
}

/// Returns the value of a digit.
fn value(digit: u8) -> Option<u8> {
    let digit = match digit.to_ascii_uppercase() {
        b'O' => b'0',
        b'I' | b'L' => b'1',
        digit => digit,
    };
    ALPHABET.iter().position(|letter| *letter == digit).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OLD: &str = "3:000102030405060708090a0b0c0d0e0f";
    const NEW: &str = "4:f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
    const NOW: Millis = 1_794_600_000_000;
    const INVITATION: Invitation =
        Invitation { id: 0x12_3456_789a, uses: 3, expires_at: NOW + 1_000 };

    fn keys(text: &str) -> TicketKeys {
        text.parse().unwrap()
    }

    fn item(id: &str) -> ItemId {
        ItemId::parse(id).unwrap()
    }

    fn lanes(names: &[&str]) -> Vec<LanePolicy> {
        let lane = |name: &&str| LanePolicy {
            name: LaneName::parse(name).unwrap(),
            weight: 1,
            first: false,
        };
        names.iter().map(lane).collect()
    }

    /// The code of an invitation to the lane at this index of the policy.
    fn code(keys: &TicketKeys, lanes: &[LanePolicy], index: usize) -> String {
        let lane = (Lane::numbered(index + 1).unwrap(), &lanes[index].name);
        keys.invitation_code(&item("concert"), lane, &INVITATION)
    }

    #[test]
    fn a_code_is_valid_for_its_item_until_it_expires() {
        let (keys, lanes) = (keys(OLD), lanes(&["members", "press"]));
        let code = code(&keys, &lanes, 1);
        let verify = |id, now| keys.verify_invitation(&item(id), &lanes, &code, now);
        let press = Lane::numbered(2).unwrap();
        assert_eq!(verify("concert", NOW), Ok((press, INVITATION)));
        assert_eq!(verify("concert", NOW + 999), Ok((press, INVITATION)));
        assert_eq!(verify("concert", NOW + 1_000), Err(InvitationError::Expired));
        assert_eq!(verify("concert2", NOW), Err(InvitationError::Invalid));
    }

    #[test]
    fn the_name_of_the_lane_is_binding_and_its_index_is_not() {
        let (keys, before) = (keys(OLD), lanes(&["members", "press"]));
        let code = code(&keys, &before, 1);
        let lane = |names: &[&str]| {
            let found = keys.verify_invitation(&item("concert"), &lanes(names), &code, NOW);
            found.map(|(lane, _)| lane.index())
        };
        assert_eq!(lane(&["press", "members"]), Ok(1));
        assert_eq!(lane(&["vip", "members", "press"]), Ok(3));
        assert_eq!(lane(&["members", "media"]), Err(InvitationError::Invalid), "renamed");
        assert_eq!(lane(&["members"]), Err(InvitationError::UnknownLane), "removed");
        assert_eq!(lane(&[]), Err(InvitationError::UnknownLane), "all removed");
    }

    #[test]
    fn a_rotated_secret_still_verifies_until_it_is_removed() {
        let lanes = lanes(&["members"]);
        let code = code(&keys(OLD), &lanes, 0);
        let verify =
            |text: &str| keys(text).verify_invitation(&item("concert"), &lanes, &code, NOW);
        assert!(verify(&format!("{NEW},{OLD}")).is_ok());
        assert_eq!(verify(NEW), Err(InvitationError::Invalid));
        let same_id = NEW.replace("4:", "3:");
        assert_eq!(verify(&same_id), Err(InvitationError::Invalid), "another secret");
    }

    /// Codes are printed and mailed, so that a new version must read the codes of an old one.
    #[test]
    fn the_text_of_a_code_never_changes() {
        let code = code(&keys(OLD), &lanes(&["members"]), 0);
        assert_eq!(code, "65NFEV21-001H4D2P-F2D4GRYB-R83AF0AC");
    }

    #[test]
    fn a_code_is_read_as_users_type_it() {
        let (keys, lanes) = (keys(OLD), lanes(&["members"]));
        let code = code(&keys, &lanes, 0);
        assert!(code.contains('0') && code.contains('1'), "{code}");
        for typed in [
            code.to_lowercase(),
            code.replace('-', ""),
            code.replace('-', " "),
            format!("  {code}\n"),
            code.replace('0', "O").replace('1', "l"),
            code.replace('0', "o").replace('1', "I"),
        ] {
            let found = keys.verify_invitation(&item("concert"), &lanes, &typed, NOW);
            assert_eq!(found.map(|(_, invitation)| invitation), Ok(INVITATION), "{typed}");
        }
        for bad in ["", "-", &code[1..], &format!("{code}0"), &code.replace('0', "U"), "ünïcode"]
        {
            let found = keys.verify_invitation(&item("concert"), &lanes, bad, NOW);
            assert_eq!(found, Err(InvitationError::Invalid), "{bad}");
        }
    }

    #[test]
    fn every_changed_bit_is_refused() {
        let (keys, lanes) = (keys(&format!("{OLD},{NEW}")), lanes(&["members", "press"]));
        let bytes = decode(&code(&keys, &lanes, 0)).unwrap();
        for bit in 0..CODE_LEN * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            let found = keys.verify_invitation(&item("concert"), &lanes, &encode(&changed), NOW);
            assert!(
                matches!(found, Err(InvitationError::Invalid | InvitationError::UnknownLane)),
                "bit {bit}: {found:?}"
            );
        }
    }

    #[test]
    fn ids_stay_within_their_bits() {
        let last = (1 << ID_BITS) - 1;
        assert_eq!((Invitation::id_after(7, 2), Invitation::id_after(last, 1)), (9, 0));
        assert_eq!(Invitation::id_after(u64::MAX, 0), last);
    }

    proptest! {
        #[test]
        fn made_codes_verify(
            name in "[A-Za-z0-9._~-]{1,32}",
            index in 0_usize..8,
            id in 0_u64..(1 << ID_BITS),
            uses in 1..=Invitation::MAX_USES,
            seconds in NOW / 1000 + 1..=u64::from(u32::MAX),
        ) {
            let mut names: Vec<_> = (0..8).map(|n| format!("lane-{n}")).collect();
            names[index] = name;
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            prop_assume!(LaneName::parse(names[index]).is_ok() && !names[index].starts_with("lane-"));
            let lanes = lanes(&names);
            let lane = Lane::numbered(index + 1).unwrap();
            let invitation = Invitation { id, uses, expires_at: seconds * 1000 };
            let code = keys(OLD).invitation_code(&item("concert"), (lane, &lanes[index].name), &invitation);
            let found = keys(OLD).verify_invitation(&item("concert"), &lanes, &code, NOW);
            prop_assert_eq!(found, Ok((lane, invitation)));
        }

        #[test]
        fn every_code_is_its_bytes(bytes in any::<[u8; CODE_LEN]>()) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn no_text_panics_or_verifies(text in ".{0,80}") {
            let found = keys(OLD).verify_invitation(&item("concert"), &lanes(&["a"]), &text, NOW);
            prop_assert!(found.is_err());
        }
    }
}
