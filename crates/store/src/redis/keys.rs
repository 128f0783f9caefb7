//! Every key. All keys of a partition share its hash tag, so that a script's keys are always on
//! one node of a Redis Cluster.

use daegi_domain::{ItemId, Lane, Number};

use crate::types::AccessLog;

/// The keys of one partition.
pub(super) struct PartitionKeys {
    /// SET: lines that need the leader.
    pub(super) active: String,
    /// STREAM: batches of unpublished events.
    pub(super) outbox: String,
    /// INTEGER: how many events those batches hold.
    pub(super) outbox_events: String,
    /// INTEGER: how many of those events are admissions.
    pub(super) outbox_admissions: String,
    /// INTEGER: the epoch of the current term.
    pub(super) fence: String,
    /// HASH tokenCountToMove, revision: the partition's copy of the settings, so that scripts of its
    /// lines can read them on a Redis Cluster.
    pub(super) settings_copy: String,
    /// SET: the ids of all items.
    pub(super) items: String,
    /// HASH log → `reading:` or `read:` and the run id of the server: the replay state of each log.
    pub(super) replays: String,
    /// ZSET item → control version: items whose settings are not published yet.
    pub(super) changed_controls: String,
    /// HASH id, lost, lossAt: the generation of the partition's data, the generations that were
    /// lost, and when the last loss was recorded.
    pub(super) generation: String,
}

/// The keys of one item and of the line of one of its lanes.
pub(super) struct LineKeys {
    /// Prefix of the keys of the item.
    prefix: String,
    /// Prefix of the keys of the lane; that of the item for the standard lane.
    lane_prefix: String,
    is_standard: bool,
    partition: PartitionKeys,
    /// HASH: the item, its policy, the counters of the standard lane's line.
    pub(super) item: String,
}

