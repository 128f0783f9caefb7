//! The raw scripts against the cases of the line rules in `crates/domain`, so that Lua and Rust follow one rule.

use daegi_testkit::Redis;
use redis::{Script, Value};
use serde_json::Value as Json;

const CASES: &str = include_str!("../../../domain/cases/line_rules.json");

const NOW: u64 = 1_794_600_000_000;
const BASE: u64 = NOW * 64;
const SLICE: u64 = NOW / 15_000;

/// How many tickets wait above the base when the leader's round is tested: more than any quota of the cases.
const WAITING: u64 = 40;

fn key(index: usize) -> String {
    format!("{{tag}}key-{index}")
}

fn number(json: &Json, field: &str, default: i64) -> i64 {
    json.get(field).and_then(Json::as_i64).unwrap_or(default)
}

fn flag(json: &Json, field: &str, default: bool) -> &'static str {
    if json.get(field).and_then(Json::as_bool).unwrap_or(default) { "1" } else { "0" }
}

/// A time relative to `NOW`; 0 is not set.
fn time(relative: i64) -> String {
    if relative == 0 { "0".into() } else { NOW.saturating_add_signed(relative).to_string() }
}

/// Writes the item of a case, and tickets and entries as its counts say.
async fn write_case(server: &Redis, case: &Json) {
    let empty = Json::Null;
    let part = |name: &str| case.get(name).unwrap_or(&empty);
    let (item, policy, counts) = (part("item"), part("policy"), part("counts"));
    let opening = item.get("opening").unwrap_or(&empty);
    let opening_time = |field: &str| {
        Some(time(number(opening, field, 0))).filter(|time| time != "0").unwrap_or_default()
    };
    let optional = |field: &str| policy.get(field).map_or_else(String::new, Json::to_string);
    let mode = policy.get("mode").and_then(Json::as_str).unwrap_or("always");
    let adaptive = policy.get("pace");
    let per_minute = adaptive.map_or(0, |pace| number(&pace["adaptive"], "maxPerMinute", 0));
    let first_quota = if mode == "auto" { per_minute.unsigned_abs().div_ceil(60) } else { 0 };
    let pace_quota = item.get("paceQuota").map_or_else(String::new, Json::to_string);
    let run: String = server.command(&["INFO", "server"]).await.unwrap();
    let run = run.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap().trim().to_owned();
    let fields = [
        ("id", "concert".into()),
        ("removed", "0".into()),
        ("stock", number(item, "stock", 5).to_string()),
        ("enabled", flag(item, "enabled", true).into()),
        ("paused", flag(item, "paused", false).into()),
        ("recoveringUntil", time(number(item, "recoveringFor", 0))),
        ("behindUntil", time(number(item, "holdNewFor", 0))),
        ("heldUntil", time(number(item, "heldFor", 0))),
        ("through", number(counts, "directAdmissions", 0).to_string()),
        ("base", BASE.to_string()),
        ("tail", (BASE + WAITING).to_string()),
        ("run", run),
        ("mode", mode.into()),
        ("pace", adaptive.map_or_else(String::new, |pace| pace["adaptive"].to_string())),
        ("paceFirst", first_quota.to_string()),
        ("paceQuota", pace_quota),
        ("tokensPerTick", optional("tokensPerTick")),
        ("maxActive", optional("maxActive")),
        ("admitUpToStock", flag(policy, "admitUpToStock", true).into()),
        ("passTtlSeconds", "600".into()),
        ("graceSeconds", "0".into()),
        ("missedKeepSeconds", "300".into()),
        ("opening", if opening.is_null() { String::new() } else { "{}".into() }),
        ("lobbyAt", opening_time("lobbyIn")),
        ("closesAt", opening_time("closesIn")),
        (
            "openedAt",
            if flag(opening, "opened", false) == "1" { NOW.to_string() } else { String::new() },
        ),
        ("reveal", String::new()),
    ];
    server.command::<()>(&["FLUSHALL"]).await.unwrap();
    for (field, value) in &fields {
        server.command::<()>(&["HSET", &key(1), field, value]).await.unwrap();
    }
    let quota = number(case, "globalQuota", 10).to_string();
    server.command::<()>(&["HSET", &key(18), "tokenCountToMove", &quota]).await.unwrap();
    server.command::<()>(&["SET", &key(15), "7"]).await.unwrap();
    let expiry = NOW + 600_000;
    for entry in 0..number(counts, "usedSlots", 0) {
        let value = format!("{entry}:{NOW}:{expiry}");
        server
            .command::<()>(&["HSET", &key(6), &format!("entered-{entry}"), &value])
            .await
            .unwrap();
    }
    let below_base =
        number(counts, "queued", 0) > 0 && flag(counts, "reclaimedWaits", false) == "1";
    for ticket in 0..number(counts, "queued", 0) {
        let number = if below_base { BASE - 1 } else { BASE + 1 + ticket.unsigned_abs() };
        let user = format!("queued-{ticket}");
        server.command::<()>(&["ZADD", &key(2), &number.to_string(), &user]).await.unwrap();
    }
}

