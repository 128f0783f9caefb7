//! Hash slots and the nodes that have them.

use std::collections::{HashMap, HashSet};

use ::redis::{Value, from_redis_value_ref};

use super::url::NodeAddr;

/// Slots of a cluster.
pub(super) const SLOTS: usize = 16384;

/// The node of each slot, as one node or the majority reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlotOwners(Vec<Option<NodeAddr>>);

/// Returns the slot of a key: CRC16 of the text between the first `{` and the next `}`, or of the whole key.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        rest.iter()
            .position(|byte| *byte == b'}')
            .filter(|length| *length > 0)
            .map(|to| &rest[..to])
    });
    crc16(tag.unwrap_or(key)) % SLOTS as u16
}

/// CRC-16/XMODEM, as the cluster specification defines it.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

fn owner(range: &[Value], replier: &NodeAddr) -> Option<(usize, usize, NodeAddr)> {
    let [first, last, master, ..] = range else { return None };
    let [host, port, ..] = array(master) else { return None };
    let host: Option<String> = from_redis_value_ref(host).ok()?;
    let host = host.filter(|host| !host.is_empty()).unwrap_or_else(|| replier.host().to_owned());
    let node = NodeAddr::new(host, from_redis_value_ref(port).ok()?);
    Some((from_redis_value_ref(first).ok()?, from_redis_value_ref(last).ok()?, node))
}

fn array(value: &Value) -> &[Value] {
    match value {
        Value::Array(values) => values,
        _ => &[],
    }
}

impl SlotOwners {
    /// Reads the reply of `CLUSTER SLOTS`: per range its ends and its nodes, the master first, each with
    /// host and port. An empty host means the host of the node that replied.
    pub(super) fn parse(reply: &Value, replier: &NodeAddr) -> Self {
        let mut owners = vec![None; SLOTS];
        for range in array(reply) {
            if let Some((first, last, master)) = owner(array(range), replier)
                && first <= last
                && last < SLOTS
            {
                owners[first..=last].fill(Some(master));
            }
        }
        Self(owners)
    }

    /// Returns what most nodes report for each slot, because a partitioned node reports an old table.
    pub(super) fn majority(reports: &[Self]) -> Option<Self> {
        let [first, rest @ ..] = reports else { return None };
        if rest.iter().all(|report| report == first) {
            return Some(first.clone());
        }
        let winner = |slot: usize| {
            let mut votes: HashMap<&NodeAddr, usize> = HashMap::new();
            for node in reports.iter().filter_map(|report| report.of(slot)) {
                *votes.entry(node).or_default() += 1;
            }
            votes.into_iter().max_by_key(|(_, votes)| *votes).map(|(node, _)| node.clone())
        };
        Some(Self((0..SLOTS).map(winner).collect()))
    }

    pub(super) fn of(&self, slot: usize) -> Option<&NodeAddr> {
        self.0.get(slot)?.as_ref()
    }

    pub(super) fn nodes(&self) -> HashSet<&NodeAddr> {
        self.0.iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> SlotOwners {
        let value = ::redis::parse_redis_value(text.as_bytes()).unwrap();
        SlotOwners::parse(&value, &NodeAddr::new("replier", 1))
    }

    fn range(first: u16, last: u16, host: &str, port: u16) -> String {
        let length = host.len();
        format!("*3\r\n:{first}\r\n:{last}\r\n*3\r\n${length}\r\n{host}\r\n:{port}\r\n$2\r\nid\r\n")
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"foo"), 12182);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
        assert_eq!(slot_of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % 16384);
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
        assert_eq!(slot_of(b"daegi:{p00}:settings"), slot_of(b"p00"));
    }

    #[test]
    fn every_slot_belongs_to_the_first_node_of_its_range() {
        let owners = report(&format!("*2\r\n{}{}", range(0, 9, "a", 1), range(10, 16383, "", 2)));
        assert_eq!(owners.of(9), Some(&NodeAddr::new("a", 1)));
        assert_eq!(owners.of(10), Some(&NodeAddr::new("replier", 2)));
        assert_eq!(owners.of(16383), Some(&NodeAddr::new("replier", 2)));
        assert_eq!(owners.nodes().len(), 2);
    }

    #[test]
    fn the_report_of_a_partitioned_node_is_outvoted() {
        let old = report(&format!("*1\r\n{}", range(0, 16383, "a", 1)));
        let new = report(&format!("*1\r\n{}", range(0, 16383, "b", 1)));
        let majority = SlotOwners::majority(&[old.clone(), new.clone(), new.clone()]).unwrap();
        assert_eq!(majority, new);
        assert_eq!(SlotOwners::majority(&[]), None);
        assert_eq!(SlotOwners::majority(std::slice::from_ref(&old)), Some(old));
    }
}
