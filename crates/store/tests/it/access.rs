//! The block and allow list, on both stores.

use daegi_domain::{
    AccessEvent, AccessEventKind, AccessRule, ItemId, NewAccessRule, RuleOrigin, UserId,
};
use daegi_store::{AccessChange, AccessLog, AccessOutcome, MAX_ACCESS_EVENTS, MAX_ACCESS_RULES};

use crate::support::{START, both};

/// A rule that blocks this user.
pub(crate) fn rule(user: &str, reason: &str) -> AccessRule {
    let json = format!(r#"{{"kind":"block","userId":"{user}","reason":"{reason}"}}"#);
    let new: NewAccessRule = serde_json::from_str(&json).unwrap();
    new.rule(Some("kim".into()), RuleOrigin::Api, START).unwrap()
}

pub(crate) fn added(rule: AccessRule) -> (AccessRule, AccessEvent) {
    let event = AccessEvent::of_change(AccessEventKind::RuleAdded, &rule, None, START);
    (rule, event)
}

pub(crate) fn put(rules: impl IntoIterator<Item = AccessRule>) -> AccessChange {
    AccessChange { put: rules.into_iter().map(added).collect(), ..AccessChange::default() }
}

pub(crate) fn remove(rules: impl IntoIterator<Item = AccessRule>) -> AccessChange {
    let event =
        |rule: &AccessRule| AccessEvent::of_change(AccessEventKind::RuleRemoved, rule, None, START);
    let remove = rules.into_iter().map(|rule| (rule.id(), event(&rule))).collect();
    AccessChange { remove, ..AccessChange::default() }
}

fn changed(revision: u64, added: u32, replaced: u32, removed: u32) -> AccessOutcome {
    AccessOutcome::Changed { revision, added, replaced, removed }
}

#[tokio::test]
async fn every_change_of_the_list_has_another_revision_and_is_recorded() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        assert_eq!(store.access_revision().await.unwrap(), 0, "{name}");
        assert_eq!(store.access_rules().await.unwrap().rules, [], "{name}");
        let (kim, lee) = (rule("kim", "a"), rule("lee", "b"));
        let both = put([kim.clone(), lee.clone()]);
        let outcome = store.change_access(&both, START).await.unwrap();
        assert_eq!(outcome, changed(START, 2, 0, 0), "{name}");
        // Within the same millisecond, and with a clock that goes back.
        let again = put([rule("kim", "another reason")]);
        let outcome = store.change_access(&again, START - 5).await.unwrap();
        assert_eq!(outcome, changed(START + 1, 0, 1, 0), "{name}");
        let gone = remove([lee.clone(), rule("park", "never added")]);
        let outcome = store.change_access(&gone, START + 90).await.unwrap();
        assert_eq!(outcome, changed(START + 90, 0, 0, 1), "{name}");
        let nothing = store.change_access(&gone, START + 95).await.unwrap();
        assert_eq!(nothing, changed(START + 90, 0, 0, 0), "{name}");
        assert_eq!(store.access_revision().await.unwrap(), START + 90, "{name}");
        let list = store.access_rules().await.unwrap();
        assert_eq!((list.revision, list.unreadable), (START + 90, 0), "{name}");
        assert_eq!(list.rules, [rule("kim", "another reason")], "{name}");
        let events = store.access_events(AccessLog::Changes, 10).await.unwrap();
        let users: Vec<_> = events
            .iter()
            .map(|event| (event.event, event.rule.user_id.as_ref().unwrap().as_str()))
            .collect();
        let kinds = [
            (AccessEventKind::RuleRemoved, "lee"),
            (AccessEventKind::RuleAdded, "kim"),
            (AccessEventKind::RuleAdded, "lee"),
            (AccessEventKind::RuleAdded, "kim"),
        ];
        assert_eq!(users, kinds, "{name}");
    }
}

#[tokio::test]
async fn the_contact_changes_the_revision_and_is_removed_again() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        for contact in [Some("https://shop.example/help".to_owned()), None] {
            let before = store.access_revision().await.unwrap();
            let change =
                AccessChange { contact_url: Some(contact.clone()), ..AccessChange::default() };
            store.change_access(&change, START).await.unwrap();
            let list = store.access_rules().await.unwrap();
            assert_eq!(list.contact_url, contact, "{name}");
            assert!(list.revision > before, "{name}");
        }
    }
}

#[tokio::test]
async fn a_full_list_takes_no_rule_until_one_is_removed() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let users: Vec<_> = (0..MAX_ACCESS_RULES).map(|n| rule(&format!("u{n}"), "r")).collect();
        for chunk in users.chunks(500) {
            store.change_access(&put(chunk.to_vec()), START).await.unwrap();
        }
        let full = store.change_access(&put([rule("one-more", "r")]), START).await.unwrap();
        assert_eq!(full, AccessOutcome::Full, "{name}");
        let list = store.access_rules().await.unwrap();
        assert_eq!(list.rules.len(), MAX_ACCESS_RULES as usize, "{name}");
        let replaced = store.change_access(&put([rule("u5", "x")]), START).await.unwrap();
        assert!(matches!(replaced, AccessOutcome::Changed { replaced: 1, .. }), "{name}");
        let swapped =
            AccessChange { remove: remove([rule("u7", "r")]).remove, ..put([rule("new", "r")]) };
        let swapped = store.change_access(&swapped, START).await.unwrap();
        assert!(matches!(swapped, AccessOutcome::Changed { added: 1, removed: 1, .. }), "{name}");
        let events = store.access_events(AccessLog::Changes, u32::MAX).await.unwrap();
        assert_eq!(events.len(), MAX_ACCESS_EVENTS as usize, "{name}: the log is bounded");
        assert_eq!(events[0].rule.user_id, Some(UserId::parse("new").unwrap()), "{name}");
    }
}

#[tokio::test]
async fn logs_are_bounded_separately() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let event = |kind, user: String| {
            let (user, item) = (UserId::parse(&user).unwrap(), ItemId::parse("a").unwrap());
            AccessEvent::of_user(kind, &rule("kim", "r"), user, item, START)
        };
        let ended = event(AccessEventKind::TicketEnded, "lee".into());
        store.append_access_events(AccessLog::Tickets, std::slice::from_ref(&ended)).await.unwrap();
        let joins: Vec<_> = (0..MAX_ACCESS_EVENTS + 5)
            .map(|n| event(AccessEventKind::JoinRefused, format!("u{n}")))
            .collect();
        for chunk in joins.chunks(500) {
            store.append_access_events(AccessLog::Joins, chunk).await.unwrap();
        }
        store.append_access_events(AccessLog::Joins, &[]).await.unwrap();
        let read = store.access_events(AccessLog::Joins, 2).await.unwrap();
        assert_eq!(read, [joins[10_004].clone(), joins[10_003].clone()], "{name}");
        let all = store.access_events(AccessLog::Joins, u32::MAX).await.unwrap();
        assert_eq!((all.len(), all.last()), (10_000, Some(&joins[5])), "{name}");
        assert_eq!(store.access_events(AccessLog::Tickets, 9).await.unwrap(), [ended], "{name}");
    }
}

/// Tests that run again on Sentinel and Cluster.
pub(crate) const ALL_TOPOLOGIES: &[fn()] = &[
    every_change_of_the_list_has_another_revision_and_is_recorded,
    the_contact_changes_the_revision_and_is_removed_again,
];
