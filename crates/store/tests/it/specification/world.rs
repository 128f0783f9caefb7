use std::fmt::Debug;

use daegi_domain::{
    EndReason, ItemChange, ItemId, ItemName, ItemNews, LineEvent, LogPosition, Number, Said,
    SeenPage, Settings, UserId,
};
use daegi_store::{
    DepartedCursor, Epoch, Joined, LeaveLimit, MemoryStore, OutboxBatch, RedisStore, Reentry,
    Replica, Result, Store,
};

use super::fairness::Fairness;
use super::history::{News, Op};
use crate::support::{PARTITIONS, SETTINGS, START, Setup, item, user};

/// So few leaves that random histories exceed them.
const LEAVES: LeaveLimit = LeaveLimit(2);

/// What went wrong, in words.
pub(crate) type Wrong = String;

/// Two stores that must not be told apart, and a clock.
pub(crate) struct World<'a> {
    setup: &'a Setup,
    /// A replica that does not get the newest writes.
    replica: Option<Replica>,
    /// Whether the partitions of Redis have a copy of the settings: now, and in the replica.
    copied: (bool, bool),
    pub(super) memory: MemoryStore,
    redis: RedisStore,
    pub(super) now: u64,
    pub(super) items: Vec<ItemId>,
    users: Vec<UserId>,
    /// Every ticket ever given, per item.
    pub(super) tickets: Vec<Vec<(UserId, Number)>>,
    cursors: Vec<DepartedCursor>,
    sweeps: Vec<Number>,
    settings: Settings,
    epoch: Epoch,
    fairness: Fairness,
}

/// Asks both stores the same and insists on the same answer.
macro_rules! both {
    ($world:expr, $store:ident => $ask:expr) => {{
        let specified = {
            let $store = &$world.memory;
            $ask.await
        };
        let found = {
            let $store = &$world.redis;
            $ask.await
        };
        same(specified, found)
    }};
}

fn same<T: PartialEq + Debug>(
    specified: Result<T>,
    found: Result<T>,
) -> std::result::Result<T, Wrong> {
    // Errors are compared by what they say; both stores must refuse a stale epoch alike.
    let specified = specified.map_err(|error| error.to_string());
    let found = found.map_err(|error| error.to_string());
    if specified == found {
        return specified.map_err(|refused| format!("refused: {refused}"));
    }
    Err(format!("specified {specified:?}, but redis answers {found:?}"))
}

/// A refusal both agree on is an answer, not a failure.
fn refused_alike<T>(
    answer: std::result::Result<T, Wrong>,
) -> std::result::Result<Option<T>, Wrong> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(wrong) if wrong.starts_with("refused: ") => Ok(None),
        Err(wrong) => Err(wrong),
    }
}

impl<'a> World<'a> {
    pub(crate) async fn new(setup: &'a Setup) -> Self {
        setup.flush().await;
        let items: Vec<_> = ["concert", "drop-2-a", "course.101"].map(item).into();
        Self {
            setup,
            replica: None,
            copied: (false, false),
            memory: MemoryStore::new(PARTITIONS, SETTINGS).with_leave_limit(LEAVES),
            redis: RedisStore::open(&setup.url(), PARTITIONS, SETTINGS)
                .await
                .unwrap()
                .with_leave_limit(LEAVES),
            now: START,
            tickets: vec![Vec::new(); items.len()],
            cursors: vec![DepartedCursor::default(); items.len()],
            sweeps: vec![Number(0); items.len()],
            fairness: Fairness::new(items.len()),
            items,
            users: (0..9).map(|n| user(&format!("u-{n}@x:{}", n * n))).collect(),
            settings: SETTINGS,
            epoch: Epoch(0),
        }
    }

    /// One step on both stores; then the line must still be fair.
    pub(crate) async fn step(&mut self, op: &Op) -> std::result::Result<(), Wrong> {
        self.run(op).await?;
        let mut fairness = std::mem::take(&mut self.fairness);
        let judged = fairness.judge(self).await;
        self.fairness = fairness;
        judged
    }

