//! A crowd with known shares on a fleet: operators see these shares, from every replica and after a restart, and
//! Redis has nothing that identifies a visitor.

use std::time::Duration;

use daegi_testkit::{Redis, eventually};
use redis::Value as RedisValue;
use reqwest::Method;
use serde_json::{Value, json};

use crate::processes::Fleet;

const USERS: usize = 40;

/// What a request of the crowd has that identifies its sender, and must not be stored.
struct Identity {
    user: String,
    address: String,
    user_agent: String,
    languages: String,
}

impl Identity {
    fn new(n: usize) -> Self {
        let device = match n % 4 {
            0 => "Windows NT 10.0; Win64; x64",
            _ => "Linux; Android 14; K",
        };
        let mobile = if n.is_multiple_of(4) { "" } else { "Mobile " };
        Self {
            user: format!("visitor-{n}@example"),
            address: format!("203.0.113.{n}"),
            user_agent: format!(
                "Mozilla/5.0 ({device}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.7.{n}.1 {mobile}Safari/537.36"
            ),
            languages: format!("ko-KR,en-US;q=0.7{n:02}"),
        }
    }

    /// What must be in no key and no value.
    fn texts(&self) -> [String; 3] {
        let build = self.user_agent.split("131.7").nth(1).unwrap().split(' ').next().unwrap();
        [
            self.address.clone(),
            format!("131.7{build}"),
            self.languages.split(',').next_back().unwrap().to_owned(),
        ]
    }
}

/// Everything that Redis stores: every key, with all bytes of its value.
async fn dump(redis: &Redis) -> Vec<(String, Vec<u8>)> {
    let keys: Vec<String> = redis.command(&["KEYS", "*"]).await.unwrap();
    let mut all = Vec::new();
    for key in keys {
        let kind: String = redis.command(&["TYPE", &key]).await.unwrap();
        let read: &[&str] = match kind.as_str() {
            "string" => &["GET", &key],
            "hash" => &["HGETALL", &key],
            "list" => &["LRANGE", &key, "0", "-1"],
            "set" => &["SMEMBERS", &key],
            "zset" => &["ZRANGE", &key, "0", "-1"],
            "stream" => &["XRANGE", &key, "-", "+"],
            other => panic!("{key} is a {other}"),
        };
        let mut bytes = Vec::new();
        collect(&redis.command(read).await.unwrap(), &mut bytes);
        all.push((key, bytes));
    }
    all
}

fn collect(value: &RedisValue, bytes: &mut Vec<u8>) {
    match value {
        RedisValue::BulkString(text) => bytes.extend(text),
        RedisValue::SimpleString(text) => bytes.extend(text.as_bytes()),
        RedisValue::Array(values) | RedisValue::Set(values) => {
            values.iter().for_each(|value| collect(value, bytes));
        }
        RedisValue::Map(pairs) => pairs.iter().for_each(|(key, value)| {
            collect(key, bytes);
            collect(value, bytes);
        }),
        RedisValue::Int(number) => bytes.extend(number.to_string().as_bytes()),
        _ => {}
    }
    bytes.push(b'\n');
}

/// The keys whose name or value contains a text.
fn found<'a>(stored: &'a [(String, Vec<u8>)], text: &str) -> Vec<&'a str> {
    let contains = |value: &[u8]| value.windows(text.len()).any(|window| window == text.as_bytes());
    let matches = stored.iter().filter(|(key, value)| key.contains(text) || contains(value));
    matches.map(|(key, _)| key.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn shown_shares_are_those_of_the_crowd_and_nothing_personal_is_stored_for_them() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let fleet = Fleet::new(&redis)
        .env("DAEGI_TRUSTED_PROXIES", "127.0.0.0/8")
        .env("DAEGI_SOURCE_JOINS", "1000:1000")
        .env("DAEGI_COUNTRY_HEADER", "cf-ipcountry");
    let pods = [fleet.start("daegi-api"), fleet.start("daegi-api")];
    let scheduler = fleet.start_ready("daegi-scheduler").await;
    for pod in &pods {
        pod.wait_ready().await;
    }
    let item = json!({ "itemName": "concert", "remainCount": 50, "waitingQueueEnabled": true });
    scheduler.admin(Method::POST, "waiting-item/concert/manually", item).await;
    let quota = json!({ "tokenCountToMove": 0 });
    scheduler.admin(Method::PUT, "waiting-queue/token-count-to-move", quota).await;

    let crowd: Vec<_> = (0..USERS).map(Identity::new).collect();
    for (n, one) in crowd.iter().enumerate() {
        let url = format!("{}/api/v1/item/concert/waiting-queue", pods[n % 2].public);
        let request = fleet
            .http
            .post(url)
            .header("user-id", &one.user)
            .header("x-forwarded-for", &one.address)
            .header("user-agent", &one.user_agent)
            .header("accept-language", &one.languages)
            .header("cf-ipcountry", if n < 30 { "KR" } else { "JP" })
            .header("daegi-client", format!("page;load={}", 300 + n));
        assert_eq!(request.send().await.unwrap().status(), 201);
    }
    // Pods write their counts when they stop.
    for pod in pods {
        assert_eq!(pod.terminate().code(), Some(0));
    }
    let visitors = "waiting-item/concert/visitors";
    let shown = scheduler.admin(Method::GET, visitors, Value::Null).await;
    assert_eq!(shown["visits"], USERS);
    let share = |name: &str, count: usize| json!({ "name": name, "count": count, "share": count as f64 / USERS as f64 });
    assert_eq!(shown["device"], json!([share("phone", 30), share("desktop", 10)]));
    assert_eq!(shown["country"], json!([share("KR", 30), share("JP", 10)]));
    assert_eq!(shown["language"], json!([share("ko", 40)]));
    assert_eq!(shown["access"], json!([share("page", 40)]));
    assert_eq!(shown["pageLoadMs"]["count"], USERS);

    // The leader records the minute before when its term begins, and then each minute.
    let minutes = "waiting-item/concert/minutes";
    scheduler.terminate();
    let scheduler = fleet.start_ready("daegi-scheduler").await;
    let joined = |shown: &Value| -> u64 {
        let counts = shown["joined"].as_array().unwrap().iter();
        counts.filter_map(Value::as_u64).sum()
    };
    eventually(Duration::from_secs(70), "the joins are recorded", async || {
        joined(&scheduler.admin(Method::GET, minutes, Value::Null).await) == USERS as u64
    })
    .await;
    let replica = fleet.start_ready("daegi-scheduler").await;
    assert_eq!(joined(&replica.admin(Method::GET, minutes, Value::Null).await), 40);
    assert_eq!(replica.admin(Method::GET, visitors, Value::Null).await["device"], shown["device"]);

    let stored = dump(&redis).await;
    for text in crowd.iter().flat_map(Identity::texts) {
        assert_eq!(found(&stored, &text), Vec::<&str>::new(), "{text}");
    }
    // User ids are in lines, as docs/PRIVACY.md says, and not in what is kept about visits.
    let mut with_users = found(&stored, "visitor-7@example");
    with_users.sort_unstable();
    let names: Vec<_> = with_users.iter().map(|key| key.rsplit(':').next().unwrap()).collect();
    assert_eq!(names, ["waiting"], "{with_users:?}");
    let kept = |name: &str| stored.iter().any(|(key, _)| key.contains(&format!(":{name}:")));
    assert!(kept("visits") && kept("visits-by-hour") && kept("minutes"), "what was searched");
}
