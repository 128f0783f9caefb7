//! The Merkle tree of a cohort: RFC 6962, section 2.1, with SHA-256.

use sha2::{Digest, Sha256};

/// The leaf of a number that left before the opening.
pub const DEPARTED_LEAF: [u8; 32] = [0; 32];

const LEAF_PREFIX: [u8; 1] = [0];
const NODE_PREFIX: [u8; 1] = [1];

/// Leaves of one block of a [`CohortTree`]: a power of two.
const BLOCK_LEN: usize = 1024;

/// Returns the leaf of a token that was in the lobby at the opening: its SHA-256.
#[must_use]
pub fn leaf(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Returns the root over one leaf per number of the cohort, in order. Of no leaves, it is the SHA-256 of nothing.
#[must_use]
pub fn cohort_root(leaves: &[[u8; 32]]) -> [u8; 32] {
    let mut builder = RootBuilder::default();
    leaves.iter().for_each(|leaf| builder.push(leaf));
    builder.finish()
}

/// Returns the inclusion path of the leaf at `index`, from the leaf's sibling upwards. Costs one hash per node;
/// use a [`CohortTree`] for more than a few paths.
///
/// # Panics
/// If `index` is not below the number of leaves.
#[must_use]
pub fn merkle_path(leaves: &[[u8; 32]], index: usize) -> Vec<[u8; 32]> {
    let hashes: Vec<_> = leaves.iter().map(leaf_hash).collect();
    path(&hashes, index)
}

/// Returns whether a path proves that `leaf` is the leaf at `index` of the tree of `size` leaves with this root
/// (RFC 9162, section 2.1.3.2).
#[must_use]
pub fn verify_path(
    leaf: &[u8; 32],
    index: u64,
    size: u64,
    path: &[[u8; 32]],
    root: &[u8; 32],
) -> bool {
    if index >= size {
        return false;
    }
    let (mut node, mut last) = (index, size - 1);
    let mut hash = leaf_hash(leaf);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            hash = node_hash(sibling, &hash);
            // The last node of a level without a sibling moves up unchanged.
            while node & 1 == 0 && node != 0 {
                (node, last) = (node >> 1, last >> 1);
            }
        } else {
            hash = node_hash(&hash, sibling);
        }
        (node, last) = (node >> 1, last >> 1);
    }
    last == 0 && hash == *root
}

/// Computes a root from leaves that arrive one at a time. Holds at most 64 hashes.
#[derive(Debug, Clone, Default)]
pub struct RootBuilder {
    /// The roots of complete subtrees, each larger than the next. Bit `k` of `len` is set if one has 2^k leaves.
    subtrees: Vec<[u8; 32]>,
    len: u64,
}

impl RootBuilder {
    /// Adds the leaf of the next number.
    pub fn push(&mut self, leaf: &[u8; 32]) {
        self.push_hash(leaf_hash(leaf));
    }

    /// Returns how many leaves were added.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether no leaf was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the root over all leaves.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        let right_to_left = self.subtrees.into_iter().rev();
        let root = right_to_left.reduce(|right, left| node_hash(&left, &right));
        root.unwrap_or_else(|| Sha256::digest([]).into())
    }

    fn push_hash(&mut self, mut hash: [u8; 32]) {
        for _ in 0..self.len.trailing_ones() {
            if let Some(left) = self.subtrees.pop() {
                hash = node_hash(&left, &hash);
            }
        }
        self.subtrees.push(hash);
        self.len += 1;
    }
}

/// The leaves of a cohort with the roots of blocks of 1024 leaves, so that a path costs about a thousand
/// hashes and not one per node of the whole tree.
#[derive(Debug, Clone)]
pub struct CohortTree {
    leaves: Vec<[u8; 32]>,
    /// A block is a subtree: its length is a power of two, and the last one may be shorter.
    blocks: Vec<[u8; 32]>,
}

impl CohortTree {
    /// Returns the tree of these leaves.
    #[must_use]
    pub fn new(leaves: Vec<[u8; 32]>) -> Self {
        let blocks = leaves.chunks(BLOCK_LEN).map(cohort_root).collect();
        Self { leaves, blocks }
    }

    /// The leaves in order.
    #[must_use]
    pub fn leaves(&self) -> &[[u8; 32]] {
        &self.leaves
    }

    /// Returns the root.
    #[must_use]
    pub fn root(&self) -> [u8; 32] {
        root_of_hashes(&self.blocks)
    }

    /// Returns the inclusion path of the leaf at `index`, or `None` if there is no such leaf.
    #[must_use]
    pub fn path(&self, index: usize) -> Option<Vec<[u8; 32]>> {
        let block = self.leaves.chunks(BLOCK_LEN).nth(index / BLOCK_LEN)?;
        let within = index % BLOCK_LEN;
        if within >= block.len() {
            return None;
        }
        let mut path_in_block = merkle_path(block, within);
        path_in_block.extend(path(&self.blocks, index / BLOCK_LEN));
        Some(path_in_block)
    }
}

