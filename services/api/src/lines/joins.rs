use std::sync::Arc;

use daegi_domain::UserId;
use daegi_store::Joined;

use super::batch::Counter;
use super::core::Core;
use crate::error::Result;
use crate::patience::in_time;

/// Joins people, one call for all who came at once.
pub(super) struct Joins(pub(super) Arc<Core>);

impl Counter for Joins {
    type Question = UserId;
    type Answer = Joined;

    async fn answer(&self, people: Vec<UserId>) -> Result<Vec<Joined>> {
        let Core { id, context, view, .. } = &*self.0;
        context.meters.join_batch.record(people.len() as f64);
        let settings = view.load().settings;
        let now = context.clock.now_ms();
        in_time("join", context.store.join(id, &people, &settings, now)).await
    }
}
