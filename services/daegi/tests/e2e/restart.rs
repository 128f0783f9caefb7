//! A pod stops while 2,000 clients follow their tickets on its streams.

mod stream_client;

use std::time::{Duration, Instant};

use daegi_domain::{ItemChange, ItemId, ItemName, Policy, Settings, Ticket, TicketKeys, UserId};
use daegi_runtime::{Clock, rlimit};
use daegi_store::{ItemStore, JoinOutcome, RedisStore, TicketStore};
use daegi_testkit::{Redis, eventually};
use reqwest::Method;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::processes::{Fleet, TICKET_SECRETS};
use stream_client::{Observation, StreamClient, StreamEvent};

const USERS: usize = 2_000;
/// Range of the reconnect delays that `tickets/subscription.rs` sends.
const WINDOW: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));
const TENTHS: usize = 10;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_streams_reconnect_to_another_pod_spread_over_the_reconnect_window() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    rlimit::raise_nofile_limit();
    let tokens = waiting(&redis).await;
    let fleet = Fleet::new(&redis).env("DAEGI_TOKEN_COUNT_TO_MOVE", "0");
    let scheduler = fleet.start_ready("daegi-scheduler").await;
    let (leaving, staying) =
        (fleet.start_ready("daegi-api").await, fleet.start_ready("daegi-api").await);
    let (mut clients, mut observations) = (JoinSet::new(), Observations::new());
    for (user, token) in tokens.iter().enumerate() {
        let pods = [&leaving, &staying].map(|pod| pod.public.clone());
        let sender = observations.sender.clone();
        let client = StreamClient::new(user, fleet.http.clone(), token, pods, sender);
        clients.spawn(client.run());
    }
    let before = observations.one_per_user(|event| match event {
        StreamEvent::Waiting(position) => Some(position),
        StreamEvent::Reconnected { .. } | StreamEvent::Enterable => {
            panic!("expected a position first: {event:?}")
        }
    });
    let before = before.await;
    assert!(before.iter().enumerate().all(|(user, (position, _))| *position == user as u64 + 1));

    // Every client receives a reconnect delay and reconnects after it.
    let stopped = Instant::now();
    let ended = tokio::task::block_in_place(|| leaving.terminate());
    assert_eq!(ended.code(), Some(0));
    let reconnects = observations.one_per_user(|event| match event {
        StreamEvent::Reconnected { delay } => Some(delay),
        StreamEvent::Waiting(_) | StreamEvent::Enterable => {
            panic!("repeated or premature event: {event:?}")
        }
    });
    let reconnects = reconnects.await;
    for (delay, at) in &reconnects {
        assert!((WINDOW.0..=WINDOW.1).contains(delay), "reconnect delay {delay:?}");
        assert!(*at >= stopped + *delay, "a client reconnected too early");
    }
    let delays = shares(reconnects.iter().map(|(delay, _)| *delay - WINDOW.0));
    let first = reconnects.iter().map(|(_, at)| *at).min().unwrap();
    let arrivals = shares(reconnects.iter().map(|(_, at)| *at - first));
    for spread in [delays, arrivals] {
        let most = 3 * USERS / TENTHS;
        assert!(spread.iter().all(|share| *share <= most), "reconnects are not spread: {spread:?}");
    }

    // No ticket is lost: each user is admitted and receives ENTERABLE once.
    let quota = json!({ "tokenCountToMove": USERS });
    scheduler.admin(Method::PUT, "waiting-queue/token-count-to-move", quota).await;
    observations.one_per_user(|event| matches!(event, StreamEvent::Enterable).then_some(())).await;
    eventually(TEST_TIMEOUT, "all streams are open at the remaining pod", async || {
        staying.metric("daegi_api_streams").await == USERS as f64
    })
    .await;
    assert!(observations.is_empty(), "a client received an event twice");
}

/// Joins all users in one call, and returns their tokens in order.
async fn waiting(redis: &Redis) -> Vec<String> {
    let settings = Settings { token_count_to_move: 0, tick_ms: 50 };
    let store = RedisStore::open(&redis.url(), 16, settings).await.unwrap();
    let (keys, now): (TicketKeys, _) = (TICKET_SECRETS.parse().unwrap(), Clock::system().now_ms());
    let item = ItemChange {
        id: ItemId::parse("concert").unwrap(),
        name: ItemName::parse("concert").unwrap(),
        stock: 5_000,
        enabled: true,
        version: None,
        policy: Some(Policy::default()),
    };
    store.put_item(&item, now).await.unwrap();
    let users: Vec<_> = (0..USERS).map(|n| UserId::parse(&format!("user-{n}")).unwrap()).collect();
    let joined = store.join(&item.id, &users, &settings, now).await.unwrap();
    let token = |(user, joined): (&UserId, JoinOutcome)| match joined {
        JoinOutcome::Ticket { number, .. } => {
            keys.token(&Ticket::new(item.id.clone(), user.clone(), number))
        }
        JoinOutcome::Refused(why) => panic!("refused: {why:?}"),
    };
    users.iter().zip(joined).map(token).collect()
}

/// Counts the times in each tenth of the window. Times after the window count in the last tenth.
fn shares(times: impl Iterator<Item = Duration>) -> [usize; TENTHS] {
    let mut shares = [0; TENTHS];
    let tenth = (WINDOW.1 - WINDOW.0) / TENTHS as u32;
    for time in times {
        shares[((time.as_secs_f64() / tenth.as_secs_f64()) as usize).min(TENTHS - 1)] += 1;
    }
    shares
}

/// Receives the observations of all clients.
struct Observations {
    sender: tokio::sync::mpsc::UnboundedSender<Observation>,
    receiver: UnboundedReceiver<Observation>,
}

impl Observations {
    fn new() -> Self {
        let (sender, receiver) = unbounded_channel();
        Self { sender, receiver }
    }

    /// Waits for one matching event of each user. Returns them in the order of the line, with the
    /// time of each. Ignores other events, and panics if a user has two matching ones.
    async fn one_per_user<T>(
        &mut self,
        mut expected: impl FnMut(StreamEvent) -> Option<T>,
    ) -> Vec<(T, Instant)> {
        let mut all: Vec<Option<(T, Instant)>> = (0..USERS).map(|_| None).collect();
        let mut missing = USERS;
        while missing > 0 {
            let received = timeout(TEST_TIMEOUT, self.receiver.recv()).await;
            let Observation { user, event, at } =
                received.unwrap_or_else(|_| panic!("{missing} users have no event")).unwrap();
            if let Some(value) = expected(event) {
                assert!(all[user].replace((value, at)).is_none(), "user {user} has two events");
                missing -= 1;
            }
        }
        all.into_iter().flatten().collect()
    }

    fn is_empty(&mut self) -> bool {
        self.receiver.try_recv().is_err()
    }
}
