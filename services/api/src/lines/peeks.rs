use std::sync::Arc;
use std::time::Duration;

use daegi_domain::ItemId;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::View;
use super::core::Context;
use super::reader::{Depth, Reader};
use super::recent::RecentCache;
use crate::error::{Error, Result};

/// How old a look may be: as old as `Cache-Control` of the public line endpoint allows.
const RETENTION: Duration = Duration::from_secs(1);
/// Lines per generation of the cache, some 2 KB each.
const CAPACITY: usize = 1024;

type Peek = Shared<BoxFuture<'static, Result<Arc<View>>>>;

/// Looks at lines that no ticket of this pod needs. A look costs one read per item and second, and
/// starts no task, so that a client that walks all items of a shop leaves nothing behind.
pub(super) struct Peeks {
    context: Arc<Context>,
    tracker: TaskTracker,
    reads: RecentCache<ItemId, Peek>,
}

impl Peeks {
    pub(super) fn new(context: Arc<Context>, tracker: TaskTracker) -> Self {
        Self { context, tracker, reads: RecentCache::new(RETENTION, CAPACITY) }
    }

    /// What the public may know of a line. Concurrent looks share a read.
    pub(super) async fn peek(&self, id: &ItemId) -> Result<Arc<View>> {
        let looked = self.reads.get_or_insert(id, || self.read(id));
        let looked = looked.await;
        if looked.as_ref().is_err_and(Error::passes) {
            self.reads.remove(id);
        }
        looked
    }

    /// Reads on a task of its own: all requests that wait may give up, and a read that is not
    /// polled any more would hold the locks it has.
    fn read(&self, id: &ItemId) -> Peek {
        let (context, id) = (Arc::clone(&self.context), id.clone());
        let (done, read) = oneshot::channel();
        self.tracker.spawn(async move {
            let view = Reader::new().first_read(&id, &context, Depth::Summary).await;
            // Sending fails only if no request waits any more.
            let _ = done.send(view.map(Arc::new));
        });
        read.map(|read| read.unwrap_or(Err(Error::Slow))).boxed().shared()
    }
}
