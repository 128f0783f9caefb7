//! Items that are created if they are absent.

use std::path::Path;

use daegi_scheduler::Seeds;

use crate::harness::{self, START, item};

const CSV: &str = "itemId,itemName,remainCount,waitingQueueEnabled\n\
    concert,\"Friday, 8 pm\",100,true\n\
    match, The match ,0,false\n";

const JSON: &str = r#"[
    {"itemId":"concert","itemName":"Friday, 8 pm","remainCount":100},
    {"itemId":"match","itemName":"The match","remainCount":0,"waitingQueueEnabled":false,
     "policy":{"maxActive":7}}
]"#;

fn error_of(text: &str) -> String {
    Seeds::parse(text).unwrap_err().to_string()
}

#[tokio::test]
async fn csv_and_json_create_the_same_items() {
    for (text, max_active) in [(CSV, None), (JSON, Some(7))] {
        let store = harness::store(1);
        let seeds = Seeds::parse(text).unwrap();
        assert_eq!(seeds.create_missing(&*store, START).await.unwrap(), 2);
        let concert = store.item(&item("concert")).await.unwrap().unwrap();
        assert_eq!((concert.name.as_str(), concert.stock), ("Friday, 8 pm", 100));
        assert!(concert.enabled);
        let game = store.item(&item("match")).await.unwrap().unwrap();
        assert_eq!((game.name.as_str(), game.stock), ("The match", 0));
        assert_eq!((game.enabled, game.policy.max_active), (false, max_active));
    }
}

#[tokio::test]
async fn existing_items_are_not_changed() {
    let store = harness::store(1);
    let before = harness::put(&*store, "concert", 5, None).await;
    let seeds = Seeds::parse(CSV).unwrap();
    assert_eq!(seeds.create_missing(&*store, START).await.unwrap(), 1);
    assert_eq!(store.item(&item("concert")).await.unwrap(), Some(before));
    assert_eq!(seeds.create_missing(&*store, START).await.unwrap(), 0);
}

#[test]
fn the_last_column_may_be_missing_and_so_may_all_rows() {
    assert!(Seeds::parse("itemId,itemName,remainCount\na,A,1\n").is_ok());
    assert_eq!(Seeds::parse("itemId,itemName,remainCount\n").unwrap(), Seeds::default());
    assert_eq!(Seeds::parse("[]").unwrap(), Seeds::default());
}

#[test]
fn an_invalid_csv_is_rejected_with_its_line() {
    let head = "itemId,itemName,remainCount,waitingQueueEnabled\nok,Ok,1,true\n";
    for (row, wanted) in [
        ("a,A,-1,true", "line 3: remainCount: "),
        ("a,A,many,true", "line 3: remainCount: "),
        ("a,A,1,maybe", "line 3: waitingQueueEnabled: "),
        ("a b,A,1,true", "line 3: "),
        ("a,,1,true", "line 3: "),
        ("a,A,1", "line 3: 3 columns, the header has 4"),
        ("~daegi.x,A,1,true", "reserved"),
        ("ok,Again,1,true", "line 3: item ok is there twice"),
    ] {
        let error = error_of(&format!("{head}{row}\n"));
        assert!(error.contains(wanted), "{row}: {error}");
    }
    assert!(error_of("").contains("header is missing"));
    assert!(error_of("itemId,itemName,remainCount,colour\na,A,1,red\n").contains("colour"));
    assert!(error_of("itemId,itemName\na,A\n").contains("remainCount"));
}

#[test]
fn an_invalid_json_is_rejected_with_its_entry() {
    let seed =
        |rest: &str| format!(r#"[{{"itemId":"ok","itemName":"Ok","remainCount":1}},{rest}]"#);
    for (entry, wanted) in [
        (r#"{"itemId":"a","itemName":"A"}"#, "entry 2: missing field `remainCount`"),
        (r#"{"itemId":"a","itemName":"A","remainCount":1.5}"#, "entry 2: "),
        (r#"{"itemId":"a","itemName":"A","remainCount":1,"color":1}"#, "color"),
        (r#"{"itemId":"a/b","itemName":"A","remainCount":1}"#, "entry 2: itemId contains '/'"),
        (
            r#"{"itemId":"a","itemName":"A","remainCount":1,"policy":{"maxActive":0}}"#,
            "entry 2: maxActive is 0",
        ),
        (r#"{"itemId":"ok","itemName":"A","remainCount":1}"#, "entry 2: item ok is there twice"),
        ("7", "entry 2: "),
    ] {
        let error = error_of(&seed(entry));
        assert!(error.contains(wanted), "{entry}: {error}");
    }
    assert!(error_of("[{").contains("line 1"));
}

#[test]
fn an_error_names_its_file() {
    let error_of =
        |path: &Path| format!("{:#}", anyhow::Error::new(Seeds::read(path).unwrap_err()));
    let missing = error_of(Path::new("no-such-file.csv"));
    assert!(missing.starts_with("no-such-file.csv cannot be read: "), "{missing}");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[7]").unwrap();
    let invalid = error_of(file.path());
    let wanted = format!("{}: entry 1: ", file.path().display());
    assert!(invalid.starts_with(&wanted), "{invalid}");
    assert_eq!(invalid.matches("entry 1").count(), 1, "named once: {invalid}");
}
