//! Slots of keys, and who has them.

use std::collections::{HashMap, HashSet};

use ::redis::{Value, from_redis_value_ref};

use crate::redis::address::Node;

/// How many slots a cluster has.
pub(in crate::redis) const SLOTS: usize = 16384;

/// Who has each slot, in one node's view or in that of the most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owners(Vec<Option<Node>>);

/// The slot of a key: CRC16 of what is between the first `{` and the next `}`, or of all of it.
pub(in crate::redis) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        rest.iter()
            .position(|byte| *byte == b'}')
            .filter(|length| *length > 0)
            .map(|to| &rest[..to])
    });
    crc16(tag.unwrap_or(key)) % SLOTS as u16
}

/// CRC-16/XMODEM, as the cluster specification has it.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// Reads the answer of `CLUSTER SLOTS`: per range its ends and its nodes, the master first, each
/// with host and port. An empty host means the one that was asked.
pub(super) fn owners(answer: &Value, asked: &Node) -> Owners {
    let mut owners = vec![None; SLOTS];
    for range in array(answer) {
        if let Some((first, last, master)) = owner(array(range), asked)
            && first <= last
            && last < SLOTS
        {
            owners[first..=last].fill(Some(master));
        }
    }
    Owners(owners)
}

fn owner(range: &[Value], asked: &Node) -> Option<(usize, usize, Node)> {
    let [first, last, master, ..] = range else { return None };
    let [host, port, ..] = array(master) else { return None };
    let host: Option<String> = from_redis_value_ref(host).ok()?;
    let host = host.filter(|host| !host.is_empty()).unwrap_or_else(|| asked.host().to_owned());
    let node = Node::new(host, from_redis_value_ref(port).ok()?);
    Some((from_redis_value_ref(first).ok()?, from_redis_value_ref(last).ok()?, node))
}

fn array(value: &Value) -> &[Value] {
    match value {
        Value::Array(values) => values,
        _ => &[],
    }
}

impl Owners {
    /// What the most say, slot by slot: a node that was cut off tells what was.
    pub(super) fn of_most(views: &[Self]) -> Option<Self> {
        let [first, rest @ ..] = views else { return None };
        if rest.iter().all(|view| view == first) {
            return Some(first.clone());
        }
        let most = |slot: usize| {
            let mut votes: HashMap<&Node, usize> = HashMap::new();
            for node in views.iter().filter_map(|view| view.of(slot)) {
                *votes.entry(node).or_default() += 1;
            }
            votes.into_iter().max_by_key(|(_, votes)| *votes).map(|(node, _)| node.clone())
        };
        Some(Self((0..SLOTS).map(most).collect()))
    }

    pub(super) fn of(&self, slot: usize) -> Option<&Node> {
        self.0.get(slot)?.as_ref()
    }

    pub(super) fn nodes(&self) -> HashSet<&Node> {
        self.0.iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str) -> Owners {
        let value = ::redis::parse_redis_value(text.as_bytes()).unwrap();
        owners(&value, &Node::new("asked", 1))
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
    fn every_slot_has_the_master_that_is_named_first() {
        let owners = view(&format!("*2\r\n{}{}", range(0, 9, "a", 1), range(10, 16383, "", 2)));
        assert_eq!(owners.of(9), Some(&Node::new("a", 1)));
        assert_eq!(owners.of(10), Some(&Node::new("asked", 2)));
        assert_eq!(owners.of(16383), Some(&Node::new("asked", 2)));
        assert_eq!(owners.nodes().len(), 2);
    }

    #[test]
    fn one_that_was_cut_off_is_not_believed() {
        let old = view(&format!("*1\r\n{}", range(0, 16383, "a", 1)));
        let new = view(&format!("*1\r\n{}", range(0, 16383, "b", 1)));
        let most = Owners::of_most(&[old.clone(), new.clone(), new.clone()]).unwrap();
        assert_eq!(most, new);
        assert_eq!(Owners::of_most(&[]), None);
        assert_eq!(Owners::of_most(std::slice::from_ref(&old)), Some(old));
    }
}
