//! The public randomness beacon quicknet of drand: verifies signatures of rounds, and fetches them from relays.
//!
//! A fetched signature is returned only if quicknet signed the round with it, so that a relay need not be
//! trusted. When a round is published is in [`daegi_domain`](https://docs.rs/daegi-domain) (`round_published_at`).

mod relay;

use drand_verify::{G2PubkeyRfc, Pubkey};

pub use daegi_https::AuthoritiesError;
pub use relay::{FetchError, RelayClient};

/// The signature of a round.
pub type Signature = [u8; 48];

/// The hash that names drand's quicknet.
pub const QUICKNET_HASH: &str = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971";

/// The public key of drand's quicknet (scheme `bls-unchained-g1-rfc9380`). A test computes [`QUICKNET_HASH`] from
/// the key.
const QUICKNET_KEY: &str = "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c\
    8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb\
    5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a";

/// Returns whether drand's quicknet signed the round with this signature. Takes a few milliseconds.
#[must_use]
pub fn is_signed(round: u64, signature: &Signature) -> bool {
    let key = hex::decode(QUICKNET_KEY).ok().and_then(|key| G2PubkeyRfc::from_variable(&key).ok());
    key.is_some_and(|key| key.verify(round, &[], signature).unwrap_or(false))
}

/// Reads a signature as hexadecimal text. Returns `None` if it does not have 48 bytes.
#[must_use]
pub fn parse_signature(text: &str) -> Option<Signature> {
    let mut signature = [0; 48];
    hex::decode_to_slice(text, &mut signature).ok()?;
    Some(signature)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_key_is_the_one_of_the_chain_hash_of_quicknet() {
        // The hash of a chain: period (u32), genesis time (i64), public key, genesis seed, name.
        let mut hash = Sha256::new();
        hash.update(3_u32.to_be_bytes());
        hash.update(1_692_803_367_i64.to_be_bytes());
        hash.update(hex::decode(QUICKNET_KEY).unwrap());
        let genesis = "f477d5c89f21a17c863a7f937c6a6d15859414d2be09cd448d4279af331c5d3e";
        hash.update(hex::decode(genesis).unwrap());
        hash.update("quicknet");
        assert_eq!(hex::encode(hash.finalize()), QUICKNET_HASH);
    }

    #[test]
    fn real_rounds_of_quicknet_are_signed_and_others_are_not() {
        let rounds = [
            (
                123,
                "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482\
                 e26cd02df835d3546d23c4b13e0dfc92",
            ),
            (
                657_413,
                "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be\
                 41076862b98fad56e91a6b85b89cd97b",
            ),
        ];
        for (round, signature) in rounds {
            let mut signature = parse_signature(signature).unwrap();
            assert!(is_signed(round, &signature));
            assert!(!is_signed(round + 1, &signature));
            signature[7] ^= 1;
            assert!(!is_signed(round, &signature));
        }
    }

    #[test]
    fn a_signature_has_48_bytes() {
        for bad in ["", "ab", &"ab".repeat(47), &"ab".repeat(49), &"zz".repeat(48)] {
            assert_eq!(parse_signature(bad), None, "{bad}");
        }
        assert_eq!(parse_signature(&"ab".repeat(48)), Some([0xab; 48]));
    }
}
