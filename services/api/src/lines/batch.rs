//! Many requests, one call. A lone request goes at once; what arrives while a call is under way
//! forms the next one. Where calls are shared, people come faster than calls end, and the next call
//! waits until a millisecond after the last one began: it then serves everybody who came in that
//! time, at the price of one. So a quiet line adds no delay, and a busy one few calls.

use std::future::Future;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::error::{Error, Result};

/// The most requests in one call, so that it cannot hold up the store.
const MOST: usize = 256;
/// From the beginning of a call that several shared to the next one.
const PACE: Duration = Duration::from_millis(1);
/// The most requests that wait for the call under way; more are told to come back.
const QUEUED: usize = 16 * 1024;

/// Answers the questions of many in one call.
pub(super) trait Counter: Send + Sync {
    type Question: Send;
    type Answer: Send;

    /// One answer for each question, in their order.
    fn answer(
        &self,
        questions: Vec<Self::Question>,
    ) -> impl Future<Output = Result<Vec<Self::Answer>>> + Send;
}

type Waiting<Q, A> = (Q, oneshot::Sender<Result<A>>);

/// Where requests hand in their questions.
pub(super) struct Queue<Q, A>(mpsc::Sender<Waiting<Q, A>>);

/// Where the questions come out.
pub(super) struct Batches<Q, A>(mpsc::Receiver<Waiting<Q, A>>);

pub(super) fn queue<Q, A>() -> (Queue<Q, A>, Batches<Q, A>) {
    let (sender, receiver) = mpsc::channel(QUEUED);
    (Queue(sender), Batches(receiver))
}

impl<Q, A> Queue<Q, A> {
    pub(super) async fn ask(&self, question: Q) -> Result<A> {
        let (reply, answer) = oneshot::channel();
        let queued = self.0.try_send((question, reply));
        queued.map_err(|_| Error::Overloaded)?;
        answer.await.unwrap_or(Err(Error::Slow))
    }
}

impl<Q: Send, A: Send> Batches<Q, A> {
    /// Answers until nobody can ask any more.
    pub(super) async fn work(mut self, counter: impl Counter<Question = Q, Answer = A>) {
        let (mut batch, mut shared) = (Vec::with_capacity(MOST), None);
        while self.0.recv_many(&mut batch, MOST).await > 0 {
            if let Some(begun) = shared {
                self.gather(&mut batch, begun + PACE).await;
            }
            // Who gave up meanwhile is not worth the store's time.
            batch.retain(|(_, reply)| !reply.is_closed());
            if batch.is_empty() {
                continue;
            }
            shared = (batch.len() > 1).then(Instant::now);
            let (questions, replies): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
            let answers = counter.answer(questions).await;
            if let Err(error) = &answers {
                self.turn_away(error);
            }
            deliver(answers, replies);
        }
    }
}

impl<Q, A> Batches<Q, A> {
    /// Whoever queued while a call failed would only wait for the next failure: nobody waits for
    /// more than two calls, and none of them needs a timer of their own for that.
    fn turn_away(&mut self, error: &Error) {
        while let Ok((_, reply)) = self.0.try_recv() {
            let _ = reply.send(Err(error.clone()));
        }
    }

    /// Lets others come until it is time, unless there are enough.
    async fn gather(&mut self, batch: &mut Vec<Waiting<Q, A>>, time: Instant) {
        if batch.len() < MOST {
            sleep_until(time).await;
            while batch.len() < MOST
                && let Ok(waiting) = self.0.try_recv()
            {
                batch.push(waiting);
            }
        }
    }
}

fn deliver<A>(answers: Result<Vec<A>>, replies: Vec<oneshot::Sender<Result<A>>>) {
    // A send fails only if the person is gone; then nobody misses it.
    match answers {
        Ok(answers) => replies.into_iter().zip(answers).for_each(|(reply, answer)| {
            let _ = reply.send(Ok(answer));
        }),
        Err(error) => replies.into_iter().for_each(|reply| {
            let _ = reply.send(Err(error.clone()));
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::future::join_all;

    use super::*;

    #[derive(Default)]
    struct Doubler {
        sizes: Mutex<Vec<usize>>,
    }

    impl Counter for &Doubler {
        type Question = u32;
        type Answer = u32;

        async fn answer(&self, questions: Vec<u32>) -> Result<Vec<u32>> {
            tokio::task::yield_now().await;
            self.sizes.lock().unwrap().push(questions.len());
            if questions.contains(&13) {
                return Err(Error::Slow);
            }
            Ok(questions.into_iter().map(|n| n * 2).collect())
        }
    }

    #[tokio::test]
    async fn a_lone_question_goes_at_once_and_a_crowd_goes_together() {
        let (doubler, (queue, batches)) = (Doubler::default(), queue());
        let asking = async {
            assert_eq!(queue.ask(4).await.unwrap(), 8);
            let crowd = join_all((100..700).map(|n| queue.ask(n))).await;
            assert!(crowd.into_iter().map(Result::unwrap).eq((100..700).map(|n| n * 2)));
            drop(queue);
        };
        tokio::join!(asking, batches.work(&doubler));
        assert_eq!(*doubler.sizes.lock().unwrap(), [1, 256, 256, 88]);
    }

    #[tokio::test]
    async fn trouble_reaches_everybody_who_asked_meanwhile_and_nobody_after_it() {
        let (doubler, (queue, batches)) = (Doubler::default(), queue());
        let asking = async {
            let crowd = join_all((13..13 + 2 * MOST as u32).map(|n| queue.ask(n))).await;
            assert!(crowd.iter().all(Result::is_err));
            assert_eq!(queue.ask(2).await.unwrap(), 4);
            drop(queue);
        };
        tokio::join!(asking, batches.work(&doubler));
    }
}
