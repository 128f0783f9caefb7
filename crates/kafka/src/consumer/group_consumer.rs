//! A consumer that can be dropped on any thread.

use std::ops::Deref;

use rdkafka::consumer::StreamConsumer;

use super::GroupContext;

/// A member of a consumer group. Dropping it leaves the group on a new thread, because librdkafka
/// blocks until the group has accepted the leave, which takes long without a broker and may never
/// end after a seek.
pub(super) struct GroupConsumer(Option<StreamConsumer<GroupContext>>);

impl GroupConsumer {
    pub(super) fn new(consumer: StreamConsumer<GroupContext>) -> Self {
        Self(Some(consumer))
    }

    /// Leaves the group and blocks until the group has accepted the leave.
    pub(super) fn close(mut self) {
        drop(self.0.take());
    }
}

impl Deref for GroupConsumer {
    type Target = StreamConsumer<GroupContext>;

    fn deref(&self) -> &Self::Target {
        #[expect(
            clippy::expect_used,
            reason = "only close and drop take it, and both consume self"
        )]
        self.0.as_ref().expect("not closed")
    }
}

impl Drop for GroupConsumer {
    fn drop(&mut self) {
        if let Some(consumer) = self.0.take() {
            std::thread::spawn(move || drop(consumer));
        }
    }
}
