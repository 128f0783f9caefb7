//! Shares one store call among concurrent requests for the same line.
//!
//! A request that finds no call in flight is sent immediately. Requests that arrive during a call
//! form the next batch, which is sent when that call returns. A quiet line therefore adds no delay,
//! and a busy line needs few calls, because its batches grow with its load. No timer is involved: a
//! timer of 1 ms fires after up to 2 ms, which is longer than a call takes.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use daegi_domain::Ticket;
use daegi_store::{JoinOutcome, LaneJoin, TicketState};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use super::LineKey;
use super::handle::SharedLine;
use crate::error::{Error, Result};
use crate::timeouts::with_store_timeout;

/// Maximum requests per call, so that one call cannot block the store for long.
const MAX_BATCH: usize = 256;
/// Size at which a batch is sent without waiting for more requests, because a larger one saves next
/// to nothing per request.
const TARGET_BATCH: usize = 64;
/// Maximum requests that wait for the call in flight; further requests fail with
/// [`Error::Overloaded`].
const QUEUE_CAPACITY: usize = 16 * 1024;

/// Handles a batch of requests with one store call.
pub(super) trait BatchHandler: Send + Sync {
    type Request: Send;
    type Reply: Send;

    /// Returns one reply per request, in the same order.
    fn call(
        &self,
        requests: Vec<Self::Request>,
    ) -> impl Future<Output = Result<Vec<Self::Reply>>> + Send;
}

/// A request and the channel for its reply.
type Pending<Q, R> = (Q, oneshot::Sender<Result<R>>);

/// Queues requests for a [`Batcher`].
pub(super) struct BatchSender<Q, R>(mpsc::Sender<Pending<Q, R>>);

/// Receives queued requests and sends them in batches.
pub(super) struct Batcher<Q, R>(mpsc::Receiver<Pending<Q, R>>);

pub(super) fn channel<Q, R>() -> (BatchSender<Q, R>, Batcher<Q, R>) {
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    (BatchSender(sender), Batcher(receiver))
}

impl<Q, R> BatchSender<Q, R> {
    /// Sends a request with the next batch and waits for its reply.
    pub(super) async fn send(&self, request: Q) -> Result<R> {
        let (sender, reply) = oneshot::channel();
        self.0.try_send((request, sender)).map_err(|_| Error::Overloaded)?;
        reply.await.unwrap_or(Err(Error::StoreTimeout))
    }
}

impl<Q: Send, R: Send> Batcher<Q, R> {
    /// Runs until all senders are dropped.
    pub(super) async fn run(mut self, handler: impl BatchHandler<Request = Q, Reply = R>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while self.0.recv_many(&mut batch, MAX_BATCH).await > 0 {
            self.fill(&mut batch).await;
            // Requests whose client has disconnected need no call.
            batch.retain(|(_, reply)| !reply.is_closed());
            if batch.is_empty() {
                continue;
            }
            let (requests, senders): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
            let replies = handler.call(requests).await;
            if let Err(error) = &replies {
                self.reject_queued(error);
            }
            send_replies(replies, senders);
        }
    }

    /// Adds the requests that are about to be queued. Each `yield_now` lets the runtime process the
    /// sockets that are readable now: on an idle pod that is immediate and adds nothing, on a busy
    /// one it is where the batch grows. Stops after a pass that added nothing.
    async fn fill(&mut self, batch: &mut Vec<Pending<Q, R>>) {
        let mut filled = 0;
        while (filled..TARGET_BATCH).contains(&batch.len()) {
            filled = batch.len() + 1;
            yield_now().await;
            while batch.len() < MAX_BATCH
                && let Ok(pending) = self.0.try_recv()
            {
                batch.push(pending);
            }
        }
    }

    /// Fails all queued requests, because the next call would probably fail, too. A request
    /// therefore waits for at most two calls and needs no separate timeout.
    fn reject_queued(&mut self, error: &Error) {
        while let Ok((_, reply)) = self.0.try_recv() {
            let _ = reply.send(Err(error.clone()));
        }
    }
}

/// Sends each request its reply. Sending fails only if the client has disconnected, which needs no
/// handling.
fn send_replies<R>(replies: Result<Vec<R>>, senders: Vec<oneshot::Sender<Result<R>>>) {
    match replies {
        Ok(replies) => senders.into_iter().zip(replies).for_each(|(sender, reply)| {
            let _ = sender.send(Ok(reply));
        }),
        Err(error) => senders.into_iter().for_each(|sender| {
            let _ = sender.send(Err(error.clone()));
        }),
    }
}

/// Joins users to a line.
pub(super) struct JoinHandler(pub(super) Arc<SharedLine>);

impl BatchHandler for JoinHandler {
    type Request = LaneJoin;
    type Reply = JoinOutcome;

    async fn call(&self, joins: Vec<LaneJoin>) -> Result<Vec<JoinOutcome>> {
        let SharedLine { key: LineKey { item, lane }, context, cached, .. } = &*self.0;
        context.metrics.join_batch.record(joins.len() as f64);
        let settings = cached.load().settings;
        let now = context.clock.now_ms();
        let joined = context.store.join_lane(item, *lane, &joins, &settings, now);
        with_store_timeout("join", joined).await
    }
}

