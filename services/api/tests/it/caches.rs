//! What requests without a waiting ticket cost the store: public views, unknown items, ended tickets.

use std::time::Duration;

use daegi_domain::{ItemChange, ItemName, Ticket};
use daegi_store::{ItemStore, RedisStore, TicketStore};
use daegi_testkit::{Redis, redis_or_skip};
use futures_util::future::join_all;
use tokio::time::sleep;

use crate::harness::{Harness, MAX_CACHED_LINES, NOW, id, line, ticket};
use crate::redis::{Pod, SETTINGS, with_pod};
use crate::spy_store::SpyStore;

/// Longer than a pod keeps a line fresh after the last request.
const SETTLED: Duration = Duration::from_secs(10);

/// Returns the number of store calls that requests cause.
fn calls(store: &SpyStore) -> usize {
    let all = ["snapshot", "resolve", "settings", "item_ids", "join", "mark_seen"];
    all.iter().map(|call| store.calls(call)).sum()
}

#[tokio::test(start_paused = true)]
async fn public_views_cost_one_read_per_item_and_second() {
    let harness = Harness::with_item("concert").await;
    for n in 0..20 {
        harness.put_item(&format!("item-{n}"), 5, true).await;
    }
    let before = calls(&harness.store);
    for n in 0..600 {
        let look = harness.get(&line(&format!("item-{}", n % 20))).await;
        assert_eq!((look.status.as_u16(), &look.json()["waitingCount"]), (200, &0.into()));
    }
    sleep(SETTLED).await;
    let cost = calls(&harness.store) - before;
    assert!(cost <= 20 + 1, "{cost} calls for 600 looks at 20 items");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_public_view_is_at_most_a_second_old() {
    let harness = Harness::with_item("concert").await;
    let people = async || harness.get(&line("concert")).await.json()["waitingCount"].clone();
    assert_eq!(people().await, 0);
    harness.join("concert", "kim").await;
    sleep(Duration::from_millis(1100)).await;
    assert_eq!(people().await, 1);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn public_views_do_not_keep_a_line_fresh() {
    let harness = Harness::with_item("concert").await;
    harness.token("concert", "kim").await;
    sleep(SETTLED).await;
    let before = calls(&harness.store);
    for _ in 0..40 {
        assert_eq!(harness.get(&line("concert")).await.status, 200);
        sleep(Duration::from_millis(250)).await;
    }
    let cost = calls(&harness.store) - before;
    assert!(cost <= 2 * 10 + 2, "{cost} calls for looks during 10 s");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_item_is_looked_up_once_per_second() {
    let harness = Harness::with_item("concert").await;
    let before = calls(&harness.store);
    for _ in 0..1000 {
        harness.get(&line("nowhere")).await.assert_problem(404, "ITEM_NOT_FOUND");
        harness.join("nowhere", "kim").await.assert_problem(404, "ITEM_NOT_FOUND");
    }
    let cost = calls(&harness.store) - before;
    assert!(cost <= 4, "{cost} calls for 2000 requests");
    harness.put_item("nowhere", 5, true).await;
    sleep(Duration::from_millis(1100)).await;
    assert_eq!(harness.join("nowhere", "kim").await.status, 201, "a miss is kept for a second");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn many_different_unknown_items_cost_a_read_of_all_ids() {
    let harness = Harness::with_item("concert").await;
    let before = calls(&harness.store);
    for n in 0..2000 {
        harness.get(&line(&format!("nowhere-{n}"))).await.assert_problem(404, "ITEM_NOT_FOUND");
    }
    assert_eq!(harness.get(&line("concert")).await.status, 200, "known items are found");
    let cost = calls(&harness.store) - before;
    assert!(cost <= 30, "{cost} calls for 2000 unknown items");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_ended_ticket_is_resolved_once_in_seconds() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    harness.leave("concert", &token).await;
    sleep(SETTLED).await;
    let before = calls(&harness.store);
    for _ in 0..80 {
        let polls = (0..100).map(|_| harness.poll("concert", &token));
        let polled = join_all(polls).await;
        assert!(polled.iter().all(|poll| poll.json()["status"] == "LEFT"));
    }
    let cost = calls(&harness.store) - before;
    assert!(cost <= 8, "{cost} calls for 8000 polls of an ended ticket");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn polls_of_an_entry_share_a_cached_state_until_it_ends() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    harness.admit("concert", 1).await;
    harness.until_status("concert", &token, "ENTERABLE").await;
    let before = calls(&harness.store);
    for _ in 0..1000 {
        assert_eq!(harness.poll("concert", &token).await.json()["status"], "ENTERABLE");
    }
    let cost = calls(&harness.store) - before;
    assert!(cost <= 5, "{cost} calls for 1000 polls of an entry");
    harness.leave("concert", &token).await;
    assert_eq!(harness.poll("concert", &token).await.json()["status"], "LEFT");
    harness.end().await;
}

/// The cached end of a ticket is not returned after the line has restarted.
#[tokio::test(start_paused = true)]
async fn a_cached_end_does_not_outlive_its_line() {
    let harness = Harness::with_item("concert").await;
    let (kim, lee) = (harness.token("concert", "kim").await, harness.token("concert", "lee").await);
    harness.leave("concert", &kim).await;
    assert_eq!(harness.poll("concert", &kim).await.json()["status"], "LEFT");
    harness.store.reset(&id("concert"), harness.clock.now_ms()).await.unwrap();
    daegi_testkit::eventually(crate::harness::TEST_TIMEOUT, "the reset is known", async || {
        harness.poll("concert", &lee).await.status == 410
    })
    .await;
    harness.poll("concert", &kim).await.assert_problem(410, "LINE_RESTARTED");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_ticket_of_a_sleeping_line_gets_a_fresh_position() {
    let harness = Harness::with_item("concert").await;
    let (kim, lee) = (harness.token("concert", "kim").await, harness.token("concert", "lee").await);
    sleep(SETTLED).await;
    // A public view refreshes the line; 500 ms later the line has changed.
    harness.get(&line("concert")).await;
    let number = harness.number("concert", &kim);
    let user = daegi_domain::UserId::parse("kim").unwrap();
    let now = harness.clock.now_ms();
    harness.store.leave(&Ticket::new(id("concert"), user, number), now).await.unwrap();
    sleep(Duration::from_millis(500)).await;
    assert_eq!(harness.poll("concert", &lee).await.json()["position"], 1);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_joins_every_line_cannot_exhaust_memory() {
    let harness = Harness::with_item("concert").await;
    let tasks = || harness.shutdown.tracker().len();
    let without = tasks();
    let kim = harness.token("concert", "kim").await;
    let of_a_line = tasks() - without;
    let mut stream = harness.open_stream("concert", &kim, None).await;
    stream.ticket().await;
    let items: Vec<String> = (0..3 * MAX_CACHED_LINES).map(|n| format!("item-{n}")).collect();
    for item in &items {
        harness.put_item(item, 5, true).await;
    }
    let mut tokens = Vec::new();
    for item in items {
        tokens.push((harness.token(&item, "kim").await, item));
        // Longer than a line is kept fresh for a ticket that does not come back.
        sleep(Duration::from_millis(100)).await;
    }
    // A stream has a token of the tracker, too.
    let lines = (tasks() - without - 1) / of_a_line;
    assert_eq!(lines, MAX_CACHED_LINES);
    for (token, item) in &tokens {
        assert_eq!(harness.poll(item, token).await.json()["position"], 1, "all are still served");
    }
    harness.put_item("concert", 0, true).await;
    // A line in use stays cached.
    while stream.ticket().await["lineState"] != "SOLD_OUT" {}
    drop(stream);
    harness.end().await;
}

/// Scripts and other commands that clients sent to Redis, without those inside scripts.
async fn commands(redis: &Redis) -> u64 {
    let stats = redis.commandstats().await.unwrap();
    ["evalsha", "eval", "smembers"].iter().filter_map(|name| stats.get(*name)).sum()
}

/// Returns the Redis commands of the requests, including those until the pod is idle.
async fn cost(redis: &Redis, requests: &[String]) -> u64 {
    let client = reqwest::Client::new();
    let before = commands(redis).await;
    for chunk in requests.chunks(50) {
        let asks = chunk.iter().map(|url| client.get(url).send());
        join_all(asks).await.into_iter().for_each(|answer| {
            answer.unwrap();
        });
    }
    // Background work that the requests started counts, too.
    sleep(Duration::from_secs(7)).await;
    commands(redis).await - before
}

async fn put_items(redis: &Redis, many: usize) {
    let store = RedisStore::open(&redis.url(), 16, SETTINGS).await.unwrap();
    for n in 0..many {
        let name = ItemName::parse("A concert").unwrap();
        let id = id(&format!("item-{n}"));
        let change = ItemChange { id, name, stock: 5, enabled: true, version: None, policy: None };
        store.put_item(&change, NOW).await.unwrap();
    }
}

#[tokio::test]
async fn requests_without_a_waiting_ticket_cost_redis_next_to_nothing() {
    let Some(redis) = redis_or_skip().await else { return };
    let url = redis.url();
    with_pod(&url, async |pod: Pod| {
        pod.wait_until_ready().await;
        put_items(&redis, 20).await;
        let base = format!("http://{}", pod.public);
        let client = reqwest::Client::new();
        let join = client.post(format!("{base}{}", line("item-0"))).header("user-id", "kim");
        let joined: serde_json::Value = join.send().await.unwrap().json().await.unwrap();
        let ended = format!("{base}{}", ticket("item-0", joined["token"].as_str().unwrap()));
        client.delete(&ended).send().await.unwrap();
        sleep(Duration::from_secs(7)).await;

        assert_eq!(cost(&redis, &[]).await, 0, "an idle pod sends nothing");
        let look = |n: usize| format!("{base}{}", line(&format!("item-{}", n % 20)));
        let unknown = |n: usize| format!("{base}{}", line(&format!("nowhere-{n}")));
        let attacks: [(&str, Vec<String>); 3] = [
            ("looks at lines", (0..6000).map(look).collect()),
            ("unknown items", (0..4000).map(unknown).collect()),
            ("polls of an ended ticket", vec![ended; 8000]),
        ];
        for (attack, requests) in attacks {
            let cost = cost(&redis, &requests).await as f64 / requests.len() as f64;
            println!("redis commands per request, {attack}: {cost}");
            assert!(cost < 0.02, "{attack}: {cost} redis commands per request");
        }
    })
    .await;
}