async fn call(server: &Redis, name: &str, args: &[String]) -> Value {
    let script = Script::new(&daegi_store::script_text(name).unwrap());
    let mut invocation = script.prepare_invoke();
    // The hash of the standard lane's line is that of the item.
    for index in (1..=21).chain([1]).chain(23..=26) {
        invocation.key(key(index));
    }
    // The standard lane of an item without other lanes.
    invocation.arg("0").arg("0");
    for arg in args {
        invocation.arg(arg);
    }
    invocation.invoke_async(&mut server.connection().await.unwrap()).await.unwrap()
}

/// Joins a new user; returns the tag of the reply.
async fn join(server: &Redis) -> String {
    let args = [&NOW.to_string(), "10", "45000", "", "1000", "0", "600000", "", "new"];
    let reply = call(server, "join", &args.map(str::to_owned)).await;
    let reply: Vec<(String, u64, u64, u64, u64, u64)> = redis::from_redis_value(reply).unwrap();
    reply[0].0.clone()
}

/// Runs a round of the leader; returns how many tickets it admitted.
async fn admit(server: &Redis, quota: u64) -> u64 {
    let (now, first) = (NOW.to_string(), (SLICE - 1).to_string());
    let args = ["7", &quota.to_string(), "1000", &now, "100", &first, "0", "", "0"];
    let reply = call(server, "admit", &args.map(str::to_owned)).await;
    let reply: Vec<u64> = redis::from_redis_value(reply).unwrap();
    reply[0]
}

#[tokio::test]
async fn the_scripts_follow_every_case_of_the_line_rules() {
    let Some(server) = daegi_testkit::redis_or_skip().await else { return };
    let cases: Vec<Json> = serde_json::from_str(CASES).unwrap();
    assert!(cases.len() > 10);
    for case in &cases {
        let (name, expect) = (&case["name"], &case["expect"]);
        write_case(&server, case).await;
        let tag = match (expect["join"].as_str().unwrap(), expect["admitsDirectly"] == true) {
            ("disabled", _) => "d",
            ("soldOut", _) => "s",
            ("notOpenYet", _) => "o",
            ("lineClosed", _) => "z",
            (_, true) => "E",
            (_, false) => "W",
        };
        assert_eq!(join(&server).await, tag, "{name}: join");

        write_case(&server, case).await;
        let empty = Json::Null;
        let part = |name: &str| case.get(name).unwrap_or(&empty);
        let queued = number(part("counts"), "queued", 0).unsigned_abs();
        for ticket in queued..WAITING {
            let number = (BASE + 1 + ticket).to_string();
            let user = format!("waiting-{ticket}");
            server.command::<()>(&["ZADD", &key(2), &number, &user]).await.unwrap();
        }
        let holds_new = number(part("item"), "holdNewFor", 0) > 0;
        let reclaimed = flag(part("counts"), "reclaimedWaits", false) == "1";
        let admissible = match holds_new {
            true => {
                if reclaimed {
                    queued
                } else {
                    0
                }
            }
            false => WAITING,
        };
        let quota = expect["quota"].as_u64().unwrap();
        let direct = number(part("counts"), "directAdmissions", 0).unsigned_abs();
        let free = expect["freeCapacity"].as_u64().unwrap();
        let expected = match expect["mayAdmit"] == true {
            true => quota.saturating_sub(direct).min(free).min(admissible),
            false => 0,
        };
        assert_eq!(admit(&server, quota).await, expected, "{name}: admitted");
    }
}
