//! The draw, recomputed from its published record by `docs/DRAW.md`. It shares no code with the product.

use std::hash::Hasher;

use sha2::{Digest, Sha256};

use crate::history::{DrawRecord, TicketNumber};

const ROUNDS: u8 = 12;

const MAX_NUMBER: u64 = (1 << 48) - 1;

/// A drawn cohort: numbers of the standard lane, and the order in which they are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cohort {
    first: u64,
    size: u64,
    key: (u64, u64),
    half_bits: u32,
}

/// Checks that the secret belongs to the commitment, and that the seed follows from the record.
///
/// # Errors
/// What contradicts.
pub(super) fn check(item: &str, record: &DrawRecord) -> Result<(), String> {
    let bytes = |name: &str, field: &Option<String>| {
        let text = field.as_deref().ok_or_else(|| format!("{name} is missing"))?;
        hex::decode(text).map_err(|error| format!("{name}: {error}"))
    };
    let reveal = bytes("reveal", &record.reveal)?;
    let commitment = hex::encode(Sha256::digest(&reveal));
    if commitment != record.commitment {
        return Err(format!("the secret has the hash {commitment}, not {}", record.commitment));
    }
    let mut text = [b"daegi-draw-v1\0", item.as_bytes(), b"\0", &reveal].concat();
    text.extend(bytes("cohortRoot", &record.cohort_root)?);
    if record.beacon.is_some() {
        text.extend(bytes("beacon", &record.beacon)?);
    }
    let seed = hex::encode(Sha256::digest(&text));
    if Some(&seed) != record.seed.as_ref() {
        return Err(format!("the seed is {seed}, the record has {:?}", record.seed));
    }
    if record.version != 1 || Cohort::from_record(record).is_none() {
        return Err("version, cohort or seed is invalid".to_owned());
    }
    Ok(())
}

impl Cohort {
    /// `None` before the draw.
    pub(super) fn from_record(record: &DrawRecord) -> Option<Self> {
        let (first, size) = (record.cohort_first?, record.cohort_size?);
        first.checked_add(size).filter(|end| *end <= MAX_NUMBER + 1)?;
        let seed = hex::decode(record.seed.as_ref()?).ok()?;
        let word = |at: usize| Some(u64::from_le_bytes(seed.get(at..at + 8)?.try_into().ok()?));
        let half_bits = (1..32).find(|half| 4_u64.pow(*half) >= size)?;
        Some(Self { first, size, key: (word(0)?, word(8)?), half_bits })
    }

    pub(super) fn contains(&self, number: TicketNumber) -> bool {
        number.lane == 0 && (self.first..self.first + self.size).contains(&number.number)
    }

    /// The place in the cohort, from 1; `None` if the cohort does not have the number.
    pub(super) fn place(&self, number: TicketNumber) -> Option<u64> {
        self.contains(number).then(|| self.permuted(number.number - self.first) + 1)
    }

    /// The place of a number in the order of the whole lane: lower numbers are served before the cohort, higher ones
    /// after it.
    pub(super) fn rank(&self, number: TicketNumber) -> u64 {
        self.place(number).map_or(number.number, |place| self.first + place - 1)
    }

    fn permuted(&self, index: u64) -> u64 {
        let (half, mask) = (self.half_bits, (1 << self.half_bits) - 1);
        let mut value = index;
        loop {
            let (mut left, mut right) = (value >> half, value & mask);
            for round in 0..ROUNDS {
                (left, right) = (right, left ^ (self.siphash(round, right) & mask));
            }
            value = left << half | right;
            if value < self.size {
                return value;
            }
        }
    }

    #[expect(deprecated, reason = "it is SipHash-2-4, which the specification names")]
    fn siphash(&self, round: u8, right: u64) -> u64 {
        let mut hash = std::hash::SipHasher::new_with_keys(self.key.0, self.key.1);
        hash.write(&[round]);
        hash.write(&right.to_be_bytes());
        hash.finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn vectors(name: &str) -> Vec<Value> {
        let text = include_str!("../../../../sdk/vectors/draw.json");
        let all: Value = serde_json::from_str(text).unwrap();
        all[name].as_array().unwrap().clone()
    }

    #[test]
    fn permutations_equal_the_vectors() {
        for vector in vectors("permutations") {
            let size = vector["size"].as_u64().unwrap();
            let first = (MAX_NUMBER + 1 - size).min(100);
            let record = DrawRecord {
                cohort_first: Some(first),
                cohort_size: Some(size),
                seed: vector["seed"].as_str().map(ToOwned::to_owned),
                ..DrawRecord::default()
            };
            let cohort = Cohort::from_record(&record).unwrap();
            for pair in vector["indexAndRank"].as_array().unwrap() {
                let [index, rank] = [&pair[0], &pair[1]].map(|value| value.as_u64().unwrap());
                let number = TicketNumber::from(first + index);
                assert_eq!(cohort.rank(number), first + rank, "index {index} of {vector}");
                assert_eq!(cohort.place(number), Some(rank + 1));
            }
            let (above, in_lane) = (first + size, TicketNumber { lane: 1, number: first });
            assert_eq!(cohort.rank(TicketNumber::from(above)), above);
            assert_eq!(
                (cohort.place(TicketNumber::from(above)), cohort.place(in_lane)),
                (None, None)
            );
        }
    }

    #[test]
    fn records_are_judged_like_the_vectors() {
        let mut genuine = 0;
        for vector in vectors("records") {
            let record: DrawRecord = serde_json::from_value(vector["record"].clone()).unwrap();
            let holds = |name: &str| {
                let checks = vector["checks"].as_array().unwrap().iter();
                let mut of_name = checks.filter(|check| check["name"] == name);
                of_name.all(|check| check["ok"] == true)
            };
            let all = ["version", "fields", "commitment", "seed"].into_iter().all(holds);
            let expected = all && vector["record"]["state"] == "DRAWN";
            let item = vector["record"]["itemId"].as_str().unwrap();
            assert_eq!(check(item, &record).is_ok(), expected, "{}", vector["name"]);
            genuine += usize::from(expected);
        }
        assert!(genuine > 3);
    }
}
