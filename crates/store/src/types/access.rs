use daegi_domain::{AccessEvent, AccessRule, RuleId};

/// The block and allow list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// The revision of the list before it was read.
    pub revision: u64,
    /// Where blocked users complain, if an operator set it.
    pub contact_url: Option<String>,
    /// The rules, sorted by id.
    pub rules: Vec<AccessRule>,
    /// Rules that this version cannot read, because a newer one wrote them.
    pub unreadable: u32,
}

/// A change of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessChange {
    /// Rules to remove, each with the event that records it if the list has the rule.
    pub remove: Vec<(RuleId, AccessEvent)>,
    /// Rules to add, or to replace those with the same id, each with the event that records it.
    pub put: Vec<(AccessRule, AccessEvent)>,
    /// Where blocked users complain from now on; the inner `None` for nowhere.
    pub contact_url: Option<Option<String>>,
}

/// The result of a change of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessOutcome {
    /// The list is as the change asks for.
    Changed {
        /// The revision of the list, the same as before if nothing changed.
        revision: u64,
        /// How many rules are new.
        added: u32,
        /// How many rules were replaced.
        replaced: u32,
        /// How many rules were removed.
        removed: u32,
    },
    /// The list would have too many rules; nothing changed.
    Full,
}

/// A log of events, bounded separately, so that a flood of refused joins does not remove the other events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessLog {
    /// Changes of rules.
    Changes,
    /// Tickets and entries that ended.
    Tickets,
    /// Refused joins.
    Joins,
}

impl AccessLog {
    /// Every log.
    pub const ALL: [Self; 3] = [Self::Changes, Self::Tickets, Self::Joins];
}
