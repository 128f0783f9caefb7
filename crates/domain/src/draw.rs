//! The fair draw, version 1: the random serving order of a cohort, which any third party can recompute.
//!
//! `docs/DRAW.md` is the specification; `sdk/vectors/draw.json` has its test vectors. The order follows from a
//! seed, and the seed from three values: a secret that the operator commits to before the lobby opens
//! ([`commitment`]), the tokens of the cohort ([`cohort_root`]) and, if the opening names one, a public beacon.
//!
//! | module | contents |
//! |---|---|
//! | [`cohort`](Cohort) | the permutation: number to rank and back |
//! | [`merkle`](CohortTree) | the Merkle tree over the tokens of the cohort |
//! | [`record`](DrawRecord) | the public record of a draw |
//! | [`check`](DrawCheck) | the checks of a record |

mod check;
mod cohort;
mod merkle;
mod rank_table;
mod record;
mod siphash;
#[cfg(test)]
mod statistics;

use sha2::{Digest, Sha256};

use crate::ItemId;

pub use check::DrawCheck;
pub use cohort::Cohort;
pub use merkle::{
    CohortTree, DEPARTED_LEAF, RootBuilder, cohort_root, leaf, merkle_path, verify_path,
};
pub use rank_table::RankTable;
pub use record::{DrawRecord, DrawState, DrawTicket, Hex};

/// The version of the draw that this module computes. It is part of the seed.
pub const DRAW_VERSION: u32 = 1;

/// First bytes of the hashed text of a seed.
const SEED_PREFIX: &[u8] = b"daegi-draw-v1";

/// Returns the commitment to a reveal: its SHA-256. It is public from the time the draw is set.
#[must_use]
pub fn commitment(reveal: &[u8; 32]) -> [u8; 32] {
    Sha256::digest(reveal).into()
}

/// Returns the seed of a draw. `beacon` is the randomness of the announced round, or `None` if the opening has
/// no beacon.
#[must_use]
pub fn draw_seed(
    item: &ItemId,
    reveal: &[u8; 32],
    cohort_root: &[u8; 32],
    beacon: Option<&[u8; 32]>,
) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(SEED_PREFIX);
    hash.update([0]);
    hash.update(item.as_str());
    hash.update([0]);
    hash.update(reveal);
    hash.update(cohort_root);
    if let Some(beacon) = beacon {
        hash.update(beacon);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha256(bytes: &[u8]) -> [u8; 32] {
        Sha256::digest(bytes).into()
    }

    #[test]
    fn the_seed_is_the_hash_of_its_inputs_in_order() {
        let item = ItemId::parse("concert").unwrap();
        let (reveal, root, beacon) = ([1; 32], [2; 32], [3; 32]);
        let mut text = b"daegi-draw-v1\0concert\0".to_vec();
        text.extend_from_slice(&reveal);
        text.extend_from_slice(&root);
        assert_eq!(draw_seed(&item, &reveal, &root, None), sha256(&text));
        text.extend_from_slice(&beacon);
        assert_eq!(draw_seed(&item, &reveal, &root, Some(&beacon)), sha256(&text));
        assert_eq!(commitment(&reveal), sha256(&reveal));
    }
}