    async fn run(&mut self, op: &Op) -> std::result::Result<(), Wrong> {
        match op {
            Op::Put { .. }
            | Op::Remove { .. }
            | Op::News { .. }
            | Op::Catalogue { .. }
            | Op::Policy { .. } => self.change_item(op).await,
            Op::Pause { item, paused } => {
                both!(self, store => store.set_paused(&self.items[*item], *paused, self.now))
                    .map(drop)
            }
            Op::Reset { item } => {
                both!(self, store => store.reset(&self.items[*item], self.now)).map(drop)
            }
            Op::Join { item, users } => {
                let users: Vec<_> = users.iter().map(|index| self.users[*index].clone()).collect();
                self.join(*item, &users).await
            }
            Op::Crowd { item, from, count } => {
                let crowd: Vec<_> = (*from..from + count).map(|n| user(&format!("c{n}"))).collect();
                for batch in crowd.chunks(256) {
                    self.join(*item, batch).await?;
                }
                Ok(())
            }
            Op::Snapshot { item } => self.snapshot(*item).await,
            Op::Mark { item, tickets } => self.mark(*item, self.numbers(*item, tickets)).await,
            Op::MarkAll { item, every } => {
                let numbers = self.tickets[*item].iter().step_by(*every).map(|one| one.1).collect();
                self.mark(*item, numbers).await
            }
            Op::Resolve { item, tickets, off } => self.resolve(*item, tickets, *off).await,
            Op::Leave { item, ticket, off } => {
                let Some((user, number)) = self.shown(*item, *ticket, *off) else {
                    return Ok(());
                };
                both!(self, store => store.leave(&self.items[*item], &user, number, self.now))
                    .map(drop)
            }
            Op::Complete { item, ticket, cancelled } => {
                let Some((user, number)) = self.ticket(*item, *ticket) else {
                    return Ok(());
                };
                let reason = if *cancelled { EndReason::Left } else { EndReason::Completed };
                let (id, now) = (&self.items[*item], self.now);
                both!(self, store => store.complete(id, &user, number, reason, now)).map(drop)
            }
            Op::Reenter { item, ticket } => {
                let Some((user, number)) = self.ticket(*item, *ticket) else {
                    return Ok(());
                };
                self.fairness.shows_pass(*item, number);
                let (id, now) = (&self.items[*item], self.now);
                let entry = Reentry { user, number, at: now - 20_000, expires_at: now + 40_000 };
                both!(self, store => store.reenter(id, &entry, now)).map(drop)
            }
            Op::Replicate => {
                let copied = self.setup.replicate().await;
                self.replica = copied.then(|| self.memory.replica());
                self.copied.1 = self.copied.0;
                Ok(())
            }
            Op::LoseNewest | Op::LoseEverything => self.lose(op).await,
            Op::FreshStart => self.start_fresh().await,
            Op::DeclareLoss => both!(self, store => store.declare_loss(self.now)),
            Op::NoteEnded { item, tickets, completed } => {
                let reason = if *completed { EndReason::Completed } else { EndReason::Abandoned };
                let tickets = tickets.iter().filter_map(|index| self.ticket(*item, *index));
                let ended: Vec<_> = tickets.map(|(user, number)| (user, number, reason)).collect();
                let (id, now) = (&self.items[*item], self.now);
                both!(self, store => store.note_ended(id, &ended, now)).map(drop)
            }
            Op::BeginTerm => {
                self.epoch = both!(self, store => store.begin_term(self.now))?;
                self.copied.0 = true;
                both!(self, store => store.copy_settings())
            }
            Op::Admit { .. } | Op::Expire { .. } | Op::Sweep { .. } => self.lead(op).await,
            Op::Ack { partition, batches } => self.ack(*partition, *batches).await,
            Op::Settings { quota, tick_ms } => {
                self.settings = both!(self, store => store.set_settings(*quota, *tick_ms))?;
                self.copied.0 = true;
                Ok(())
            }
            Op::Journal { entry } => {
                let entry = format!("콘서트 {entry}");
                both!(self, store => store.journal_write(&entry))?;
                both!(self, store => store.journal_read(entry.len() as u32 % 4)).map(drop)
            }
            Op::Notice { who, text } => {
                let (who, text) = (format!("pod-{who}"), format!("{text} and more"));
                both!(self, store => store.post_notice(&who, &text, self.now))?;
                both!(self, store => store.notices(self.now)).map(drop)
            }
            Op::Advance { ms } => {
                self.now = self.now.saturating_add_signed(*ms);
                Ok(())
            }
        }
    }

    /// Loses the newest writes if there is a replica, otherwise everything; then a consumer reads
    /// all items again.
    async fn lose(&mut self, op: &Op) -> std::result::Result<(), Wrong> {
        let replica = self.replica.take().filter(|_| matches!(op, Op::LoseNewest));
        let everything = replica.is_none();
        self.copied.0 = !everything && self.copied.1;
        match &replica {
            Some(_) => self.setup.fail_over().await,
            None => self.setup.flush().await,
        }
        self.memory.lose(replica);
        self.go_on(everything).await
    }

    /// New processes start on an empty store: nothing is evidence of a loss.
    async fn start_fresh(&mut self) -> std::result::Result<(), Wrong> {
        self.setup.flush().await;
        self.replica = None;
        self.copied.0 = false;
        self.memory = MemoryStore::new(PARTITIONS, SETTINGS).with_leave_limit(LEAVES);
        self.redis = RedisStore::open(&self.setup.url(), PARTITIONS, SETTINGS)
            .await
            .unwrap()
            .with_leave_limit(LEAVES);
        self.epoch = Epoch(0);
        self.go_on(true).await
    }