/// Resolves the state of tickets that do not wait in the line.
pub(super) struct ResolveHandler(pub(super) Arc<SharedLine>);

impl BatchHandler for ResolveHandler {
    type Request = Ticket;
    type Reply = TicketState;

    async fn call(&self, tickets: Vec<Ticket>) -> Result<Vec<TicketState>> {
        let SharedLine { context, .. } = &*self.0;
        let Deduplicated { unique, indices } = deduplicate(tickets);
        context.metrics.ask_batch.record(unique.len() as f64);
        let now = context.clock.now_ms();
        let states = with_store_timeout("resolve", context.store.resolve(&unique, now)).await?;
        // The store returns one state per ticket, so the default is never used.
        let state = |index: usize| states.get(index).copied().unwrap_or(TicketState::ItemUnknown);
        Ok(indices.into_iter().map(state).collect())
    }
}

/// Tickets without duplicates, and for each request the index of its ticket.
struct Deduplicated {
    unique: Vec<Ticket>,
    indices: Vec<usize>,
}

fn deduplicate(tickets: Vec<Ticket>) -> Deduplicated {
    let mut known = HashMap::with_capacity(tickets.len());
    let (mut unique, mut indices) = (Vec::new(), Vec::with_capacity(tickets.len()));
    for ticket in tickets {
        let index = *known.entry(ticket.clone()).or_insert(unique.len());
        if index == unique.len() {
            unique.push(ticket);
        }
        indices.push(index);
    }
    Deduplicated { unique, indices }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use daegi_domain::{ItemId, Number, UserId};
    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    /// Doubles numbers. A call needs a permit and records its size.
    struct Doubler {
        permits: Semaphore,
        sizes: Mutex<Vec<usize>>,
    }

    impl Doubler {
        fn with_permits(permits: usize) -> Self {
            Self { permits: Semaphore::new(permits), sizes: Mutex::default() }
        }
    }

    impl BatchHandler for &Doubler {
        type Request = u32;
        type Reply = u32;

        async fn call(&self, requests: Vec<u32>) -> Result<Vec<u32>> {
            self.sizes.lock().unwrap().push(requests.len());
            self.permits.acquire().await.unwrap().forget();
            if requests.contains(&13) {
                return Err(Error::StoreTimeout);
            }
            Ok(requests.into_iter().map(|n| n * 2).collect())
        }
    }

    #[tokio::test]
    async fn a_single_request_is_sent_immediately_and_concurrent_ones_share_calls() {
        let (doubler, (sender, batcher)) = (Doubler::with_permits(10), channel());
        let requests = async {
            assert_eq!(sender.send(4).await.unwrap(), 8);
            let replies = join_all((100..700).map(|n| sender.send(n))).await;
            assert!(replies.into_iter().map(Result::unwrap).eq((100..700).map(|n| n * 2)));
            drop(sender);
        };
        tokio::join!(requests, batcher.run(&doubler));
        assert_eq!(*doubler.sizes.lock().unwrap(), [1, 256, 256, 88]);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_arrive_during_a_call_share_the_next_one() {
        let (doubler, (sender, batcher)) = (Doubler::with_permits(0), channel());
        let requests = async {
            let first = sender.send(1);
            let later = async {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                assert_eq!(*doubler.sizes.lock().unwrap(), [1], "sent without waiting for others");
                let queued = join_all((2..9).map(|n| sender.send(n)));
                let release = async { doubler.permits.add_permits(2) };
                tokio::join!(queued, release).0
            };
            let (first, later) = tokio::join!(first, later);
            assert!(first.is_ok() && later.iter().all(Result::is_ok));
            drop(sender);
        };
        tokio::join!(requests, batcher.run(&doubler));
        assert_eq!(*doubler.sizes.lock().unwrap(), [1, 7]);
    }

    #[tokio::test]
    async fn a_failed_call_fails_the_requests_queued_during_it_and_none_after_it() {
        let (doubler, (sender, batcher)) = (Doubler::with_permits(10), channel());
        let requests = async {
            let replies = join_all((13..13 + 2 * MAX_BATCH as u32).map(|n| sender.send(n))).await;
            assert!(replies.iter().all(Result::is_err));
            assert_eq!(sender.send(2).await.unwrap(), 4);
            drop(sender);
        };
        tokio::join!(requests, batcher.run(&doubler));
    }

    #[test]
    fn a_ticket_that_is_requested_twice_is_resolved_once() {
        let item = ItemId::parse("concert").unwrap();
        let ticket = |user: &str, number| {
            Ticket::new(item.clone(), UserId::parse(user).unwrap(), Number(number))
        };
        let (kim, lee) = (ticket("kim", 1), ticket("lee", 2));
        let other = ticket("kim", 3);
        let tickets = vec![kim.clone(), lee.clone(), kim.clone(), other.clone(), lee.clone()];
        let Deduplicated { unique, indices } = deduplicate(tickets);
        assert_eq!(unique, [kim, lee, other]);
        assert_eq!(indices, [0, 1, 0, 2, 1]);
    }
}
