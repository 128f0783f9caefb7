//! Raw scripts on a real Redis: which keys they touch, and what they return.

use redis::{AsyncCommands, Script, Value};

fn script(name: &str) -> Script {
    Script::new(&daegi_store::script_text(name).unwrap())
}

/// The generation that the process knows, and the id for a partition without one.
const GENERATION: &str = "00000000000000aa";
const FRESH: &str = "00000000000000bb";

const NOW: u64 = 1_794_600_000_000;
const BASE: u64 = NOW * 64;
/// The liveness slice of `NOW`.
const SLICE: u64 = NOW / 15_000;

/// Keys with arbitrary names, so that a script that builds a key itself fails the test. The hash of the standard
/// lane's line is that of the item.
fn keys() -> Vec<String> {
    let mut keys: Vec<_> = (1..=27).map(|index| format!("{{tag}}key-{index}")).collect();
    keys[21] = keys[0].clone();
    keys
}

async fn call(
    connection: &mut redis::aio::MultiplexedConnection,
    script: &Script,
    args: &[&str],
) -> redis::RedisResult<Value> {
    let mut invocation = script.prepare_invoke();
    keys().iter().for_each(|key| {
        invocation.key(key);
    });
    // The standard lane of an item without other lanes.
    ["0", "0"].iter().chain(args).for_each(|arg| {
        invocation.arg(*arg);
    });
    invocation.invoke_async(connection).await
}

/// Creates an item and joins two users, on raw keys.
async fn join_two(connection: &mut redis::aio::MultiplexedConnection) {
    let now = NOW.to_string();
    let mut put = vec!["0", &now, GENERATION, FRESH, "", "0", "18"];
    put.extend(["mode", "always", "tokensPerTick", "", "maxActive", "", "admitUpToStock", "1"]);
    put.extend(["passTtlSeconds", "600", "graceSeconds", "60", "missedKeepSeconds", "300"]);
    put.extend(["onRejoin", "keep", "entryUrl", ""]);
    put.extend(["concert", "Friday", "10", "1", "", "", "", "0"]);
    let put_items = script("put_items");
    let (items, generation, item) = (&keys()[15], &keys()[16], &keys()[0]);
    let mut put_items = put_items.key(items);
    put_items.key(&keys()[11]);
    put_items.key(generation).key("{tag}replays").key(&keys()[23]);
    let created: Vec<String> =
        put_items.key(item).arg(&put).invoke_async(connection).await.unwrap();
    assert_eq!(created, ["created"]);
    let mut join = vec![now.as_str(), "10", "45000", "", "1000", "120000", "600000", ""];
    join.extend(["kim", "lee"]);
    let joined = call(connection, &script("join"), &join).await.unwrap();
    let joined: Vec<(String, u64, u64, u64, u64, u64)> = redis::from_redis_value(joined).unwrap();
    assert_eq!(joined, [("W".to_owned(), 2, BASE + 1, 1, 0, 0)]);
}

/// Admits both users in term 7.
async fn admit_two(connection: &mut redis::aio::MultiplexedConnection) -> Value {
    let () = connection.set(&keys()[14], "7").await.unwrap();
    let args = admit_args("7");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    call(connection, &script("admit"), &args).await.unwrap()
}

fn admit_args(epoch: &str) -> [String; 9] {
    let text = |number: u64| number.to_string();
    let round = [text(NOW), "500".into(), text(SLICE - 4), "0".into()];
    let [now, users, first_slice, min_interval] = round;
    [
        epoch.into(),
        "5".into(),
        "100".into(),
        now,
        users,
        first_slice,
        min_interval,
        String::new(),
        "0".into(),
    ]
}

#[tokio::test]
async fn scripts_touch_only_the_keys_they_are_given() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let mut connection = server.connection().await.unwrap();
    join_two(&mut connection).await;
    let (now, chunk) = (NOW.to_string(), "500");
    admit_two(&mut connection).await;
    let number = (BASE + 1).to_string();
    let mut close = vec![now.as_str(), "kim", &number, "C", "entered", "45000"];
    close.extend([GENERATION, FRESH, "0", "600000"]);
    call(&mut connection, &script("end_ticket"), &close).await.unwrap();
    let lost = (BASE - 9).to_string();
    let resolve = [now.as_str(), "45000", GENERATION, FRESH, "lee", &number, "choi", &lost];
    call(&mut connection, &script("resolve"), &resolve).await.unwrap();
    let until = (NOW + 1000).to_string();
    let reenter = [now.as_str(), "45000", "choi", &lost, &now, &until, GENERATION, FRESH];
    call(&mut connection, &script("restore_entry"), &reenter).await.unwrap();
    let note = [now.as_str(), "choi", &lost, "C"];
    call(&mut connection, &script("note_ended"), &note).await.unwrap();
    let expire = ["7", now.as_str(), chunk, "concert", "45000"];
    call(&mut connection, &script("expire"), &expire).await.unwrap();
    call(&mut connection, &script("reset"), &[&now]).await.unwrap();

    let given = keys();
    let found: Vec<String> = connection.keys("*").await.unwrap();
    assert!(!found.is_empty());
    for key in found {
        assert!(given.contains(&key), "a script used the key {key}, which it did not get");
    }
}

