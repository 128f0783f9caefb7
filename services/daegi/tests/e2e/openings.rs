//! A drawn opening happens once, although the leader is killed within the second of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use daegi_domain::draw::{DrawRecord, DrawState, cohort_root, leaf};
use daegi_domain::{
    ItemId, LineOpened, Number, TicketKeys, TokenActivated, Topic, Topics, rfc3339,
};
use daegi_runtime::Clock;
use daegi_testkit::topic_reader::message_count;
use daegi_testkit::{Redis, TopicReader, eventually, kafka_or_skip, redis_or_skip};
use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};

use crate::processes::{Fleet, FleetProcess, TICKET_SECRETS};

/// When the leader of each opening is killed, in ms after its time. The leader opens with the first tick of 50 ms
/// at that time.
const KILLED_AFTER: [i64; 5] = [-30, 5, 25, 50, 200];

const USERS: usize = 300;

/// Users who join after the opening.
const LATE_USERS: usize = 10;

/// How long before its time an opening is planned, when all users are in the lobby.
const PLANNED_BEFORE_MS: u64 = 1_500;

const HOUR_MS: u64 = 3_600_000;

const MAX_CONCURRENT: usize = 50;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The fleet of the test: two pods, a leader and two standbys.
struct OpeningFleet {
    fleet: Fleet,
    pods: Vec<FleetProcess>,
    schedulers: Vec<FleetProcess>,
}

/// What is known of one opening before its events are read.
struct Opened {
    item: ItemId,
    /// The numbers of the lobby, and of the late users.
    tokens: BTreeMap<Number, String>,
    late: BTreeSet<Number>,
    record: DrawRecord,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draw_opens_once_although_its_leader_is_killed_within_the_second() {
    let (Some(redis), Some(kafka)) = (redis_or_skip().await, kafka_or_skip().await) else {
        return;
    };
    let mut fleet = OpeningFleet::start(&redis, &kafka.bootstrap()).await;
    let mut openings = Vec::new();
    for (number, killed_after) in KILLED_AFTER.into_iter().enumerate() {
        openings.push(fleet.open(&format!("concert-{number}"), killed_after).await);
    }
    fleet.wait_until_all_is_published().await;
    let admitted: Vec<TokenActivated> = events(&kafka.bootstrap(), Topic::TokenActivated)
        .await
        .map(|body| serde_json::from_slice(&body).unwrap())
        .collect();
    let opened: Vec<LineOpened> = events(&kafka.bootstrap(), Topic::LineOpened)
        .await
        .map(|body| serde_json::from_slice(&body).unwrap())
        .collect();
    for opening in &openings {
        let of_item: Vec<_> = opened.iter().filter(|event| event.item_id == opening.item).collect();
        assert_opened_once(opening, &of_item);
        let numbers = admitted.iter().filter(|event| event.item_id == opening.item);
        assert_eq!(first_deliveries(numbers), expected_order(opening), "{}", opening.item);
    }
}

impl OpeningFleet {
    async fn start(redis: &Redis, brokers: &str) -> Self {
        let fleet = Fleet::new(redis)
            .with_kafka(brokers, &Topics::default())
            .env("DAEGI_TOKEN_COUNT_TO_MOVE", "40");
        let start = |name: &str, count| (0..count).map(|_| fleet.start(name)).collect::<Vec<_>>();
        let (pods, schedulers) = (start("daegi-api", 2), start("daegi-scheduler", 3));
        for process in pods.iter().chain(&schedulers) {
            process.wait_ready().await;
        }
        Self { fleet, pods, schedulers }
    }

    /// Fills the lobby of an item, kills the leader at its opening, and waits until all users are admitted.
    async fn open(&mut self, item: &str, killed_after: i64) -> Opened {
        let leader = self.leader().await;
        let later = Clock::system().now_ms() + HOUR_MS;
        let opening = json!({ "opensAt": rfc3339(later), "order": "draw" });
        let policy = json!({ "graceSeconds": 0, "opening": opening });
        let body = json!({
            "itemName": item, "remainCount": 10_000, "waitingQueueEnabled": true, "policy": policy
        });
        self.schedulers[leader].admin(Method::PUT, &format!("waiting-item/{item}"), body).await;
        let committed = self.record(0, item).await;
        assert_eq!(committed.state, DrawState::Committed);
        let mut tokens = self.join_all(item, "early", USERS).await;
        let opens_at = Clock::system().now_ms() + PLANNED_BEFORE_MS;
        let sooner = json!({ "opening": { "opensAt": rfc3339(opens_at) } });
        let path = format!("waiting-item/{item}/policy");
        self.schedulers[leader].admin(Method::PATCH, &path, sooner).await;

        // The opening has a time of the clock, so that the test waits for it, too.
        let killed_at = opens_at.saturating_add_signed(killed_after);
        let left = killed_at.saturating_sub(Clock::system().now_ms());
        tokio::time::sleep(Duration::from_millis(left)).await;
        self.schedulers[leader].sigkill();

        let record = eventually(TEST_TIMEOUT, "the line is drawn", async || {
            Some(self.record(0, item).await).filter(|record| record.state == DrawState::Drawn)
        })
        .await;
        assert_eq!(record.commitment, committed.commitment, "{item}");
        let late = self.join_all(item, "late", LATE_USERS).await;
        let same = async || self.record(1, item).await == record;
        eventually(TEST_TIMEOUT, "both pods return one draw", same).await;
        self.schedulers[leader].start_again();
        self.schedulers[leader].wait_ready().await;
        eventually(TEST_TIMEOUT, "all users are admitted", async || {
            self.entered(item).await == Some((USERS + LATE_USERS) as u64)
        })
        .await;
        let numbers = late.keys().copied().collect();
        tokens.extend(late);
        Opened { item: ItemId::parse(item).unwrap(), tokens, late: numbers, record }
    }

