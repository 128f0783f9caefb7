//! All users of a run.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemId, UserId};
use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client::{RecordingClient, UserRef};
use super::fleet::ChaosFleet;
use super::recorder::Recorder;
use super::virtual_user::VirtualUser;
use super::{Options, items};

/// The running users.
pub(super) struct UserLoad(JoinSet<()>);

impl UserLoad {
    /// Starts the users, spread over the duration of the faults.
    pub(super) async fn start(
        fleet: &ChaosFleet,
        options: &Options,
        deadline: Instant,
        recorder: Arc<Recorder>,
    ) -> anyhow::Result<Self> {
        let client = Arc::new(RecordingClient::new(fleet, recorder).await?);
        let mut rng = Rng::with_seed(options.seed ^ 0x0000_6372_6f77_6400);
        let (mut users, began) = (JoinSet::new(), Instant::now());
        // The last users start before the last fault.
        let spread_ms = options.seconds * 850;
        let items = items::ids();
        for number in 0..options.people {
            let user_ref = UserRef {
                user: UserId::parse(&format!("person-{number}"))?,
                item: ItemId::parse(&items[number % items.len()])?,
            };
            let start_at = began + Duration::from_millis(rng.u64(0..spread_ms.max(1)));
            let (client, rng) = (client.clone(), rng.fork());
            users.spawn(VirtualUser { user_ref, client, rng, start_at, deadline }.run());
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