#[tokio::test]
async fn a_stale_epoch_is_refused_and_changes_nothing() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let mut connection = server.connection().await.unwrap();
    join_two(&mut connection).await;
    let () = connection.set(&keys()[14], "7").await.unwrap();
    for epoch in ["6", "8", ""] {
        let args = admit_args(epoch);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let refused = call(&mut connection, &script("admit"), &args).await.unwrap_err();
        assert_eq!(refused.code(), Some("STALE"), "epoch {epoch:?}: {refused}");
    }
    let waiting: u64 = connection.zcard(&keys()[1]).await.unwrap();
    let batches: u64 = connection.xlen(&keys()[12]).await.unwrap();
    assert_eq!((waiting, batches), (2, 0));
}

#[tokio::test]
async fn entry_and_event_are_written_in_one_step() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let mut connection = server.connection().await.unwrap();
    join_two(&mut connection).await;
    let answer = admit_two(&mut connection).await;
    let answer: Vec<u64> = redis::from_redis_value(answer).unwrap();
    assert_eq!(answer[..5], [2, 0, 3, 0, 0], "admitted, missed, remaining, more, outbox full");
    let entered: u64 = connection.hlen(&keys()[5]).await.unwrap();
    let batches: u64 = connection.xlen(&keys()[12]).await.unwrap();
    let events: u64 = connection.get(&keys()[13]).await.unwrap();
    assert_eq!((entered, batches, events), (2, 1, 2), "two entries, one outbox record, two events");
}

#[tokio::test]
async fn liveness_is_stored_as_long_as_the_policy_looks_back() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let mut connection = server.connection().await.unwrap();
    join_two(&mut connection).await;
    // Grace and keeping, in seconds, and how long a slice lives at least and at most.
    for (policy, lives) in [(("60", "300"), 360..=390), (("600", "900"), 1500..=1530)] {
        let limits = [("graceSeconds", policy.0), ("missedKeepSeconds", policy.1)];
        let () = connection.hset_multiple(&keys()[0], &limits).await.unwrap();
        call(&mut connection, &script("mark_seen"), &["0", "\u{1}"]).await.unwrap();
        let seconds: i64 = connection.ttl(&keys()[24]).await.unwrap();
        assert!(lives.contains(&seconds), "{policy:?}: {seconds} s");
    }
}

#[tokio::test]
async fn an_expiry_stored_per_user_by_an_older_release_is_a_group_of_one() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let mut connection = server.connection().await.unwrap();
    join_two(&mut connection).await;
    admit_two(&mut connection).await;
    let groups: Vec<String> = connection.zrange(&keys()[6], 0, -1).await.unwrap();
    assert_eq!(groups, ["kim lee"]);
    let () = connection.del(&keys()[6]).await.unwrap();
    let until = NOW + 600_000;
    let () = connection.zadd_multiple(&keys()[6], &[(until, "kim"), (until, "lee")]).await.unwrap();
    let expire = ["7", &until.to_string(), "100", "concert", "45000"];
    let expired = call(&mut connection, &script("expire"), &expire).await.unwrap();
    let expired: Vec<u64> = redis::from_redis_value(expired).unwrap();
    let names = "expired, abandoned, more, active, front above base, lanes";
    assert_eq!(expired, [2, 0, 0, 0, 1, 0], "{names}");
    assert!(!connection.exists::<_, bool>(&keys()[6]).await.unwrap());
}

#[tokio::test]
async fn an_inactive_line_deletes_groups_whose_entries_have_ended() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let mut connection = server.connection().await.unwrap();
    join_two(&mut connection).await;
    admit_two(&mut connection).await;
    let now = NOW.to_string();
    for (who, number) in [("kim", BASE + 1), ("lee", BASE + 2)] {
        let close = [
            now.as_str(),
            who,
            &number.to_string(),
            "C",
            "entered",
            "45000",
            GENERATION,
            FRESH,
            "0",
            "600000",
        ];
        call(&mut connection, &script("end_ticket"), &close).await.unwrap();
    }
    assert!(connection.exists::<_, bool>(&keys()[6]).await.unwrap());
    let expire = ["7", &now, "100", "concert", "45000"];
    call(&mut connection, &script("expire"), &expire).await.unwrap();
    assert!(!connection.exists::<_, bool>(&keys()[6]).await.unwrap());
}

#[tokio::test]
async fn the_latest_sixteen_lost_generations_are_stored() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let mut connection = server.connection().await.unwrap();
    for lost in 0..20 {
        let (now, known) = ((NOW + lost).to_string(), format!("{lost:016x}"));
        let resolve = [now.as_str(), "45000", &known, FRESH, "kim", "1"];
        call(&mut connection, &script("resolve"), &resolve).await.unwrap();
    }
    let id: String = connection.hget(&keys()[16], "id").await.unwrap();
    let lost: String = connection.hget(&keys()[16], "lost").await.unwrap();
    let at: u64 = connection.hget(&keys()[16], "lossAt").await.unwrap();
    let latest: String = (4..20).map(|lost| format!(",{lost:016x}")).collect();
    assert_eq!((id.as_str(), lost, at), (FRESH, latest, NOW + 19));
}