/// A key of a line script.
#[derive(Clone, Copy)]
pub(super) enum LineKey {
    /// A key of the item, by its name after the prefix.
    OfItem(&'static str),
    /// A key of the lane's line, by its name after the prefix.
    OfLine(&'static str),
    /// The hash of the lane's line: that of the item for the standard lane.
    LineHash,
    /// A key of the line's partition.
    OfPartition(fn(&PartitionKeys) -> &String),
}

/// The keys of every line script in the order of `KEYS`, each with its name in Lua. Further keys of a
/// script are the [`LANE_KEYS`] of all lanes, and slices of liveness.
pub(super) const LINE_KEYS: [(&str, LineKey); 24] = {
    use LineKey::{LineHash, OfItem, OfLine, OfPartition};
    [
        ("ITEM", OfItem("item")), // HASH: item, policy, counters of the standard lane's line
        ("WAITING", OfLine("waiting")), // ZSET user → number
        ("RETURNING", OfLine("returning")), // ZSET user → number
        ("MISSED", OfLine("missed")), // HASH user → number:deadline
        ("MISSED_UNTIL", OfLine("missed-until")), // ZSET user → deadline
        ("ENTERED", OfLine("entered")), // HASH user → number:admission:expiry
        ("ENTERED_UNTIL", OfLine("entered-until")), // ZSET users admitted by one call → expiry
        ("DEPARTED", OfLine("departed")), // LIST of changes, oldest first
        ("ENDED", OfLine("closed")), // ZSET number:reason → time of the end
        ("SLICE_STARTS", OfLine("births")), // ZSET first number of a slice → slice
        ("RATE", OfLine("rate")), // HASH bucket → tickets
        ("ACTIVE", OfPartition(|keys| &keys.active)),
        ("OUTBOX", OfPartition(|keys| &keys.outbox)),
        ("OUTBOX_EVENTS", OfPartition(|keys| &keys.outbox_events)),
        ("FENCE", OfPartition(|keys| &keys.fence)),
        ("ITEMS", OfPartition(|keys| &keys.items)),
        ("GENERATION", OfPartition(|keys| &keys.generation)),
        ("SETTINGS_COPY", OfPartition(|keys| &keys.settings_copy)),
        ("OUTBOX_ADMISSIONS", OfPartition(|keys| &keys.outbox_admissions)),
        ("LEAVES", OfItem("leaves")), // ZSET user → time until which their leaves count
        ("RESERVED_SLOTS", OfLine("leftover")), // ZSET number of an entry given back → expiry of its pass
        ("LINE", LineHash),                     // HASH: the counters of the line
        ("CODES", OfItem("codes")), // HASH code → users who joined with it, and code user → 1
        ("CHANGED", OfPartition(|keys| &keys.changed_controls)),
    ]
};

/// The keys that each lane has of its own, by their names in Lua.
pub(super) const LANE_KEYS: [&str; 12] = [
    "LINE",
    "WAITING",
    "RETURNING",
    "MISSED",
    "MISSED_UNTIL",
    "ENTERED",
    "ENTERED_UNTIL",
    "DEPARTED",
    "ENDED",
    "SLICE_STARTS",
    "RATE",
    "RESERVED_SLOTS",
];

impl PartitionKeys {
    pub(super) fn new(partition: u16) -> Self {
        let key = |name: &str| format!("daegi:{{p{partition:02}}}:{name}");
        Self {
            active: key("active"),
            outbox: key("outbox"),
            outbox_events: key("outbox-events"),
            outbox_admissions: key("outbox-admissions"),
            settings_copy: key("settings-copy"),
            fence: key("fence"),
            items: key("items"),
            replays: key("catalogues"),
            changed_controls: key("changed-controls"),
            generation: key("generation"),
        }
    }
}

impl LineKeys {
    pub(super) fn new(partition: u16, id: &ItemId, lane: Lane) -> Self {
        let prefix = format!("daegi:{{p{partition:02}}}:line:{id}:");
        let lane_prefix = match lane.is_standard() {
            true => prefix.clone(),
            false => format!("{prefix}lane-{}:", lane.index()),
        };
        let (item, partition) = (format!("{prefix}item"), PartitionKeys::new(partition));
        Self { prefix, lane_prefix, is_standard: lane.is_standard(), partition, item }
    }

    /// The keys that every line script gets, in the order of [`LINE_KEYS`].
    pub(super) fn all(&self) -> [String; LINE_KEYS.len()] {
        LINE_KEYS.map(|(_, key)| self.key(key))
    }

    /// The keys that only this lane has, in the order of [`LANE_KEYS`].
    pub(super) fn of_lane(&self) -> [String; LANE_KEYS.len()] {
        LANE_KEYS.map(|name| {
            let key = LINE_KEYS.iter().find(|(key, _)| *key == name);
            key.map_or_else(String::new, |(_, key)| self.key(*key))
        })
    }

    fn key(&self, key: LineKey) -> String {
        match key {
            LineKey::OfItem(name) => format!("{}{name}", self.prefix),
            LineKey::OfLine(name) => format!("{}{name}", self.lane_prefix),
            LineKey::LineHash if self.is_standard => self.item.clone(),
            LineKey::LineHash => format!("{}line", self.lane_prefix),
            LineKey::OfPartition(key) => key(&self.partition).clone(),
        }
    }

    /// ZSET user → number: the waiting tickets.
    pub(super) fn waiting(&self) -> String {
        format!("{}waiting", self.lane_prefix)
    }

    /// HASH lane:number → bits, and counts by name: the signals of the item's tickets. Has a TTL.
    pub(super) fn signals(&self) -> String {
        format!("{}signals", self.prefix)
    }

    /// INTEGER: when the handover code of a ticket that was used last was issued. Has a TTL.
    pub(super) fn handover(&self, number: Number) -> String {
        format!("{}handover:{}", self.lane_prefix, number.0)
    }

    /// HASH pod → report: what guards reported to each pod of the origin of the line. Has a TTL.
    pub(super) fn origin(&self) -> String {
        format!("{}origin", self.prefix)
    }

    /// HASH page → leaves of 32 bytes: the Merkle tree of a draw, named by its root, so that the leaves of a
    /// leader that lost its term do not overwrite others. Has a TTL.
    pub(super) fn leaves(&self, root: &[u8; 32]) -> String {
        format!("{}draw:{}", self.prefix, hex::encode(&root[..16]))
    }

    /// HASH hour → log: the figures by minute on one day. Has a TTL.
    pub(super) fn minutes(&self, day: u64) -> String {
        format!("{}minutes:{day}", self.prefix)
    }

    /// HASH minute → counts: the visits by minute in one hour. Has a TTL.
    pub(super) fn visits_by_minute(&self, hour: u64) -> String {
        format!("{}visits:{hour}", self.prefix)
    }

    /// HASH hour → counts: the visits by hour on one day. Has a TTL.
    pub(super) fn visits_by_hour(&self, day: u64) -> String {
        format!("{}visits-by-hour:{day}", self.prefix)
    }

    /// HASH page → bits: the numbers of all lanes seen during one slice of time. Has a TTL.
    pub(super) fn slice(&self, slice: u64) -> String {
        format!("{}seen:{slice}", self.prefix)
    }
}

/// INTEGER: tickets that wait in all lines, as the leader last counted.
pub(super) fn waiting() -> &'static str {
    "daegi:{p00}:waiting"
}

/// HASH: the number of partitions and the settings.
pub(super) fn settings() -> &'static str {
    "daegi:{p00}:settings"
}

/// INTEGER: the last epoch issued.
pub(super) fn epoch() -> &'static str {
    "daegi:{p00}:epoch"
}

/// HASH epoch, name, since: the leader of the latest term.
pub(super) fn leader() -> &'static str {
    "daegi:{p00}:leader"
}

/// STRING: the lock of the lease.
pub(super) fn lease() -> &'static str {
    "daegi:{p00}:lease"
}

/// LIST: the audit log, newest entry first.
pub(super) fn audit_log() -> &'static str {
    "daegi:{p00}:journal"
}

/// HASH name → record: operators with tokens of their own.
pub(super) fn operators() -> &'static str {
    "daegi:{p00}:operators"
}

/// HASH process → time and payload: the last heartbeat of each process.
pub(super) fn heartbeats() -> &'static str {
    "daegi:{p00}:notices"
}

/// HASH rule → record: the block and allow list.
pub(super) fn access_rules() -> &'static str {
    "daegi:{p00}:access"
}

/// HASH revision, contactUrl: the revision of the list, and where blocked users complain.
pub(super) fn access_settings() -> &'static str {
    "daegi:{p00}:access-settings"
}

/// LIST: events of the list, newest first.
pub(super) fn access_log(log: AccessLog) -> &'static str {
    match log {
        AccessLog::Changes => "daegi:{p00}:access-changes",
        AccessLog::Tickets => "daegi:{p00}:access-tickets",
        AccessLog::Joins => "daegi:{p00}:access-joins",
    }
}
