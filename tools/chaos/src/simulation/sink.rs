//! An event sink that hands events to a function, in place of Kafka.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use daegi_kafka::{PendingDelivery, Result};
use daegi_runtime::Tracer;
use daegi_scheduler::relay::SinkSession;
use daegi_scheduler::{EventSink, SharedSink};
use daegi_store::OutboxBatch;

/// Receives events in order, and returns whether they were delivered.
type Callback = dyn Fn(&[OutboxBatch]) -> Result<()> + Send + Sync;

struct CallbackSink(Box<Callback>);

/// Returns a sink that calls `callback` for each send.
pub(super) fn callback_sink(
    callback: impl Fn(&[OutboxBatch]) -> Result<()> + Send + Sync + 'static,
) -> SharedSink {
    Arc::new(CallbackSink(Box::new(callback)))
}

#[async_trait]
impl EventSink for CallbackSink {
    fn session(&self) -> Box<dyn SinkSession + '_> {
        Box::new(CallbackSession(self))
    }
}

struct CallbackSession<'a>(&'a CallbackSink);

#[async_trait]
impl SinkSession for CallbackSession<'_> {
    async fn send(&self, batches: &[OutboxBatch], _: &Tracer) -> Result<PendingDelivery> {
        (self.0.0)(batches).map(|()| PendingDelivery::default())
    }
}

impl fmt::Debug for CallbackSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackSink").finish_non_exhaustive()
    }
}
