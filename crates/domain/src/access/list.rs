use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, BuildError, MatchKind};

use super::{AccessKind, AccessRule, AccessSubject, Network};
use crate::{ItemId, Millis, UserId};

/// The longest user agent that is compared, in bytes; more is ignored.
const MAX_AGENT: usize = 1024;

/// All rules, arranged so that the rules of a request are found without a scan: users and networks by hash, one lookup
/// per length of prefix that a rule has, and all texts of user agents in one pass.
#[derive(Debug, Default)]
pub struct AccessList {
    rules: Vec<Arc<AccessRule>>,
    users: HashMap<UserId, Vec<usize>>,
    networks: HashMap<Network, Vec<usize>>,
    /// The lengths of prefixes that rules have, for IPv4 and IPv6, longest first.
    lengths: [Vec<u8>; 2],
    agents: Option<AgentMatcher>,
}

/// Finds the rules whose text occurs in a user agent.
#[derive(Debug)]
struct AgentMatcher {
    texts: AhoCorasick,
    /// The rule of each text.
    rules: Vec<usize>,
}

/// Who sends a request, as far as that is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Requester<'a> {
    /// The user that the request names, or the user of its token.
    pub user: Option<&'a UserId>,
    /// The address of the client.
    pub address: Option<IpAddr>,
    /// The user agent as it was sent.
    pub user_agent: Option<&'a [u8]>,
}

/// What the list says about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// No rule applies.
    Neutral,
    /// An allow rule applies: no challenge, and no limit per source or user.
    Allowed(Arc<AccessRule>),
    /// A block rule applies, and no allow rule.
    Blocked(Arc<AccessRule>),
}

