//! All users of a run.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemId, UserId};
use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::arrival::Arrival;
use super::client::{RecordingClient, UserRef};
use super::fleet::ChaosFleet;
use super::invitations::Codes;
use super::openings::Openings;
use super::recorder::Recorder;
use super::virtual_user::VirtualUser;
use super::{Options, items};

/// The part of the users of an opening who come to its lobby.
const IN_LOBBY: f64 = 0.7;

/// Users of lines with lanes come in bursts, one per so many seconds, so that all lanes have tickets for some time.
const BURST_INTERVAL_SECONDS: u64 = 40;
const BURST_MS: u64 = 4_000;

/// Of 20 users of a line with lanes, how many are in each lane.
const IN_LANES: [u8; 4] = [11, 5, 3, 1];

/// The part of the single-use codes that two users have, who come at the same time.
const SHARED_CODES: f64 = 0.2;

/// The part of the users with a code who join without it first.
const MOVING: f64 = 0.15;

/// The running users.
pub(super) struct UserLoad(JoinSet<()>);

/// Decides when users come, and gives them codes.
struct Guests<'a> {
    openings: &'a Openings,
    codes: Codes,
    began: Instant,
    seconds: u64,
    rng: Rng,
    /// The last single-use code of each lane with its user's arrival, to be shared.
    last: HashMap<(String, u8), (String, Arrival)>,
}

impl UserLoad {
    /// Starts the users, spread over the duration of the faults.
    pub(super) async fn start(
        fleet: &ChaosFleet,
        options: &Options,
        deadline: Instant,
        (openings, codes): (&Openings, Codes),
        recorder: Arc<Recorder>,
    ) -> anyhow::Result<Self> {
        let client = Arc::new(RecordingClient::new(fleet, recorder).await?);
        let rng = Rng::with_seed(options.seed ^ 0x0000_6372_6f77_6400);
        let (began, last, seconds) = (Instant::now(), HashMap::new(), options.seconds);
        let mut guests = Guests { openings, codes, began, seconds, rng, last };
        let (mut users, items) = (JoinSet::new(), items::by_crowd());
        for number in 0..options.people {
            let item = &items[number % items.len()];
            let user_ref = UserRef {
                user: UserId::parse(&format!("person-{number}"))?,
                item: ItemId::parse(item)?,
            };
            let (arrival, code) = guests.next(item);
            let (client, mut rng) = (client.clone(), guests.rng.fork());
            let moves = code.is_some() && rng.f64() < MOVING;
            let user = VirtualUser { user_ref, client, rng, arrival, deadline, code, moves };
            users.spawn(user.run());
        }
        Ok(Self(users))
    }

    /// Waits for all users. A panicked user is an error, because the history is incomplete.
    pub(super) async fn join_all(mut self) -> anyhow::Result<()> {
        while let Some(ended) = self.0.join_next().await {
            ended?;
        }
        Ok(())
    }
}

impl Guests<'_> {
    /// When the next user of an item comes, and the user's code.
    fn next(&mut self, item: &str) -> (Arrival, Option<String>) {
        if let Some(opening) = self.openings.watch(item) {
            let arrival = if self.rng.f64() < IN_LOBBY {
                Arrival::InLobby(opening, self.rng.f64())
            } else {
                let latest = Duration::from_secs(self.seconds) / 4;
                Arrival::AfterOpening(opening, latest.mul_f64(self.rng.f64()))
            };
            return (arrival, None);
        }
        if !self.codes.keys().any(|(of, _)| of == item) {
            // The last users start before the last fault.
            let at = self.rng.u64(0..(self.seconds * 850).max(1));
            return (Arrival::At(self.began + Duration::from_millis(at)), None);
        }
        let key = (item.to_owned(), self.lane());
        let arrival = Arrival::At(self.began + self.in_burst());
        let Some(codes) = self.codes.get_mut(&key) else { return (arrival, None) };
        if codes.len() == 1 {
            return (arrival, codes.first().cloned());
        }
        if self.rng.f64() < SHARED_CODES
            && let Some((code, arrival)) = self.last.remove(&key)
        {
            return (arrival, Some(code));
        }
        let code = codes.pop();
        if let Some(code) = &code {
            self.last.insert(key, (code.clone(), arrival.clone()));
        }
        (arrival, code)
    }

    fn lane(&mut self) -> u8 {
        let mut place = self.rng.u8(0..IN_LANES.iter().sum());
        for (lane, count) in (0..).zip(IN_LANES) {
            if place < count {
                return lane;
            }
            place -= count;
        }
        0
    }

    fn in_burst(&mut self) -> Duration {
        let bursts = (self.seconds / BURST_INTERVAL_SECONDS).max(1);
        let since = Duration::from_secs(self.seconds) / bursts as u32;
        since * self.rng.u32(0..bursts as u32) + Duration::from_millis(self.rng.u64(0..BURST_MS))
    }
}
