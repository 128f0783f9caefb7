use std::sync::Arc;

use daegi_domain::{Number, UserId};
use daegi_store::Standing;

use super::batch::Counter;
use super::core::Core;
use crate::error::Result;
use crate::patience::in_time;

/// Asks the store what became of tickets that are not in the line any more.
pub(super) struct Asks(pub(super) Arc<Core>);

impl Counter for Asks {
    type Question = (UserId, Number);
    type Answer = Standing;

    async fn answer(&self, tickets: Vec<(UserId, Number)>) -> Result<Vec<Standing>> {
        let Core { id, context, .. } = &*self.0;
        context.meters.ask_batch.record(tickets.len() as f64);
        let now = context.clock.now_ms();
        in_time("resolve", context.store.resolve(id, &tickets, now)).await
    }
}
