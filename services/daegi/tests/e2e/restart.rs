//! A pod is restarted while two thousand people listen to it.

mod listener;

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

use crate::member::{Fleet, TICKET_SECRETS};
use listener::{Listener, Said, What};

const PEOPLE: usize = 2_000;
/// Where the come-back times lie, as `room/follow.rs` announces them.
const WINDOW: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));
const TENTHS: usize = 10;
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_come_back_to_another_pod_spread_over_the_announced_window() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    rlimit::raise_nofile_limit();
    let tokens = waiting(&redis).await;
    let fleet = Fleet::new(&redis).env("DAEGI_TOKEN_COUNT_TO_MOVE", "0");
    let scheduler = fleet.start_ready("daegi-scheduler").await;
    let (leaving, staying) =
        (fleet.start_ready("daegi-api").await, fleet.start_ready("daegi-api").await);
    let (mut crowd, mut said) = (JoinSet::new(), Crowd::listen());
    for (who, token) in tokens.iter().enumerate() {
        let pods = [&leaving, &staying].map(|pod| pod.public.clone());
        let listener = Listener::new(who, fleet.http.clone(), token, pods, said.tell.clone());
        crowd.spawn(listener.live());
    }
    let before = said.of_everybody(|what| match what {
        What::Place(position) => Some(position),
        What::Back { .. } | What::Turn => panic!("first of all: {what:?}"),
    });
    let before = before.await;
    assert!(before.iter().enumerate().all(|(who, (position, _))| *position == who as u64 + 1));

    // Everybody is told when to come back, and does.
    let stopped = Instant::now();
    let ended = tokio::task::block_in_place(|| leaving.terminate());
    assert_eq!(ended.code(), Some(0));
    let backs = said.of_everybody(|what| match what {
        What::Back { announced } => Some(announced),
        What::Place(_) | What::Turn => panic!("known already, or too early: {what:?}"),
    });
    let backs = backs.await;
    for (announced, at) in &backs {
        assert!((WINDOW.0..=WINDOW.1).contains(announced), "announced: {announced:?}");
        assert!(*at >= stopped + *announced, "came before it was told to");
    }
    let announced = shares(backs.iter().map(|(announced, _)| *announced - WINDOW.0));
    let first = backs.iter().map(|(_, at)| *at).min().unwrap();
    let arrived = shares(backs.iter().map(|(_, at)| *at - first));
    for spread in [announced, arrived] {
        let most = 3 * PEOPLE / TENTHS;
        assert!(spread.iter().all(|share| *share <= most), "a stampede: {spread:?}");
    }

    // Nobody has lost the place: all are let in, and hear it once.
    let quota = json!({ "tokenCountToMove": PEOPLE });
    scheduler.admin(Method::PUT, "waiting-queue/token-count-to-move", quota).await;
    said.of_everybody(|what| matches!(what, What::Turn).then_some(())).await;
    eventually(SOON, "all streams are at the pod that stays", async || {
        staying.metric("daegi_api_streams").await == PEOPLE as f64
    })
    .await;
    assert!(said.nothing_more(), "somebody was told twice");
}

/// Everybody joins at once; what is tested comes later.
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
    let users: Vec<_> =
        (0..PEOPLE).map(|who| UserId::parse(&format!("person-{who}")).unwrap()).collect();
    let joined = store.join(&item.id, &users, &settings, now).await.unwrap();
    let token = |(user, joined): (&UserId, JoinOutcome)| match joined {
        JoinOutcome::Ticket { number, .. } => {
            keys.token(&Ticket::new(item.id.clone(), user.clone(), number))
        }
        JoinOutcome::Refused(why) => panic!("refused: {why:?}"),
    };
    users.iter().zip(joined).map(token).collect()
}

/// How many times fall into each tenth of the window; whatever comes later is in the last.
fn shares(times: impl Iterator<Item = Duration>) -> [usize; TENTHS] {
    let mut shares = [0; TENTHS];
    let tenth = (WINDOW.1 - WINDOW.0) / TENTHS as u32;
    for time in times {
        shares[((time.as_secs_f64() / tenth.as_secs_f64()) as usize).min(TENTHS - 1)] += 1;
    }
    shares
}

/// What all of them say.
struct Crowd {
    tell: tokio::sync::mpsc::UnboundedSender<Said>,
    said: UnboundedReceiver<Said>,
}

impl Crowd {
    fn listen() -> Self {
        let (tell, said) = unbounded_channel();
        Self { tell, said }
    }

    /// What is expected of everybody, in the order of the line, and when they said it. Each says it
    /// once; whatever else they say is left out.
    async fn of_everybody<T>(
        &mut self,
        mut expected: impl FnMut(What) -> Option<T>,
    ) -> Vec<(T, Instant)> {
        let mut all: Vec<Option<(T, Instant)>> = (0..PEOPLE).map(|_| None).collect();
        let mut missing = PEOPLE;
        while missing > 0 {
            let said = timeout(SOON, self.said.recv()).await;
            let Said { who, what, at } =
                said.unwrap_or_else(|_| panic!("{missing} are silent")).unwrap();
            if let Some(told) = expected(what) {
                assert!(all[who].replace((told, at)).is_none(), "{who} says it twice");
                missing -= 1;
            }
        }
        all.into_iter().flatten().collect()
    }

    fn nothing_more(&mut self) -> bool {
        self.said.try_recv().is_err()
    }
}