/// Returns the siblings of the node at `index`, lowest first.
fn path(mut hashes: &[[u8; 32]], mut index: usize) -> Vec<[u8; 32]> {
    assert!(index < hashes.len(), "leaf {index} of {}", hashes.len());
    let mut from_root = Vec::new();
    while hashes.len() > 1 {
        // The left subtree has the largest power of two of leaves that leaves at least one for the right.
        let (left, right) = hashes.split_at(hashes.len().next_power_of_two() / 2);
        if index < left.len() {
            from_root.push(root_of_hashes(right));
            hashes = left;
        } else {
            from_root.push(root_of_hashes(left));
            index -= left.len();
            hashes = right;
        }
    }
    from_root.reverse();
    from_root
}

fn root_of_hashes(hashes: &[[u8; 32]]) -> [u8; 32] {
    let mut builder = RootBuilder::default();
    hashes.iter().for_each(|hash| builder.push_hash(*hash));
    builder.finish()
}

fn leaf_hash(leaf: &[u8; 32]) -> [u8; 32] {
    Sha256::new().chain_update(LEAF_PREFIX).chain_update(leaf).finalize().into()
}

fn node_hash(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    let hash = Sha256::new().chain_update(NODE_PREFIX);
    hash.chain_update(left).chain_update(right).finalize().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn leaves(size: usize) -> Vec<[u8; 32]> {
        (0..size).map(|index| leaf(&format!("token {index}"))).collect()
    }

    /// The definition of RFC 6962, section 2.1, word for word.
    fn definition(leaves: &[[u8; 32]]) -> [u8; 32] {
        match leaves {
            [] => Sha256::digest([]).into(),
            [one] => leaf_hash(one),
            _ => {
                let k = (0..).map(|bit| 1 << bit).take_while(|k| *k < leaves.len()).last().unwrap();
                node_hash(&definition(&leaves[..k]), &definition(&leaves[k..]))
            }
        }
    }

    #[test]
    fn the_root_of_no_leaves_is_the_hash_of_nothing() {
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex::encode(cohort_root(&[])), expected);
        assert_eq!(CohortTree::new(Vec::new()).root(), cohort_root(&[]));
        assert_eq!(CohortTree::new(Vec::new()).path(0), None);
    }

    #[test]
    fn roots_follow_the_definition_and_paths_lead_to_them() {
        for size in 1..70 {
            let leaves = leaves(size);
            let root = cohort_root(&leaves);
            assert_eq!(root, definition(&leaves), "size {size}");
            for (index, leaf) in leaves.iter().enumerate() {
                let path = merkle_path(&leaves, index);
                assert!(verify_path(leaf, index as u64, size as u64, &path, &root));
            }
        }
    }

    #[test]
    fn a_tree_in_blocks_has_the_root_and_the_paths_of_the_leaves() {
        for size in [1, 1023, 1024, 1025, 2048, 3072, 5000] {
            let leaves = leaves(size);
            let tree = CohortTree::new(leaves.clone());
            assert_eq!(tree.root(), cohort_root(&leaves), "size {size}");
            for index in [0, 1, 1022, 1023, 1024, 2047, 4096, size - 1, size] {
                let expected = (index < size).then(|| merkle_path(&leaves, index));
                assert_eq!(tree.path(index), expected, "leaf {index} of {size}");
            }
        }
    }

    proptest! {
        #[test]
        fn an_altered_proof_is_refused(
            size in 2..600_usize,
            place: prop::sample::Index,
            changed: prop::sample::Index,
            bit in 0..256_usize,
        ) {
            let leaves = leaves(size);
            let index = place.index(size);
            let (mut leaf, mut root) = (leaves[index], cohort_root(&leaves));
            let mut path = merkle_path(&leaves, index);
            let (at, count) = (index as u64, size as u64);
            prop_assert!(verify_path(&leaf, at, count, &path, &root));
            prop_assert!(!verify_path(&leaf, at ^ 1, count, &path, &root));
            prop_assert!(!verify_path(&leaf, at, at, &path, &root));
            prop_assert!(!verify_path(&leaf, at, count, &path[1..], &root));
            let longer = [&path[..], &[[0; 32]]].concat();
            prop_assert!(!verify_path(&leaf, at, count, &longer, &root));
            let flip = |hash: &mut [u8; 32]| hash[bit / 8] ^= 1 << (bit % 8);
            match changed.index(path.len() + 2) {
                0 => flip(&mut leaf),
                1 => flip(&mut root),
                node => flip(&mut path[node - 2]),
            }
            prop_assert!(!verify_path(&leaf, at, count, &path, &root));
        }
    }
}
