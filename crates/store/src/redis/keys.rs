//! Every key. All keys of a partition share its hash tag, so that a script's keys are always on
//! one node of a Redis Cluster.

use daegi_domain::ItemId;

/// The keys of one partition.
pub(super) struct PartitionKeys {
    /// SET: lines that need the leader.
    pub(super) active: String,
    /// STREAM: batches of events nobody has published yet.
    pub(super) outbox: String,
    /// INTEGER: how many events those batches hold.
    pub(super) outbox_events: String,
    /// INTEGER: how many of those events are admissions.
    pub(super) outbox_admissions: String,
    /// INTEGER: the epoch that leads.
    pub(super) fence: String,
    /// HASH tokenCountToMove, revision: the partition's copy of the settings, so that scripts of its
    /// lines can read them on a Redis Cluster.
    pub(super) settings_copy: String,
    /// SET: the items there are.
    pub(super) items: String,
    /// HASH log → reading|read: how far logs were read from their beginning.
    pub(super) catalogues: String,
    /// HASH id, lost, lossAt: the generation of the partition's data, the generations that were
    /// lost, and when the last loss was recorded.
    pub(super) generation: String,
}

/// The keys of one line.
pub(super) struct LineKeys {
    prefix: String,
    partition: PartitionKeys,
    /// HASH: the item, its policy, the line's counters.
    pub(super) item: String,
}

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
            catalogues: key("catalogues"),
            generation: key("generation"),
        }
    }
}

impl LineKeys {
    pub(super) fn new(partition: u16, id: &ItemId) -> Self {
        let prefix = format!("daegi:{{p{partition:02}}}:line:{id}:");
        let item = format!("{prefix}item");
        Self { prefix, partition: PartitionKeys::new(partition), item }
    }

    /// The keys every script of a line is given, in the order of `scripts/line.lua`.
    pub(super) fn all(&self) -> [String; 21] {
        let key = |name: &str| format!("{}{name}", self.prefix);
        [
            self.item.clone(),
            key("waiting"),       // ZSET user → number
            key("returning"),     // ZSET user → number
            key("missed"),        // HASH user → number:until
            key("missed-until"),  // ZSET user → until
            key("entered"),       // HASH user → number:at:expires
            key("entered-until"), // ZSET users who were let in together → expires
            key("departed"),      // LIST of numbers, in the order of leaving
            key("closed"),        // ZSET number:reason → when
            key("births"),        // ZSET first number → slice
            key("rate"),          // HASH bucket → people
            self.partition.active.clone(),
            self.partition.outbox.clone(),
            self.partition.outbox_events.clone(),
            self.partition.fence.clone(),
            self.partition.items.clone(),
            self.partition.generation.clone(),
            self.partition.settings_copy.clone(),
            self.partition.outbox_admissions.clone(),
            key("leaves"),   // ZSET user → until when their leaves count
            key("leftover"), // ZSET number of an entry given back → until when its pass is valid
        ]
    }

    /// HASH page → bits: who was seen during one slice of time. Expires by itself.
    pub(super) fn slice(&self, slice: u64) -> String {
        format!("{}seen:{slice}", self.prefix)
    }
}

/// INTEGER: how many tickets wait in all lines, as the leader last counted.
pub(super) fn waiting() -> &'static str {
    "daegi:{p00}:waiting"
}

/// HASH: partitions and what applies to every line.
pub(super) fn settings() -> &'static str {
    "daegi:{p00}:settings"
}

/// INTEGER: the last epoch given to a leader.
pub(super) fn epoch() -> &'static str {
    "daegi:{p00}:epoch"
}

/// HASH epoch, name, since: who began the latest term.
pub(super) fn leader() -> &'static str {
    "daegi:{p00}:leader"
}

/// The lock behind the lease.
pub(super) fn lease() -> &'static str {
    "daegi:{p00}:lease"
}

/// LIST: what operators changed, newest first.
pub(super) fn journal() -> &'static str {
    "daegi:{p00}:journal"
}

/// HASH process → time and text: what processes say about themselves.
pub(super) fn notices() -> &'static str {
    "daegi:{p00}:notices"
}