    async fn go_on(&mut self, everything: bool) -> std::result::Result<(), Wrong> {
        // Clocks do not go back so far that a new line begins among the numbers of the old one.
        let given = self.tickets.iter().flatten().map(|(_, number)| number.0 / 64).max();
        self.now = self.now.max(given.unwrap_or(0)) + 1_000;
        for item in (0..self.items.len()).filter(|_| everything) {
            let put = Op::Put { item, stock: 6, enabled: true, version: None, policy: None };
            self.change_item(&put).await?;
        }
        self.settings = both!(self, store => store.settings())?;
        let mut fairness = Fairness::new(self.items.len());
        fairness.begin_anew(self).await;
        self.fairness = fairness;
        Ok(())
    }

    async fn change_item(&mut self, op: &Op) -> std::result::Result<(), Wrong> {
        match op {
            Op::Put { item, stock, enabled, version, policy } => {
                let change = ItemChange {
                    id: self.items[*item].clone(),
                    name: ItemName::parse("콘서트 8 pm").unwrap(),
                    stock: *stock,
                    enabled: *enabled,
                    version: *version,
                    policy: policy.clone(),
                };
                both!(self, store => store.put_item(&change, self.now)).map(drop)
            }
            Op::Remove { item } => {
                both!(self, store => store.remove_item(&self.items[*item])).map(drop)
            }
            Op::News { news } => {
                let news: Vec<_> = news.iter().map(|news| self.news(news)).collect();
                both!(self, store => store.apply_news(&news, self.now)).map(drop)
            }
            Op::Catalogue { log, step } => {
                let log = ["items/0", "items/1"][*log];
                match step {
                    0 => both!(self, store => store.begin_catalogue(log))?,
                    1 => both!(self, store => store.end_catalogue(log)).map(drop)?,
                    _ => {}
                }
                both!(self, store => store.catalogue(log)).map(drop)
            }
            Op::Policy { item, policy, outdated } => {
                let id = &self.items[*item];
                let current = both!(self, store => store.item(id))?;
                let revision = current.map_or(0, |item| item.revision) + u64::from(*outdated);
                both!(self, store => store.set_policy(id, policy, revision, self.now)).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn news(&self, news: &News) -> ItemNews {
        let id = self.items[news.item].clone();
        let said = if news.gone {
            Said::Gone { id, version: news.version }
        } else {
            let name = ItemName::parse("연극 3 pm").unwrap();
            let (stock, version) = (news.stock, news.version);
            Said::Changed(ItemChange { id, name, stock, enabled: true, version, policy: None })
        };
        ItemNews { said, read: LogPosition { offset: news.offset, at: news.at } }
    }

    async fn join(&mut self, item: usize, users: &[UserId]) -> std::result::Result<(), Wrong> {
        // Where partitions have a copy of the settings, those of a pod that are old do not count.
        let outdated = Settings { token_count_to_move: 7, ..self.settings };
        let settings = if self.copied.0 { &outdated } else { &self.settings };
        let (id, now) = (&self.items[item], self.now);
        let answers = both!(self, store => store.join(id, users, settings, now))?;
        for (user, answer) in users.iter().zip(answers) {
            if let Joined::At { number, new: true, .. } = answer {
                self.keep(item, &(user.clone(), number));
            }
        }
        Ok(())
    }

    async fn snapshot(&mut self, item: usize) -> std::result::Result<(), Wrong> {
        let cursor = self.cursors[item];
        let snapshot = both!(self, store => store.snapshot(&self.items[item], cursor))?;
        self.cursors[item] = snapshot.map_or(cursor, |snapshot| snapshot.cursor);
        Ok(())
    }

    async fn mark(&mut self, item: usize, numbers: Vec<Number>) -> std::result::Result<(), Wrong> {
        let pages = SeenPage::of(numbers);
        both!(self, store => store.mark_seen(&self.items[item], &pages, self.now))
    }

    async fn resolve(
        &mut self,
        item: usize,
        tickets: &[usize],
        off: u64,
    ) -> std::result::Result<(), Wrong> {
        let mut asked = Vec::new();
        for index in tickets {
            let Some(shown) = self.shown(item, *index, off) else { continue };
            // Whom the store takes back has this number from here on.
            self.keep(item, &shown);
            asked.push(shown);
        }
        both!(self, store => store.resolve(&self.items[item], &asked, self.now)).map(drop)
    }

    async fn lead(&mut self, op: &Op) -> std::result::Result<(), Wrong> {
        let term = |stale: &bool| Epoch(self.epoch.0 - u64::from(*stale && self.epoch.0 > 0));
        let now = self.now;
        match op {
            Op::Admit { item, quota, spacing, outbox_max, stale } => {
                let (id, epoch) = (&self.items[*item], term(stale));
                let answer = both!(self, store => store.admit(epoch, id, *quota, *spacing, *outbox_max, now));
                if let Some(admission) = refused_alike(answer)?
                    && admission.admitted > 0
                {
                    self.fairness.check_capacity(&self.memory, id).await?;
                }
                Ok(())
            }
            Op::Expire { item, stale } => {
                let (id, epoch) = (&self.items[*item], term(stale));
                refused_alike(both!(self, store => store.expire(epoch, id, now))).map(drop)
            }
            Op::Sweep { item, stale } => {
                let (id, epoch, cursor) = (&self.items[*item], term(stale), self.sweeps[*item]);
                let answer = both!(self, store => store.sweep(epoch, id, cursor, now));
                let next = refused_alike(answer)?.map(|sweep| sweep.cursor);
                self.sweeps[*item] = next.unwrap_or(cursor);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn ack(&mut self, partition: u16, batches: usize) -> std::result::Result<(), Wrong> {
        let (specified, found) = self.outboxes(partition).await?;
        let ids = |outbox: &[OutboxBatch]| -> Vec<String> {
            outbox.iter().take(batches).map(|batch| batch.id.clone()).collect()
        };
        self.memory.outbox_ack(partition, &ids(&specified)).await.unwrap();
        self.redis.outbox_ack(partition, &ids(&found)).await.unwrap();
        // A second confirmation of the same batches must change nothing.
        self.redis.outbox_ack(partition, &ids(&found)).await.unwrap();
        Ok(())
    }

    /// Both outboxes of a partition; they must hold the same events in the same batches.
    async fn outboxes(
        &self,
        partition: u16,
    ) -> std::result::Result<(Vec<OutboxBatch>, Vec<OutboxBatch>), Wrong> {
        let specified = self.memory.outbox_read(partition, None, 100_000).await.unwrap();
        let found = self.redis.outbox_read(partition, None, 100_000).await.unwrap();
        let contents = |outbox: &[OutboxBatch]| -> Vec<(ItemId, Vec<LineEvent>)> {
            outbox.iter().map(|batch| (batch.item.clone(), batch.events.clone())).collect()
        };
        if contents(&specified) != contents(&found) {
            return Err(format!(
                "outbox {partition}: specified {specified:?}, redis has {found:?}"
            ));
        }
        both!(self, store => store.outbox_len(partition))?;
        Ok((specified, found))
    }

    /// After the last step everything that can be asked is asked.
    pub(crate) async fn finish(&mut self) -> std::result::Result<(), Wrong> {
        both!(self, store => store.items())?;
        both!(self, store => store.active_lines())?;
        both!(self, store => store.settings())?;
        both!(self, store => store.journal_read(u32::MAX))?;
        both!(self, store => store.notices(self.now))?;
        both!(self, store => store.counts(&self.items))?;
        for partition in 0..PARTITIONS {
            self.outboxes(partition).await?;
        }
        for item in 0..self.items.len() {
            let start = DepartedCursor::default();
            both!(self, store => store.snapshot(&self.items[item], start))?;
            // The first asking takes people back who were lost, who then stand as the second says.
            let (id, tickets) = (&self.items[item], &self.tickets[item]);
            both!(self, store => store.resolve(id, tickets, self.now))?;
            let standings = both!(self, store => store.resolve(id, tickets, self.now))?;
            Fairness::check_one_place_each(tickets, &standings)?;
        }
        Ok(())
    }

    fn ticket(&self, item: usize, index: usize) -> Option<(UserId, Number)> {
        let tickets = &self.tickets[item];
        (!tickets.is_empty()).then(|| tickets[index % tickets.len()].clone())
    }

    /// A ticket with a number that is `off`, as a store that lost it would see it. Tickets are
    /// signed, so that nobody shows a number of somebody else.
    fn shown(&self, item: usize, index: usize, off: u64) -> Option<(UserId, Number)> {
        let (user, Number(number)) = self.ticket(item, index)?;
        let number = Number(number + off);
        let holder = self.tickets[item].iter().find(|given| given.1 == number);
        holder.is_none_or(|(holder, _)| *holder == user).then_some((user, number))
    }

    fn keep(&mut self, item: usize, ticket: &(UserId, Number)) {
        if !self.tickets[item].contains(ticket) {
            self.tickets[item].push(ticket.clone());
        }
    }

    fn numbers(&self, item: usize, tickets: &[usize]) -> Vec<Number> {
        tickets.iter().filter_map(|index| Some(self.ticket(item, *index)?.1)).collect()
    }
}