    /// The index of the leader.
    async fn leader(&self) -> usize {
        eventually(TEST_TIMEOUT, "one scheduler leads", async || {
            for (index, scheduler) in self.schedulers.iter().enumerate() {
                if scheduler.is_leader().await {
                    return Some(index);
                }
            }
            None
        })
        .await
    }

    fn line(&self, pod: usize, item: &str) -> String {
        format!("{}/api/v1/item/{item}/waiting-queue", self.pods[pod % self.pods.len()].public)
    }

    async fn record(&self, pod: usize, item: &str) -> DrawRecord {
        let url = format!("{}/draw", self.line(pod, item));
        self.fleet.http.get(url).send().await.unwrap().json().await.unwrap()
    }

    /// Joins users at both pods and returns their tokens by number.
    async fn join_all(&self, item: &str, name: &str, count: usize) -> BTreeMap<Number, String> {
        let keys: TicketKeys = TICKET_SECRETS.parse().unwrap();
        let id = ItemId::parse(item).unwrap();
        let joins = (0..count).map(async |user| {
            let request = self.fleet.http.post(self.line(user, item));
            let request = request.header("user-id", format!("{name}-{user}"));
            let ticket: Value = request.send().await.unwrap().json().await.unwrap();
            ticket["token"].as_str().unwrap_or_else(|| panic!("{ticket}")).to_owned()
        });
        let tokens: Vec<_> = stream::iter(joins).buffer_unordered(MAX_CONCURRENT).collect().await;
        let number = |token: &String| keys.verify(&id, token).unwrap().number;
        let tokens: BTreeMap<_, _> =
            tokens.into_iter().map(|token| (number(&token), token)).collect();
        assert_eq!(tokens.len(), count, "{item}: two users have one number");
        tokens
    }

    async fn wait_until_all_is_published(&self) {
        let leader = self.leader().await;
        eventually(TEST_TIMEOUT, "the outbox is empty", async || {
            let status = self.schedulers[leader].admin(Method::GET, "leader", Value::Null).await;
            status["outboxPending"] == 0
        })
        .await;
    }

    /// Returns `None` if the call has another response, as while a scheduler starts.
    async fn entered(&self, item: &str) -> Option<u64> {
        let path = format!("waiting-queue/token-count?itemId={item}");
        let counts = self.schedulers[0].admin(Method::GET, &path, Value::Null).await;
        counts["items"][0]["enteredTokenCount"].as_u64()
    }
}

/// Reads the bodies of all messages of a topic.
async fn events(brokers: &str, topic: Topic) -> impl Iterator<Item = Vec<u8>> {
    let topics = Topics::default();
    let topic = topics.name(topic);
    let count = message_count(brokers, topic).await.unwrap();
    let records = TopicReader::open(brokers, topic).await.unwrap();
    let records = records.take(usize::try_from(count).unwrap()).await;
    records.into_iter().map(|record| record.body.unwrap())
}

/// One event with the published draw, whose root covers all tokens of the lobby.
fn assert_opened_once(opening: &Opened, events: &[&LineOpened]) {
    let Opened { item, tokens, late, record } = opening;
    let ids: BTreeSet<_> = events.iter().map(|event| event.event_id).collect();
    assert_eq!(ids.len(), 1, "{item}: {events:?}");
    let published = events[0].draw.as_ref().unwrap();
    let seed = record.seed.unwrap().to_string();
    assert_eq!((&published.seed, published.cohort_size), (&seed, USERS as u64), "{item}");
    let cohort = record.cohort().unwrap();
    let leaves: Vec<_> =
        (0..cohort.size()).map(|index| leaf(&tokens[&Number(cohort.first().0 + index)])).collect();
    assert_eq!(record.cohort_root.unwrap().0, cohort_root(&leaves), "{item}");
    assert!(late.iter().all(|number| cohort.cohort_rank(*number).is_none()), "{item}");
}

/// The cohort by rank, and then the late users by number.
fn expected_order(opening: &Opened) -> Vec<Number> {
    let cohort = opening.record.cohort().unwrap();
    let mut numbers: Vec<_> = opening.tokens.keys().copied().collect();
    numbers.sort_by_key(|number| cohort.rank(*number));
    numbers
}

/// The numbers in the order of their first events.
fn first_deliveries<'a>(events: impl Iterator<Item = &'a TokenActivated>) -> Vec<Number> {
    let mut seen = BTreeSet::new();
    let first = events.filter(|event| seen.insert(event.event_id));
    first.map(|event| event.number).collect()
}
