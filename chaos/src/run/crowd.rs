//! Everybody who comes.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemId, UserId};
use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::person::Person;
use super::pods::{Pods, Who};
use super::recorder::Recorder;
use super::stage::Stage;
use super::{Options, catalogue};

/// People, on their way.
pub(super) struct Crowd(JoinSet<()>);

impl Crowd {
    /// Lets them come, spread over the time in which faults happen.
    pub(super) async fn come(
        stage: &Stage,
        options: &Options,
        deadline: Instant,
        recorder: Arc<Recorder>,
    ) -> anyhow::Result<Self> {
        let pods = Arc::new(Pods::of(stage, recorder).await?);
        let mut chance = Rng::with_seed(options.seed ^ 0x0000_6372_6f77_6400);
        let (mut people, began) = (JoinSet::new(), Instant::now());
        // The last ones come when there are still faults to come.
        let most = options.seconds * 850;
        let items = catalogue::ids();
        for number in 0..options.people {
            let who = Who {
                user: UserId::parse(&format!("person-{number}"))?,
                item: ItemId::parse(&items[number % items.len()])?,
            };
            let comes = began + Duration::from_millis(chance.u64(0..most.max(1)));
            let (pods, chance) = (pods.clone(), chance.fork());
            people.spawn(Person { who, pods, chance, comes, deadline }.live());
        }
        Ok(Self(people))
    }

    /// Waits for the last of them; one who breaks down leaves a hole in the history.
    pub(super) async fn served(mut self) -> anyhow::Result<()> {
        while let Some(ended) = self.0.join_next().await {
            ended?;
        }
        Ok(())
    }
}