impl AccessList {
    /// Arranges these rules.
    ///
    /// # Errors
    /// If the texts of user agents together need more memory than a matcher may have.
    pub fn new(rules: Vec<AccessRule>) -> Result<Self, BuildError> {
        let mut list = Self::default();
        let (mut texts, mut agents) = (Vec::new(), Vec::new());
        for (index, rule) in rules.iter().enumerate() {
            match &rule.subject {
                AccessSubject::User(user) => {
                    list.users.entry(user.clone()).or_default().push(index);
                }
                AccessSubject::Network(network) => {
                    list.networks.entry(*network).or_default().push(index);
                    let lengths = &mut list.lengths[usize::from(!network.is_ipv4())];
                    if !lengths.contains(&network.length()) {
                        lengths.push(network.length());
                    }
                }
                AccessSubject::UserAgent(pattern) => {
                    texts.push(pattern.as_str());
                    agents.push(index);
                }
            }
        }
        if !texts.is_empty() {
            let mut builder = AhoCorasick::builder();
            // Standard semantics, because all matches are needed, also those within others.
            builder.ascii_case_insensitive(true).match_kind(MatchKind::Standard);
            list.agents = Some(AgentMatcher { texts: builder.build(&texts)?, rules: agents });
        }
        list.lengths.iter_mut().for_each(|lengths| lengths.sort_unstable_by(|a, b| b.cmp(a)));
        list.rules = rules.into_iter().map(Arc::new).collect();
        Ok(list)
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns how many rules there are, expired ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Decides about a request for an item. An allow rule wins over every block rule. Of several rules of a kind, one that
    /// names the user comes before one of a network, and that before one of a user agent; a longer prefix comes before
    /// a shorter one.
    #[must_use]
    pub fn decision(&self, item: &ItemId, requester: Requester<'_>, now: Millis) -> Decision {
        let mut block = None;
        for rule in self.matching(item, requester, now) {
            match rule.kind {
                AccessKind::Allow => return Decision::Allowed(rule),
                AccessKind::Block => block = block.or(Some(rule)),
            }
        }
        block.map_or(Decision::Neutral, Decision::Blocked)
    }

    /// Returns all rules in force that match, in the order of [`AccessList::decision`].
    pub fn matching(
        &self,
        item: &ItemId,
        requester: Requester<'_>,
        now: Millis,
    ) -> impl Iterator<Item = Arc<AccessRule>> {
        let mut found = Vec::new();
        if !self.is_empty() {
            found
                .extend(requester.user.and_then(|user| self.users.get(user)).into_iter().flatten());
            requester
                .address
                .into_iter()
                .for_each(|address| self.find_networks(address, &mut found));
            let agent = self.agents.as_ref().zip(requester.user_agent);
            agent.into_iter().for_each(|(agents, sent)| agents.find(sent, &mut found));
        }
        let applies = move |rule: &&Arc<AccessRule>| {
            rule.is_in_force(now) && rule.item.as_ref().is_none_or(|only| only == item)
        };
        let rules: Vec<_> =
            found.into_iter().map(|index| &self.rules[index]).filter(applies).cloned().collect();
        rules.into_iter()
    }

    /// Adds the rules of all networks that contain an address, the smallest network first.
    fn find_networks(&self, address: IpAddr, found: &mut Vec<usize>) {
        let address = address.to_canonical();
        for length in &self.lengths[usize::from(!address.is_ipv4())] {
            let network = Network::containing(address, *length);
            found.extend(
                network.and_then(|network| self.networks.get(&network)).into_iter().flatten(),
            );
        }
    }
}

impl AgentMatcher {
    fn find(&self, sent: &[u8], found: &mut Vec<usize>) {
        let from = found.len();
        let sent = &sent[..sent.len().min(MAX_AGENT)];
        let matches = self.texts.find_overlapping_iter(sent);
        for index in matches.map(|found| self.rules[found.pattern().as_usize()]) {
            if !found[from..].contains(&index) {
                found.push(index);
            }
        }
        found[from..].sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{NewAccessRule, RuleOrigin};
    use serde_json::json;

    fn list(rules: &[serde_json::Value]) -> AccessList {
        let rule = |json: &serde_json::Value| {
            let mut json = json.clone();
            json["reason"] = "test".into();
            let new: NewAccessRule = serde_json::from_value(json).unwrap();
            new.rule(None, RuleOrigin::Api, 0).unwrap()
        };
        AccessList::new(rules.iter().map(rule).collect()).unwrap()
    }

    fn decide(list: &AccessList, item: &str, user: &str, address: &str, agent: &str) -> String {
        let (item, user) = (ItemId::parse(item).unwrap(), UserId::parse(user).unwrap());
        let (user_agent, address) = (Some(agent.as_bytes()), address.parse().ok());
        let requester = Requester { user: Some(&user), address, user_agent };
        match list.decision(&item, requester, 1_000) {
            Decision::Neutral => "neutral".into(),
            Decision::Allowed(rule) => format!("allowed by {}", rule.subject),
            Decision::Blocked(rule) => format!("blocked by {}", rule.subject),
        }
    }

    #[test]
    fn users_networks_and_user_agents_are_blocked() {
        let list = list(&[
            json!({ "kind": "block", "userId": "kim" }),
            json!({ "kind": "block", "network": "203.0.113.0/24" }),
            json!({ "kind": "block", "network": "203.0.113.7" }),
            json!({ "kind": "block", "network": "2001:db8::/32" }),
            json!({ "kind": "block", "userAgent": "Python-Requests" }),
            json!({ "kind": "block", "userAgent": "headlesschrome" }),
        ]);
        let decide = |user, address, agent| decide(&list, "a", user, address, agent);
        assert_eq!(decide("lee", "198.51.100.1", "Mozilla/5.0"), "neutral");
        assert_eq!(decide("kim", "198.51.100.1", "x"), "blocked by user kim");
        assert_eq!(decide("lee", "203.0.113.9", "x"), "blocked by network 203.0.113.0/24");
        assert_eq!(decide("lee", "203.0.113.7", "x"), "blocked by network 203.0.113.7/32");
        assert_eq!(decide("lee", "::ffff:203.0.113.9", "x"), "blocked by network 203.0.113.0/24");
        assert_eq!(decide("lee", "203.0.114.1", "x"), "neutral");
        assert_eq!(decide("lee", "2001:db8:ffff::1", "x"), "blocked by network 2001:db8::/32");
        assert_eq!(decide("lee", "2001:db9::1", "x"), "neutral");
        let agent = "Mozilla/5.0 (X11) AppleWebKit/537.36 HeadlessChrome/120 Safari";
        assert_eq!(decide("lee", "", agent), "blocked by user agent headlesschrome");
        assert_eq!(
            decide("lee", "", "PYTHON-REQUESTS/2.31"),
            "blocked by user agent python-requests"
        );
        assert_eq!(
            decide("kim", "203.0.113.7", "curl"),
            "blocked by user kim",
            "the most exact rule is named"
        );
    }

    #[test]
    fn an_allow_rule_wins_over_every_block_rule() {
        let list = list(&[
            json!({ "kind": "block", "userId": "kim" }),
            json!({ "kind": "allow", "network": "198.51.100.0/24" }),
            json!({ "kind": "block", "network": "198.51.100.7" }),
            json!({ "kind": "allow", "userAgent": "monitor/1" }),
        ]);
        assert_eq!(
            decide(&list, "a", "kim", "198.51.100.7", "x"),
            "allowed by network 198.51.100.0/24"
        );
        assert_eq!(
            decide(&list, "a", "kim", "203.0.113.1", "Monitor/1"),
            "allowed by user agent monitor/1"
        );
        assert_eq!(decide(&list, "a", "kim", "203.0.113.1", "x"), "blocked by user kim");
    }

    #[test]
    fn a_rule_applies_to_its_item_and_until_its_expiry() {
        let list = list(&[
            json!({ "kind": "block", "userId": "kim", "itemId": "concert" }),
            json!({ "kind": "block", "userId": "lee", "expiresAt": "1970-01-01T00:00:01Z" }),
            json!({ "kind": "block", "userId": "park", "expiresAt": "1970-01-01T00:00:02Z" }),
        ]);
        assert_eq!(decide(&list, "concert", "kim", "", ""), "blocked by user kim");
        assert_eq!(decide(&list, "drop", "kim", "", ""), "neutral");
        assert_eq!(decide(&list, "drop", "lee", "", ""), "neutral", "expired at 1,000 ms");
        assert_eq!(decide(&list, "drop", "park", "", ""), "blocked by user park");
    }

    #[test]
    fn texts_within_texts_and_repeated_ones_are_found_once() {
        let list = list(&[
            json!({ "kind": "block", "userAgent": "abcabc" }),
            json!({ "kind": "block", "userAgent": "bcab" }),
            json!({ "kind": "allow", "userAgent": "cabc", "itemId": "other" }),
        ]);
        let item = ItemId::parse("a").unwrap();
        let agent = "abcabc".repeat(200);
        let requester = Requester { user_agent: Some(agent.as_bytes()), ..Requester::default() };
        assert_eq!(list.matching(&item, requester, 0).count(), 2);
        let late = format!("{}python-abcabc", "x".repeat(MAX_AGENT));
        let requester = Requester { user_agent: Some(late.as_bytes()), ..Requester::default() };
        assert_eq!(
            list.matching(&item, requester, 0).count(),
            0,
            "the rest of a long text is ignored"
        );
    }
}
