//! The settings of one item as Kafka keeps them, so that they survive a data loss of the store.
//!
//! Every change of the settings raises the control version of the item. The leader publishes the whole
//! current settings to the compacted topic `control.changed`, and a store that lost data takes the record
//! with the highest control version. See `docs/adr/018-settings-that-survive.md`.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::draw::commitment;
use crate::{Item, ItemId, Lane, LogPosition, Number, Reveal, TicketKeys};

/// Distinguishes the pad of a reveal from tokens and invitations, which use the same secrets. A token's text
/// begins with the length of an item id, at most 64, which is no letter.
const PREFIX: &[u8] = b"daegi-reveal\0";

/// The settings of one item and where the counters of its lines stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemControl {
    /// The item.
    pub id: ItemId,
    /// Grows with every change of the settings, and is at least the clock of the change in Unix
    /// milliseconds, so that it also grows after a loss.
    pub control_version: u64,
    /// The version of the last product event that changed or removed the item; 0 if none did.
    pub version: u64,
    /// The position of that event in its log.
    pub position: Option<LogPosition>,
    /// The lines of the item, the standard lane first. A lane that no ticket was issued in is missing.
    pub lines: Vec<LineControl>,
    /// The item; `None` if it was removed.
    pub item: Option<Item>,
}

/// Where the counter of one line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineControl {
    /// The lane.
    pub lane: Lane,
    /// Numbers below this one belong to the line before a restart.
    pub valid_from: Number,
    /// The last number issued.
    pub tail: Number,
    /// The lowest waiting number.
    pub first_waiting: Option<Number>,
}

/// The reveal of a draw, sealed with a ticket secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedReveal {
    /// The id of the ticket secret.
    pub key: u8,
    /// SHA-256 of the reveal, which is public.
    pub commitment: [u8; 32],
    /// The reveal, XORed with a pad that only the secret gives.
    pub sealed: [u8; 32],
}

impl ItemControl {
    /// Returns the line of the standard lane.
    pub fn standard_line(&self) -> Option<&LineControl> {
        self.lines.iter().find(|line| line.lane.is_standard())
    }
}

impl TicketKeys {
    /// Seals the reveal of a draw with the first secret, because the record of the settings is readable for
    /// others before the opening.
    #[must_use]
    pub fn seal_reveal(&self, item: &ItemId, reveal: &Reveal) -> SealedReveal {
        let (key, mac) = self.signing_mac();
        let commitment = commitment(&reveal.0);
        SealedReveal { key, commitment, sealed: xor(reveal.0, pad(mac, item, &commitment)) }
    }

    /// Returns the reveal. `None` if its secret is missing, or if the record does not belong to the item.
    #[must_use]
    pub fn unseal_reveal(&self, item: &ItemId, sealed: &SealedReveal) -> Option<Reveal> {
        let mac = self.verifying_mac(sealed.key)?.clone();
        let reveal = xor(sealed.sealed, pad(mac, item, &sealed.commitment));
        (commitment(&reveal) == sealed.commitment).then_some(Reveal(reveal))
    }
}

/// Returns 32 bytes that only the secret gives, other ones for each item and reveal.
fn pad(mut mac: Hmac<Sha256>, item: &ItemId, commitment: &[u8; 32]) -> [u8; 32] {
    mac.update(PREFIX);
    mac.update(&[item.as_str().len() as u8]);
    mac.update(item.as_str().as_bytes());
    mac.update(commitment);
    mac.finalize().into_bytes().into()
}

fn xor(mut bytes: [u8; 32], pad: [u8; 32]) -> [u8; 32] {
    bytes.iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= pad);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> TicketKeys {
        text.parse().unwrap()
    }

    #[test]
    fn a_sealed_reveal_opens_with_its_secret_and_for_its_item_only() {
        let first = format!("3:{}", "ab".repeat(16));
        let rotated = format!("4:{},{first}", "cd".repeat(16));
        let (concert, opera) = (ItemId::parse("concert").unwrap(), ItemId::parse("opera").unwrap());
        let reveal = Reveal([7; 32]);
        let sealed = keys(&first).seal_reveal(&concert, &reveal);
        assert_eq!(sealed.key, 3);
        assert_ne!(sealed.sealed, reveal.0);
        assert_eq!(sealed.commitment, commitment(&reveal.0));
        assert_eq!(keys(&first).unseal_reveal(&concert, &sealed), Some(reveal));
        assert_eq!(keys(&rotated).unseal_reveal(&concert, &sealed), Some(reveal));
        assert_eq!(keys(&first).unseal_reveal(&opera, &sealed), None);
        assert_eq!(keys(&format!("3:{}", "ef".repeat(16))).unseal_reveal(&concert, &sealed), None);
        assert_eq!(TicketKeys::generate().unseal_reveal(&concert, &sealed), None);
        let altered = SealedReveal { sealed: [1; 32], ..sealed };
        assert_eq!(keys(&first).unseal_reveal(&concert, &altered), None);
        // Stored in Kafka, so that it must never change.
        let known = "501aff0354631e7ac80355fe982b0a11712ef8d6044903fce0d274131decd7ba";
        assert_eq!(hex::encode(sealed.sealed), known);
    }
}
