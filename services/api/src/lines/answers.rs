use std::time::Duration;

use daegi_domain::{ItemId, LineState, Number, Ticket, UserId};
use daegi_store::{Place, Standing};
use tokio::time::Instant;

use super::View;
use super::recent::RecentCache;

/// How long the end of a ticket is remembered. An end is final, but a line that loses data may
/// forget it: 5 s bound how long a pod that has not noticed the loss yet contradicts the store.
const END_RETENTION: Duration = Duration::from_secs(5);
/// How long an entry is remembered: as long as a position may be old.
const ENTRY_RETENTION: Duration = Duration::from_millis(250);
/// How long an answer is remembered while the item is not there, as long as the item counts as absent.
const WITHOUT_ITEM_RETENTION: Duration = Duration::from_secs(1);
/// Answers per generation of the cache, some 150 bytes each.
const CAPACITY: usize = 8 * 1024;

/// What the store answered about tickets that are not in the line any more, so that repeated polls
/// of one ticket share a call.
pub(super) struct Answers {
    of_lines: RecentCache<(ItemId, Number), Answer>,
    without_item: RecentCache<(ItemId, Number), (UserId, Standing)>,
}

#[derive(Clone)]
struct Answer {
    user: UserId,
    standing: Standing,
    line: LineVersion,
    ended: u64,
    at: Instant,
}

/// Which line of an item answered: a restart or a data loss makes another one of it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LineVersion {
    base: Number,
    valid_from: Number,
}

impl Answers {
    pub(super) fn new() -> Self {
        Self {
            of_lines: RecentCache::new(END_RETENTION, CAPACITY),
            without_item: RecentCache::new(WITHOUT_ITEM_RETENTION, CAPACITY),
        }
    }

    /// Returns what the store answered lately, if `view` shows no reason why that may have changed.
    pub(super) fn get(&self, ticket: &Ticket, view: &View) -> Option<Standing> {
        let answer = self.of_lines.get(&(ticket.item.clone(), ticket.number))?;
        let is_same_line = answer.line == LineVersion::from(view)
            && answer.user == ticket.user
            && view.state != LineState::Recovering;
        let holds = match answer.standing {
            Standing::Ended(_) | Standing::Restarted => true,
            Standing::At(Place::Entered { .. }) => {
                answer.ended == view.line.ended && answer.at.elapsed() < ENTRY_RETENTION
            }
            Standing::At(Place::Waiting { .. }) | Standing::NotFound | Standing::Forgotten => false,
        };
        (is_same_line && holds).then_some(answer.standing)
    }

    /// Remembers an answer that the store gave after `view` was read.
    pub(super) fn insert(&self, ticket: &Ticket, standing: Standing, view: &View) {
        let lasts = !matches!(
            standing,
            Standing::At(Place::Waiting { .. }) | Standing::NotFound | Standing::Forgotten
        );
        if lasts && view.state != LineState::Recovering {
            let (user, line, at) = (ticket.user.clone(), LineVersion::from(view), Instant::now());
            let answer = Answer { user, standing, line, ended: view.line.ended, at };
            self.of_lines.insert((ticket.item.clone(), ticket.number), answer);
        }
    }

    /// The same for a ticket whose item is not there.
    pub(super) fn get_without_item(&self, ticket: &Ticket) -> Option<Standing> {
        let (user, standing) = self.without_item.get(&(ticket.item.clone(), ticket.number))?;
        (user == ticket.user).then_some(standing)
    }

    pub(super) fn insert_without_item(&self, ticket: &Ticket, standing: Standing) {
        let key = (ticket.item.clone(), ticket.number);
        self.without_item.insert(key, (ticket.user.clone(), standing));
    }

    /// Forgets a ticket that this pod is about to end or has ended.
    pub(super) fn remove(&self, item: &ItemId, number: Number) {
        let key = (item.clone(), number);
        self.of_lines.remove(&key);
        self.without_item.remove(&key);
    }
}

impl From<&View> for LineVersion {
    fn from(view: &View) -> Self {
        Self { base: view.line.base, valid_from: view.line.valid_from }
    }
}
