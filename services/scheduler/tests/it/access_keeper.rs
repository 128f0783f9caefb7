//! The leader keeps the block list: its file, expired rules, and a store that lost it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use daegi_domain::{AccessEvent, AccessEventKind, AccessRule, NewAccessRule, RuleOrigin, rfc3339};
use daegi_runtime::Clock;
use daegi_scheduler::{AccessKeeper, Leadership};
use daegi_store::{AccessChange, AccessLog, MemoryStore, SharedStore};
use serde_json::{Value, json};

use crate::harness::{self, START};

const CSV: &str = "kind,userId,network,userAgent,itemId,reason,expiresAt\n\
    block,kim,,,,joins too often,\n\
    block,,203.0.113.0/24,,concert,\"a farm, known\",2099-01-01T00:00:00Z\n\
    allow,,,probe/1,,monitoring,\n";

struct Fixture {
    store: SharedStore,
    clock: Clock,
    keeper: AccessKeeper,
    file: tempfile::NamedTempFile,
    /// The next time of change of the file, because two writes may be within the resolution of the file system.
    changed_at: SystemTime,
}

impl Fixture {
    fn new(store: SharedStore) -> Self {
        let (clock, file) = (Clock::manual(START), tempfile::NamedTempFile::new().unwrap());
        let path = Some(file.path().to_owned());
        let leadership = Arc::new(Leadership::new());
        let keeper = AccessKeeper::new(store.clone(), clock.clone(), leadership, path);
        Self { store, clock, keeper, file, changed_at: SystemTime::UNIX_EPOCH }
    }

    fn write(&mut self, text: &str) {
        std::fs::write(self.file.path(), text).unwrap();
        self.changed_at += Duration::from_secs(1);
        let file = std::fs::File::options().write(true).open(self.file.path()).unwrap();
        file.set_modified(self.changed_at).unwrap();
    }

    /// Returns the subjects of the list after one step of the leader.
    async fn step(&mut self) -> Vec<String> {
        // A file that cannot be used keeps its last rules.
        let _ = self.keeper.read_file();
        self.keeper.keep().await.unwrap();
        self.subjects().await
    }

    async fn subjects(&self) -> Vec<String> {
        let rules = self.store.access_rules().await.unwrap().rules;
        let mut subjects: Vec<_> = rules.iter().map(ToString::to_string).collect();
        subjects.sort();
        subjects
    }

    async fn add(&self, rule: &AccessRule) {
        let event = AccessEvent::of_change(AccessEventKind::RuleAdded, rule, None, START);
        let change = AccessChange { put: vec![(rule.clone(), event)], ..AccessChange::default() };
        self.store.change_access(&change, self.clock.now_ms()).await.unwrap();
    }

    async fn last_audit(&self) -> Value {
        let entries = self.store.read_audit(1).await.unwrap();
        entries.first().map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
    }
}

fn rule(fields: Value) -> AccessRule {
    let mut json = json!({ "kind": "block", "reason": "test" });
    json.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let new: NewAccessRule = serde_json::from_value(json).unwrap();
    new.rule(None, RuleOrigin::Api, START).unwrap()
}

#[tokio::test]
async fn the_rules_of_the_file_come_and_go_with_it() {
    let mut fixture = Fixture::new(harness::store(1));
    fixture.write(CSV);
    fixture.add(&rule(json!({ "userId": "lee" }))).await;
    let all = [
        "allow user agent probe/1",
        "block network 203.0.113.0/24",
        "block user kim",
        "block user lee",
    ];
    assert_eq!(fixture.step().await, all);
    assert_eq!(fixture.last_audit().await["to"], json!({ "addedFromFile": 3 }));
    let revision = fixture.store.access_revision().await.unwrap();
    assert_eq!(fixture.step().await, all);
    assert_eq!(fixture.store.access_revision().await.unwrap(), revision, "nothing changed");
    fixture.write(r#"[{"kind":"block","userId":"kim","reason":"another reason"}]"#);
    assert_eq!(
        fixture.step().await,
        ["block user kim", "block user lee"],
        "rules of operators stay"
    );
    let audit = json!({ "addedFromFile": 1, "removedWithFile": 2 });
    assert_eq!(fixture.last_audit().await["to"], audit);
}

#[tokio::test]
async fn an_invalid_or_missing_file_keeps_its_last_rules_and_is_reported() {
    let mut fixture = Fixture::new(harness::store(1));
    fixture.write(CSV);
    let all = fixture.step().await;
    fixture.write("kind,userId,reason\nblock,lee,ok\nblock,,no subject\n");
    let error = fixture.keeper.read_file().unwrap_err().to_string();
    assert!(error.contains("line 3: a rule has exactly one of"), "{error}");
    assert_eq!(fixture.step().await, all);
    fixture.write("kind,userId,network,reason\nblock,,10.0.0.0/33,r\n");
    let error = fixture.keeper.read_file().unwrap_err().to_string();
    assert!(error.contains("line 2: ") && error.contains("network must be"), "{error}");
    let path = fixture.file.path().to_owned();
    std::fs::remove_file(Path::new(&path)).unwrap();
    let error = fixture.keeper.read_file().unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
    assert_eq!(fixture.step().await, all);
    fixture.write("kind,userId,reason\nblock,lee,back\n");
    assert_eq!(fixture.step().await, ["block user lee"], "a valid file is applied again");
}

#[tokio::test]
async fn expired_rules_disappear_and_stay_in_the_history() {
    let mut fixture = Fixture::new(harness::store(1));
    fixture.write("[]");
    fixture.add(&rule(json!({ "userId": "lee", "expiresAt": rfc3339(START + 5_000) }))).await;
    fixture.add(&rule(json!({ "userId": "kim" }))).await;
    assert_eq!(fixture.step().await, ["block user kim", "block user lee"]);
    fixture.clock.advance(Duration::from_secs(5));
    assert_eq!(fixture.step().await, ["block user kim"]);
    let events = fixture.store.access_events(AccessLog::Changes, 1).await.unwrap();
    assert_eq!(events[0].event, AccessEventKind::RuleExpired);
    assert_eq!(events[0].rule.user_id.as_ref().unwrap().as_str(), "lee");
    assert_eq!(fixture.last_audit().await["to"], json!({ "expired": 1 }));
}

#[tokio::test]
async fn the_leader_restores_a_list_that_the_store_lost() {
    let settings = daegi_domain::Settings { token_count_to_move: 1, tick_ms: 1000 };
    let memory = Arc::new(MemoryStore::new(4, settings));
    let mut fixture = Fixture::new(memory.clone());
    fixture.write(CSV);
    fixture.add(&rule(json!({ "userId": "lee" }))).await;
    let all = fixture.step().await;
    let replica = memory.image();
    fixture.clock.advance(Duration::from_secs(1));
    fixture.add(&rule(json!({ "userId": "park" }))).await;
    let newer = fixture.step().await;
    assert_ne!(all, newer);
    for lost in [None, Some(replica)] {
        memory.restore(lost);
        assert_ne!(fixture.subjects().await, newer);
        assert_eq!(fixture.step().await, newer);
    }
}
