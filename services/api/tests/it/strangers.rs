//! What requests of strangers cost the store: looks at lines, unknown items, ended tickets.

use std::time::Duration;

use daegi_domain::{ItemChange, ItemName};
use daegi_store::{RedisStore, Store};
use daegi_testkit::{Redis, redis_or_loud};
use futures_util::future::join_all;
use tokio::time::sleep;

use crate::harness::{MAX_CACHED_LINES, NOW, World, id, line, ticket};
use crate::probe::Probe;
use crate::redis::{Pod, SETTINGS, with_pod};

/// Longer than a pod keeps a line fresh after the last request.
const SETTLED: Duration = Duration::from_secs(10);

/// All calls of the store that requests cause.
fn calls(store: &Probe) -> usize {
    let all = ["snapshot", "resolve", "settings", "item_ids", "join", "mark_seen"];
    all.iter().map(|call| store.calls(call)).sum()
}

#[tokio::test(start_paused = true)]
async fn looking_at_lines_costs_one_read_per_item_and_second() {
    let world = World::with_item("concert").await;
    for n in 0..20 {
        world.put_item(&format!("item-{n}"), 5, true).await;
    }
    let before = calls(&world.store);
    for n in 0..600 {
        let look = world.get(&line(&format!("item-{}", n % 20))).await;
        assert_eq!((look.status.as_u16(), &look.json()["waitingCount"]), (200, &0.into()));
    }
    sleep(SETTLED).await;
    let cost = calls(&world.store) - before;
    assert!(cost <= 20 + 1, "{cost} calls for 600 looks at 20 items");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_look_at_a_line_is_at_most_a_second_old() {
    let world = World::with_item("concert").await;
    let people = async || world.get(&line("concert")).await.json()["waitingCount"].clone();
    assert_eq!(people().await, 0);
    world.join("concert", "kim").await;
    sleep(Duration::from_millis(1100)).await;
    assert_eq!(people().await, 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn looks_of_strangers_keep_no_line_fresh() {
    let world = World::with_item("concert").await;
    world.token("concert", "kim").await;
    sleep(SETTLED).await;
    let before = calls(&world.store);
    for _ in 0..40 {
        assert_eq!(world.get(&line("concert")).await.status, 200);
        sleep(Duration::from_millis(250)).await;
    }
    let cost = calls(&world.store) - before;
    assert!(cost <= 2 * 10 + 2, "{cost} calls for looks during 10 s");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_item_is_looked_up_once_per_second() {
    let world = World::with_item("concert").await;
    let before = calls(&world.store);
    for _ in 0..1000 {
        world.get(&line("nowhere")).await.is_problem(404, "ITEM_NOT_FOUND");
        world.join("nowhere", "kim").await.is_problem(404, "ITEM_NOT_FOUND");
    }
    let cost = calls(&world.store) - before;
    assert!(cost <= 4, "{cost} calls for 2000 requests");
    world.put_item("nowhere", 5, true).await;
    sleep(Duration::from_millis(1100)).await;
    assert_eq!(world.join("nowhere", "kim").await.status, 201, "a miss is kept for a second");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn many_different_unknown_items_cost_a_read_of_all_ids() {
    let world = World::with_item("concert").await;
    let before = calls(&world.store);
    for n in 0..2000 {
        world.get(&line(&format!("nowhere-{n}"))).await.is_problem(404, "ITEM_NOT_FOUND");
    }
    assert_eq!(world.get(&line("concert")).await.status, 200, "known items are found");
    let cost = calls(&world.store) - before;
    assert!(cost <= 30, "{cost} calls for 2000 unknown items");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_ended_ticket_is_resolved_once_in_seconds() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    world.leave("concert", &token).await;
    sleep(SETTLED).await;
    let before = calls(&world.store);
    for _ in 0..80 {
        let polls = (0..100).map(|_| world.poll("concert", &token));
        let polled = join_all(polls).await;
        assert!(polled.iter().all(|poll| poll.json()["status"] == "LEFT"));
    }
    let cost = calls(&world.store) - before;
    assert!(cost <= 8, "{cost} calls for 8000 polls of an ended ticket");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn polls_of_an_entry_share_an_answer_that_ends_with_the_entry() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    world.admit("concert", 1).await;
    world.until_status("concert", &token, "ENTERABLE").await;
    let before = calls(&world.store);
    for _ in 0..1000 {
        assert_eq!(world.poll("concert", &token).await.json()["status"], "ENTERABLE");
    }
    let cost = calls(&world.store) - before;
    assert!(cost <= 5, "{cost} calls for 1000 polls of an entry");
    world.leave("concert", &token).await;
    assert_eq!(world.poll("concert", &token).await.json()["status"], "LEFT");
    world.end().await;
}

/// The end of a ticket that a pod remembers is no answer after the line has restarted.
#[tokio::test(start_paused = true)]
async fn a_remembered_end_does_not_outlive_its_line() {
    let world = World::with_item("concert").await;
    let (kim, lee) = (world.token("concert", "kim").await, world.token("concert", "lee").await);
    world.leave("concert", &kim).await;
    assert_eq!(world.poll("concert", &kim).await.json()["status"], "LEFT");
    world.store.reset(&id("concert"), world.clock.now_ms()).await.unwrap();
    daegi_testkit::eventually(crate::harness::SOON, "the reset is known", async || {
        world.poll("concert", &lee).await.status == 410
    })
    .await;
    world.poll("concert", &kim).await.is_problem(410, "LINE_RESTARTED");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_ticket_in_a_rested_line_gets_a_fresh_position() {
    let world = World::with_item("concert").await;
    let (kim, lee) = (world.token("concert", "kim").await, world.token("concert", "lee").await);
    sleep(SETTLED).await;
    // A stranger's look refreshes the line; half a second later the line has changed.
    world.get(&line("concert")).await;
    let number = world.number("concert", &kim);
    let user = daegi_domain::UserId::parse("kim").unwrap();
    let now = world.clock.now_ms();
    world.store.leave(&id("concert"), &user, number, now).await.unwrap();
    sleep(Duration::from_millis(500)).await;
    assert_eq!(world.poll("concert", &lee).await.json()["position"], 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_joins_every_line_cannot_fill_the_memory_of_a_pod() {
    let world = World::with_item("concert").await;
    let tasks = || world.shutdown.tracker().len();
    let without = tasks();
    let kim = world.token("concert", "kim").await;
    let of_a_line = tasks() - without;
    let mut stream = world.listen("concert", &kim, None).await;
    stream.ticket().await;
    let items: Vec<String> = (0..3 * MAX_CACHED_LINES).map(|n| format!("item-{n}")).collect();
    for item in &items {
        world.put_item(item, 5, true).await;
    }
    let mut tokens = Vec::new();
    for item in items {
        tokens.push((world.token(&item, "kim").await, item));
        // Longer than a line is kept fresh for a ticket that does not come back.
        sleep(Duration::from_millis(100)).await;
    }
    // A stream has a token of the tracker, too.
    let lines = (tasks() - without - 1) / of_a_line;
    assert_eq!(lines, MAX_CACHED_LINES);
    for (token, item) in &tokens {
        assert_eq!(world.poll(item, token).await.json()["position"], 1, "all are still served");
    }
    world.put_item("concert", 0, true).await;
    // A line in use stays in view.
    while stream.ticket().await["lineState"] != "SOLD_OUT" {}
    drop(stream);
    world.end().await;
}

/// Scripts and other commands that clients sent to Redis, without those inside scripts.
async fn commands(redis: &Redis) -> u64 {
    let stats = redis.commandstats().await.unwrap();
    ["evalsha", "eval", "smembers"].iter().filter_map(|name| stats.get(*name)).sum()
}

/// Redis commands that the requests cause, and afterwards until the pod is idle.
async fn cost(redis: &Redis, requests: &[String]) -> u64 {
    let client = reqwest::Client::new();
    let before = commands(redis).await;
    for chunk in requests.chunks(50) {
        let asks = chunk.iter().map(|url| client.get(url).send());
        join_all(asks).await.into_iter().for_each(|answer| {
            answer.unwrap();
        });
    }
    // What the requests keep going afterwards counts, too.
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
async fn strangers_cost_redis_next_to_nothing() {
    let Some(redis) = redis_or_loud().await else { return };
    let url = redis.url();
    with_pod(&url, async |pod: Pod| {
        pod.is_ready().await;
        put_items(&redis, 20).await;
        let base = format!("http://{}", pod.people);
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
