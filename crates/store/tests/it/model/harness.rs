use std::collections::BTreeMap;
use std::fmt::Debug;

use daegi_domain::draw::draw_seed;
use daegi_domain::history::{DAY_MS, HOUR_MS, MINUTE_MS};
use daegi_domain::pace::origin::{OriginReport, OriginTotals};
use daegi_domain::{
    AdaptivePace, Beacon, BeaconKind, Drawn, EndReason, Invitation, ItemChange, ItemControl,
    ItemId, ItemName, ItemUpdate, ItemUpdateKind, Lane, LaneName, LineEvent, LivenessPage,
    LogPosition, Mode, Number, Opening, OpeningChange, Order, PaceState, Policy, PolicyChange,
    Reveal, Settings, Signals, Ticket, TicketEvent, UserId, VisitCounts, VisitLabel, VisitStep,
};
use daegi_store::{
    AccessChange, AccessLog, AccessStore, AdminStore, AdmissionStore, CONTROL_LOG, ChangeCursor,
    ControlStore, EntryProof, Epoch, Expiry, HistoryStore, HourAppend, ItemStore, JoinOutcome,
    LaneJoin, LeaveLimit, MAX_USERS_PER_CALL, MemoryStore, OpeningStore, OutboxBatch, OutboxStore,
    PaceStore, RedisStore, ReplayStore, Result, SignalStore, Store, StoreImage, TicketStore,
};

use super::fairness::Fairness;
use super::history::{FEW_USERS, Op, Plan, UpdateSpec};
use crate::access::{self, rule};
use crate::support::{PARTITIONS, SETTINGS, START, Topology, item, settings_are_restored, user};

/// So low that random histories exceed it.
const LEAVES: LeaveLimit = LeaveLimit(2);

/// How long minutes and visits are kept.
const HISTORY: u64 = 30 * DAY_MS;

/// Why a history fails.
pub(crate) type Violation = String;

/// Both stores, which must return the same replies, and a clock.
pub(crate) struct ModelHarness<'a> {
    topology: &'a Topology,
    /// A replica without the newest writes.
    replica: Option<StoreImage>,
    /// Whether the partitions of Redis have a copy of the settings: in the store, and in the replica.
    has_settings_copy: (bool, bool),
    pub(super) memory: MemoryStore,
    redis: RedisStore,
    pub(super) now: u64,
    pub(super) items: Vec<ItemId>,
    users: Vec<UserId>,
    /// Every ticket ever issued, per item.
    pub(super) tickets: Vec<Vec<Ticket>>,
    /// Per item and lane.
    cursors: Vec<[ChangeCursor; LANES]>,
    sweep_cursors: Vec<[Number; LANES]>,
    settings: Settings,
    epoch: Epoch,
    fairness: Fairness,
    /// The records of settings that were published, oldest first.
    published: Vec<ItemControl>,
}

/// Calls both stores; different replies are a violation.
macro_rules! both {
    ($harness:expr, $store:ident => $ask:expr) => {{
        let specified = {
            let $store = &$harness.memory;
            $ask.await
        };
        let found = {
            let $store = &$harness.redis;
            $ask.await
        };
        same_reply(specified, found)
    }};
}

fn same_reply<T: PartialEq + Debug>(
    specified: Result<T>,
    found: Result<T>,
) -> std::result::Result<T, Violation> {
    // Errors are equal if their texts are, so that both stores refuse a stale epoch with the same error.
    let specified = specified.map_err(|error| error.to_string());
    let found = found.map_err(|error| error.to_string());
    if specified == found {
        return specified.map_err(|refused| format!("refused: {refused}"));
    }
    Err(format!("specified {specified:?}, but redis returns {found:?}"))
}

/// Returns `None` if both stores refused the call with the same error.
fn unless_refused<T>(
    answer: std::result::Result<T, Violation>,
) -> std::result::Result<Option<T>, Violation> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(violation) if violation.starts_with("refused: ") => Ok(None),
        Err(violation) => Err(violation),
    }
}

impl<'a> ModelHarness<'a> {
    pub(crate) async fn new(topology: &'a Topology) -> Self {
        topology.flush().await;
        let items: Vec<_> = ["concert", "drop-2-a", "course.101"].map(item).into();
        let harness = Self {
            topology,
            replica: None,
            has_settings_copy: (false, false),
            memory: MemoryStore::new(PARTITIONS, SETTINGS).with_leave_limit(LEAVES),
            redis: RedisStore::open(topology.config(), PARTITIONS, SETTINGS)
                .await
                .unwrap()
                .with_leave_limit(LEAVES),
            now: START,
            tickets: vec![Vec::new(); items.len()],
            cursors: vec![Default::default(); items.len()],
            sweep_cursors: vec![[Number(0); LANES]; items.len()],
            fairness: Fairness::new(items.len()),
            items,
            users: (0..FEW_USERS).map(|n| user(&format!("u-{n}@x:{}", n * n))).collect(),
            settings: SETTINGS,
            epoch: Epoch(0),
            published: Vec::new(),
        };
        harness.restore_settings().await;
        harness
    }

    /// Records in both stores that the settings were restored.
    async fn restore_settings(&self) {
        settings_are_restored(&self.memory).await;
        settings_are_restored(&self.redis).await;
    }

    /// Runs one operation on both stores and checks the invariants.
    pub(crate) async fn step(&mut self, op: &Op) -> std::result::Result<(), Violation> {
        self.run(op).await?;
        let mut fairness = std::mem::take(&mut self.fairness);
        let checked = fairness.check(self).await;
        self.fairness = fairness;
        checked
    }

    async fn run(&mut self, op: &Op) -> std::result::Result<(), Violation> {
        match op {
            Op::Put { .. }
            | Op::Remove { .. }
            | Op::ItemUpdates { .. }
            | Op::Replay { .. }
            | Op::Policy { .. }
            | Op::Plan { .. } => self.change_item(op).await,
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
            Op::JoinLane { item, lane, joins } => {
                let join = |(user, invitation): &(usize, Option<Invitation>)| LaneJoin {
                    user: self.users[*user].clone(),
                    invitation: *invitation,
                };
                let joins: Vec<_> = joins.iter().map(join).collect();
                self.join_lane(*item, *lane, &joins).await
            }
            Op::JoinMany { item, from, count } => {
                let users: Vec<_> = (*from..from + count).map(|n| user(&format!("c{n}"))).collect();
                for batch in users.chunks(256) {
                    self.join(*item, batch).await?;
                }
                Ok(())
            }
            Op::JoinManyLane { item, lane, from, count } => {
                let user = |n| user(&format!("c{n}"));
                let join = |n| LaneJoin { user: user(n), invitation: None };
                let joins: Vec<_> = (*from..from + count).map(join).collect();
                for batch in joins.chunks(256) {
                    self.join_lane(*item, *lane, batch).await?;
                }
                Ok(())
            }
            Op::Snapshot { item, lane } => self.snapshot(*item, *lane).await,
            Op::Mark { item, tickets } => {
                let tickets = tickets.iter().filter_map(|index| self.ticket(*item, *index));
                self.mark(tickets.collect()).await
            }
            Op::MarkAll { item, every } => {
                self.mark(self.tickets[*item].iter().step_by(*every).cloned().collect()).await
            }
            Op::Resolve { item, tickets, off } => self.resolve(*item, tickets, *off).await,
            Op::Leave { item, ticket, off } => {
                let Some(ticket) = self.ticket_with_offset(*item, *ticket, *off) else {
                    return Ok(());
                };
                both!(self, store => store.leave(&ticket, self.now)).map(drop)
            }
            Op::Complete { item, ticket, cancelled } => {
                let Some(ticket) = self.ticket(*item, *ticket) else {
                    return Ok(());
                };
                let reason = if *cancelled { EndReason::Left } else { EndReason::Completed };
                both!(self, store => store.complete(&ticket, reason, self.now)).map(drop)
            }
            Op::Reenter { item, ticket } => {
                let Some(ticket) = self.ticket(*item, *ticket) else {
                    return Ok(());
                };
                self.fairness.pass_shown(*item, &ticket);
                let now = self.now;
                let entry = EntryProof { ticket, at: now - 20_000, expires_at: now + 40_000 };
                both!(self, store => store.restore_entry(&entry, now)).map(drop)
            }
            Op::Replicate => {
                let has_settings_copy = self.topology.replicate().await;
                self.replica = has_settings_copy.then(|| self.memory.image());
                self.has_settings_copy.1 = self.has_settings_copy.0;
                Ok(())
            }
            Op::LoseNewest | Op::LoseEverything => self.lose(op).await,
            Op::FreshStart => self.start_fresh().await,
            Op::DeclareLoss => both!(self, store => store.declare_loss(self.now)),
            Op::NoteEnded { item, tickets, completed } => {
                let reason = if *completed { EndReason::Completed } else { EndReason::Abandoned };
                let tickets = tickets.iter().filter_map(|index| self.ticket(*item, *index));
                for (_, tickets) in by_lane(tickets) {
                    let ended: Vec<_> = tickets.into_iter().map(|one| (one, reason)).collect();
                    both!(self, store => store.note_ended(&ended, self.now))?;
                }
                Ok(())
            }
            Op::BeginTerm => {
                self.epoch = both!(self, store => store.begin_term(self.now))?;
                self.has_settings_copy.0 = true;
                both!(self, store => store.copy_settings())
            }
            Op::Admit { .. } | Op::Expire { .. } | Op::Sweep { .. } => self.lead(op).await,
            Op::Open { item, steps, stale } => self.open(*item, *steps, *stale).await,
            Op::Pace { item, quota, stale } => {
                let (id, epoch) = (&self.items[*item], self.term(*stale));
                let pace = AdaptivePace::new(1, 60, 500);
                let mut state = PaceState::start(&pace, Mode::Auto, self.now);
                state.quota = *quota;
                unless_refused(both!(self, store => store.set_pace(epoch, id, &state))).map(drop)
            }
            Op::OriginReport { item, pod, age } => {
                let (id, at) = (&self.items[*item], self.now.saturating_sub(*age));
                let mut totals =
                    OriginTotals { requests: *age, errors: 1, ..OriginTotals::default() };
                totals.latency.add(*age as f64, *age);
                let report = OriginReport { pod: format!("pod-{pod}"), instances: 1, at, totals };
                both!(self, store => store.put_origin_report(id, &report, self.now))?;
                both!(self, store => store.origin_reports(id, self.now)).map(drop)
            }
            Op::Beacon { item, round, signature } => {
                let (id, signature) = (&self.items[*item], [*signature; 48]);
                both!(self, store => store.put_beacon(id, *round, &signature, self.now)).map(drop)
            }
            Op::Close { item, stale } => {
                let (id, epoch) = (&self.items[*item], self.term(*stale));
                unless_refused(both!(self, store => store.close_line(epoch, id, self.now)))
                    .map(drop)
            }
            Op::Publish { partition } => self.publish_controls(*partition).await,
            Op::Checkpoint { item, stale } => {
                let (id, epoch) = (&self.items[*item], self.term(*stale));
                unless_refused(both!(self, store => store.checkpoint_control(epoch, id, self.now)))
                    .map(drop)
            }
            Op::Restore { record } => {
                let index = record % self.published.len().max(1);
                let Some(control) = self.published.get(index).cloned() else { return Ok(()) };
                let is_newer = both!(self, store => store.restore_control(&control, self.now))?;
                if is_newer {
                    let mut fairness = Fairness::new(self.items.len());
                    fairness.restart_after_loss(self).await;
                    self.fairness = fairness;
                }
                Ok(())
            }
            Op::Ack { partition } => self.ack(*partition).await,
            Op::Settings { quota, tick_ms } => {
                self.settings = both!(self, store => store.set_settings(*quota, *tick_ms))?;
                self.has_settings_copy.0 = true;
                Ok(())
            }
            Op::AppendAudit { entry } => {
                let entry = format!("콘서트 {entry}");
                both!(self, store => store.append_audit(&entry))?;
                both!(self, store => store.read_audit(entry.len() as u32 % 4)).map(drop)
            }
            Op::PutHeartbeat { who, text } => {
                let (who, text) = (format!("pod-{who}"), format!("{text} and more"));
                both!(self, store => store.put_heartbeat(&who, &text, self.now))?;
                both!(self, store => store.heartbeats(self.now)).map(drop)
            }
            Op::Access { remove, put, contact } => {
                let name = |index: &usize| format!("u-{index}");
                let removed = access::remove(remove.iter().map(|user| rule(&name(user), "r")));
                let put = put.iter().map(|(user, reason)| rule(&name(user), &reason.to_string()));
                let contact = contact.map(|contact| contact.map(|n| format!("https://x/{n}")));
                let change = AccessChange {
                    remove: removed.remove,
                    contact_url: contact,
                    ..access::put(put)
                };
                both!(self, store => store.change_access(&change, self.now))?;
                both!(self, store => store.access_rules())?;
                both!(self, store => store.access_revision())?;
                both!(self, store => store.access_events(AccessLog::Changes, 3)).map(drop)
            }
            Op::Signals { item, tickets } => {
                let ticket = |(lane, number, bits): &(Lane, u64, u8)| {
                    (*lane, Number(*number), Signals::from_bits(*bits))
                };
                let (id, now) = (&self.items[*item], self.now);
                let tickets: Vec<_> = tickets.iter().map(ticket).collect();
                both!(self, store => store.add_signals(id, &tickets, now))?;
                both!(self, store => store.signal_counts(id, now)).map(drop)
            }
            Op::AppendHour { item, outdated, stale } => {
                self.append_hour(*item, *outdated, *stale).await
            }
            Op::AddVisits { item, countries } => {
                let label = |country: &[u8; 2]| VisitLabel::country(Some(country));
                let counts = countries.iter().map(|(country, count)| (label(country), *count));
                let counts: VisitCounts = counts.collect();
                let id = &self.items[*item];
                both!(self, store => store.add_visits(id, &counts, HISTORY, self.now))
            }
            Op::Advance { ms } => {
                self.now = self.now.saturating_add_signed(*ms);
                Ok(())
            }
        }
    }

    /// Loses the newest writes if there is a replica, otherwise all data; then items are replayed.
    async fn lose(&mut self, op: &Op) -> std::result::Result<(), Violation> {
        let replica = self.replica.take().filter(|_| matches!(op, Op::LoseNewest));
        let everything = replica.is_none();
        self.has_settings_copy.0 = !everything && self.has_settings_copy.1;
        match &replica {
            Some(_) => self.topology.fail_over().await,
            None => self.topology.flush().await,
        }
        self.memory.restore(replica);
        self.continue_after_loss(everything).await
    }

    /// Starts new processes on an empty store, without evidence of a loss.
    async fn start_fresh(&mut self) -> std::result::Result<(), Violation> {
        self.topology.flush().await;
        self.replica = None;
        self.has_settings_copy.0 = false;
        self.memory = MemoryStore::new(PARTITIONS, SETTINGS).with_leave_limit(LEAVES);
        self.redis = RedisStore::open(self.topology.config(), PARTITIONS, SETTINGS)
            .await
            .unwrap()
            .with_leave_limit(LEAVES);
        self.epoch = Epoch(0);
        self.continue_after_loss(true).await
    }

    async fn continue_after_loss(
        &mut self,
        everything: bool,
    ) -> std::result::Result<(), Violation> {
        // The clock does not go back so far that a new line begins among the numbers of the old one.
        let given = self.tickets.iter().flatten().map(|ticket| ticket.number.0 / 64).max();
        self.now = self.now.max(given.unwrap_or(0)) + 1_000;
        for control in self.published.clone() {
            both!(self, store => store.restore_control(&control, self.now))?;
        }
        // Otherwise updates of items are held until a replay is complete.
        if self.now.is_multiple_of(2) {
            self.restore_settings().await;
        }
        for item in (0..self.items.len()).filter(|_| everything) {
            let put = Op::Put { item, stock: 6, enabled: true, version: None, policy: None };
            self.change_item(&put).await?;
        }
        self.settings = both!(self, store => store.settings())?;
        let mut fairness = Fairness::new(self.items.len());
        fairness.restart_after_loss(self).await;
        self.fairness = fairness;
        Ok(())
    }

    async fn change_item(&mut self, op: &Op) -> std::result::Result<(), Violation> {
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
                both!(self, store => store.remove_item(&self.items[*item], self.now)).map(drop)
            }
            Op::ItemUpdates { updates } => {
                let updates: Vec<_> =
                    updates.iter().map(|update| self.item_update(update)).collect();
                both!(self, store => store.apply_item_updates(&updates, self.now)).map(drop)
            }
            Op::Replay { log, step } => {
                let log = ["items/0", "items/1", CONTROL_LOG][*log];
                match step {
                    0 => both!(self, store => store.begin_replay(log))?,
                    1 => both!(self, store => store.complete_replay(log)).map(drop)?,
                    _ => {}
                }
                both!(self, store => store.replay_state(log)).map(drop)
            }
            Op::Policy { item, policy, outdated } => {
                let id = &self.items[*item];
                let current = both!(self, store => store.item(id))?;
                let opening = current.as_ref().and_then(|item| item.policy.opening.clone());
                let revision = current.map_or(0, |item| item.revision) + u64::from(*outdated);
                let change = Policy { opening, ..policy.clone() }.into();
                both!(self, store => store.set_policy(id, &change, revision, self.now)).map(drop)
            }
            Op::Plan { item, plan } => self.plan(*item, plan).await,
            _ => Ok(()),
        }
    }

    fn item_update(&self, update: &UpdateSpec) -> ItemUpdate {
        let id = self.items[update.item].clone();
        let kind = if update.gone {
            ItemUpdateKind::Remove { id, version: update.version }
        } else {
            let name = ItemName::parse("연극 3 pm").unwrap();
            let (stock, version) = (update.stock, update.version);
            ItemUpdateKind::Upsert(ItemChange {
                id,
                name,
                stock,
                enabled: true,
                version,
                policy: None,
            })
        };
        ItemUpdate { kind, position: LogPosition { offset: update.offset, at: update.at } }
    }

    async fn join(&mut self, item: usize, users: &[UserId]) -> std::result::Result<(), Violation> {
        // If partitions have a copy of the settings, outdated settings of a pod must not matter.
        let outdated = Settings { token_count_to_move: 7, ..self.settings };
        let settings = if self.has_settings_copy.0 { &outdated } else { &self.settings };
        let (id, now) = (&self.items[item], self.now);
        let outcomes = both!(self, store => store.join(id, users, settings, now))?;
        self.remember_joined(item, users, &outcomes);
        Ok(())
    }

    async fn join_lane(
        &mut self,
        item: usize,
        lane: Lane,
        joins: &[LaneJoin],
    ) -> std::result::Result<(), Violation> {
        let (id, now, settings) = (&self.items[item], self.now, &self.settings);
        let outcomes = both!(self, store => store.join_lane(id, lane, joins, settings, now))?;
        let users: Vec<_> = joins.iter().map(|join| join.user.clone()).collect();
        self.remember_joined(item, &users, &outcomes);
        Ok(())
    }

    fn remember_joined(&mut self, item: usize, users: &[UserId], outcomes: &[JoinOutcome]) {
        for (user, outcome) in users.iter().zip(outcomes) {
            if let JoinOutcome::Ticket { lane, number, is_new: true, .. } = *outcome {
                let id = self.items[item].clone();
                self.remember(item, &Ticket { lane, ..Ticket::new(id, user.clone(), number) });
            }
        }
    }

    async fn snapshot(&mut self, item: usize, lane: Lane) -> std::result::Result<(), Violation> {
        let cursor = self.cursors[item][lane.index()];
        let snapshot = both!(self, store => store.snapshot(&self.items[item], lane, cursor))?;
        self.cursors[item][lane.index()] = snapshot.map_or(cursor, |snapshot| snapshot.cursor);
        Ok(())
    }

    async fn mark(&mut self, tickets: Vec<Ticket>) -> std::result::Result<(), Violation> {
        for (lane, tickets) in by_lane(tickets.into_iter()) {
            let pages = LivenessPage::of(tickets.iter().map(|ticket| ticket.number));
            let id = &tickets[0].item;
            both!(self, store => store.mark_seen(id, lane, &pages, self.now))?;
        }
        Ok(())
    }

    async fn resolve(
        &mut self,
        item: usize,
        tickets: &[usize],
        off: u64,
    ) -> std::result::Result<(), Violation> {
        let mut asked = Vec::new();
        for index in tickets {
            let Some(ticket_with_offset) = self.ticket_with_offset(item, *index, off) else {
                continue;
            };
            // A reclaimed ticket has this number from now on.
            self.remember(item, &ticket_with_offset);
            asked.push(ticket_with_offset);
        }
        for (_, tickets) in by_lane(asked.into_iter()) {
            both!(self, store => store.resolve(&tickets, self.now))?;
        }
        Ok(())
    }

    /// Plans another opening, or changes the times of the one that the item has.
    async fn plan(&self, item: usize, plan: &Plan) -> std::result::Result<(), Violation> {
        let (id, now) = (&self.items[item], self.now);
        let Some(current) = both!(self, store => store.item(id))? else { return Ok(()) };
        let at = |offset: Option<i64>| offset.map(|offset| now.saturating_add_signed(offset));
        let opening = Opening {
            opens_at: at(plan.opens_in),
            lobby_at: at(plan.lobby_in),
            closes_at: at(plan.closes_in),
            order: if plan.draw { Order::Draw } else { Order::Arrival },
            beacon: plan.beacon.map(|round| Beacon { kind: BeaconKind::Drand, round: Some(round) }),
        };
        let change = match current.policy.opening.clone().filter(|_| !plan.replaces) {
            Some(old) => PolicyChange::from(Policy {
                opening: Some(Opening { order: old.order, ..opening }),
                ..current.policy
            }),
            None => PolicyChange {
                policy: Policy {
                    opening: Some(opening).filter(|_| !plan.removed),
                    ..current.policy
                },
                opening: OpeningChange::Replaced,
                reveal: (plan.draw && !plan.removed).then_some(Reveal([now as u8; 32])),
            },
        };
        both!(self, store => store.set_policy(id, &change, current.revision, now)).map(drop)
    }

    /// Opens a line like a leader, which may die after it has fixed the cohort, or its root. A leader does not
    /// open a line whose beacon is not known, or with another root than the fixed one; here it tries to.
    async fn open(
        &self,
        item: usize,
        steps: usize,
        stale: bool,
    ) -> std::result::Result<(), Violation> {
        let (id, epoch, now) = (&self.items[item], self.term(stale), self.now);
        let frozen = both!(self, store => store.freeze_cohort(epoch, id, now));
        let cohort = unless_refused(frozen)?.flatten();
        if steps == 1 {
            return Ok(());
        }
        let mut drawn = None;
        if let Some(cohort) = cohort {
            both!(self, store => store.waiting_from(id, cohort.first, 50))?;
            let leaf = [cohort.size as u8; 32];
            // Another leader may have seen other tickets: the first root stays.
            let root = [now as u8; 32];
            let fixed = unless_refused(both!(self, store => store.fix_root(epoch, id, &root, now)));
            if steps == 2 {
                return fixed.map(drop);
            }
            let fixed = fixed?.flatten().filter(|_| steps == 3);
            let root = fixed.unwrap_or([!now as u8; 32]);
            let seed = draw_seed(id, &leaf, &root, None);
            both!(self, store => store.put_leaves(id, &root, 0, &[leaf; 1_500]))?;
            both!(self, store => store.leaves(id, &root, 1_024))?;
            drawn = Some(Drawn { root, beacon: (cohort.size % 2 == 1).then_some(leaf), seed });
        }
        unless_refused(both!(self, store => store.open_line(epoch, id, drawn, now))).map(drop)
    }

    fn term(&self, stale: bool) -> Epoch {
        Epoch(self.epoch.0 - u64::from(stale && self.epoch.0 > 0))
    }

    async fn lead(&mut self, op: &Op) -> std::result::Result<(), Violation> {
        let term = |stale: &bool| self.term(*stale);
        let now = self.now;
        match op {
            Op::Admit { item, quota, min_interval, outbox_max, stale } => {
                let (id, epoch) = (&self.items[*item], term(stale));
                let answer = both!(self, store => store.admit(epoch, id, *quota, *min_interval, *outbox_max, now));
                if let Some(admission) = unless_refused(answer)?
                    && admission.admitted > 0
                {
                    self.fairness.check_capacity(&self.memory, id).await?;
                }
                Ok(())
            }
            Op::Expire { item, lane, stale } => {
                let epoch = term(stale);
                self.expire(*item, *lane, epoch).await
            }
            Op::Sweep { item, lane, stale } => {
                let (id, epoch) = (&self.items[*item], term(stale));
                let cursor = self.sweep_cursors[*item][lane.index()];
                let answer = both!(self, store => store.sweep(epoch, id, *lane, cursor, now));
                let next = unless_refused(answer)?.map(|sweep| sweep.cursor);
                self.sweep_cursors[*item][lane.index()] = next.unwrap_or(cursor);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Runs whole rounds of expiry. Which entries a single call ends is up to the store.
    async fn expire(
        &self,
        item: usize,
        lane: Lane,
        epoch: Epoch,
    ) -> std::result::Result<(), Violation> {
        let (id, now) = (&self.items[item], self.now);
        let (mut specified, mut found) = ((0, 0), (0, 0));
        if !lane.is_standard() {
            Box::pin(self.expire(item, Lane::STANDARD, epoch)).await?;
        }
        // The first call for an item tells the Redis store how many lanes it has.
        let mut is_first = true;
        loop {
            let memory = self.memory.expire(epoch, id, lane, now).await;
            let redis = self.redis.expire(epoch, id, lane, now).await;
            let (memory, redis) = match (memory, redis) {
                (Ok(memory), Ok(redis)) => (memory, redis),
                (memory, redis) => {
                    return unless_refused(same_reply(memory, redis)).map(drop);
                }
            };
            specified = (specified.0 + memory.expired, specified.1 + memory.abandoned);
            found = (found.0 + redis.expired, found.1 + redis.abandoned);
            if redis.expired.max(memory.expired) > MAX_USERS_PER_CALL {
                return Err(format!("too many in one call: {memory:?}, {redis:?}"));
            }
            if memory.more || redis.more || std::mem::take(&mut is_first) {
                continue;
            }
            let end = |expiry: Expiry| (expiry.active, expiry.front_is_above_base, expiry.lanes);
            return same_reply(Ok((specified, end(memory))), Ok((found, end(redis)))).map(drop);
        }
    }

    /// Appends to the log of this hour, like the leader after a minute.
    async fn append_hour(
        &self,
        item: usize,
        outdated: bool,
        stale: bool,
    ) -> std::result::Result<(), Violation> {
        let (id, epoch, hour) = (&self.items[item], self.term(stale), self.now / HOUR_MS);
        let logs = both!(self, store => store.hours(id, hour..=hour))?;
        let length = logs.first().map_or(0, |(_, log)| log.len()) + usize::from(outdated);
        let append = HourAppend { hour, length, bytes: &[self.now as u8, 0xff, 0] };
        unless_refused(both!(self, store => store.append_hour(epoch, id, append, HISTORY)))
            .map(drop)
    }

    /// Publishes the settings that changed, like the relay.
    async fn publish_controls(&mut self, partition: u16) -> std::result::Result<(), Violation> {
        let changed = both!(self, store => store.changed_controls(partition, 2))?;
        for (id, version) in &changed {
            let control = both!(self, store => store.control(id))?;
            let control = control.ok_or_else(|| format!("{id} changed and is unknown"))?;
            if control.control_version < *version {
                return Err(format!("version {version} changed, {control:?} is stored"));
            }
            self.published.push(control);
        }
        both!(self, store => store.controls_published(partition, &changed))
    }

    /// Acknowledges all batches of a partition; how events are batched is up to the store.
    async fn ack(&mut self, partition: u16) -> std::result::Result<(), Violation> {
        let (specified, found) = self.outboxes(partition).await?;
        let ids = |outbox: &[OutboxBatch]| -> Vec<String> {
            outbox.iter().map(|batch| batch.id.clone()).collect()
        };
        self.memory.outbox_ack(partition, &ids(&specified)).await.unwrap();
        self.redis.outbox_ack(partition, &ids(&found)).await.unwrap();
        // A second acknowledgement of the same batches must change nothing.
        self.redis.outbox_ack(partition, &ids(&found)).await.unwrap();
        Ok(())
    }

    /// Returns both outboxes of a partition; they must hold the same events of each item in the same order,
    /// except ends of one time, whose order is up to the store.
    async fn outboxes(
        &self,
        partition: u16,
    ) -> std::result::Result<(Vec<OutboxBatch>, Vec<OutboxBatch>), Violation> {
        let specified = self.memory.outbox_read(partition, None, 100_000).await.unwrap();
        let found = self.redis.outbox_read(partition, None, 100_000).await.unwrap();
        let contents = |outbox: &[OutboxBatch]| -> Vec<_> {
            let events = |item| (events_of(outbox, item), line_events_of(outbox, item));
            self.items.iter().map(events).collect::<Vec<_>>()
        };
        if contents(&specified) != contents(&found) {
            return Err(format!(
                "outbox {partition}: specified {specified:?}, redis has {found:?}"
            ));
        }
        both!(self, store => store.outbox_len(partition))?;
        Ok((specified, found))
    }

    /// Compares everything that both stores can return.
    pub(crate) async fn finish(&mut self) -> std::result::Result<(), Violation> {
        both!(self, store => store.items())?;
        both!(self, store => store.active_lines())?;
        both!(self, store => store.settings())?;
        both!(self, store => store.read_audit(u32::MAX))?;
        both!(self, store => store.heartbeats(self.now))?;
        both!(self, store => store.counts(&self.items))?;
        for partition in 0..PARTITIONS {
            self.outboxes(partition).await?;
            both!(self, store => store.changed_controls(partition, 100))?;
        }
        for item in 0..self.items.len() {
            let (start, id) = (ChangeCursor::default(), &self.items[item]);
            both!(self, store => store.control(id))?;
            let hour = self.now / HOUR_MS;
            both!(self, store => store.hours(id, hour - 1..=hour + 1))?;
            let minute = self.now / MINUTE_MS;
            let minutes = minute - 20..=minute + 20;
            both!(self, store => store.visits(id, VisitStep::Minute, minutes.clone()))?;
            both!(self, store => store.visits(id, VisitStep::Hour, hour - 1..=hour + 1))?;
            for lane in all_lanes() {
                both!(self, store => store.snapshot(id, lane, start))?;
            }
            // The first call may reclaim lost tickets; the second returns their state.
            let mut live = Vec::new();
            for (_, tickets) in by_lane(self.tickets[item].iter().cloned()) {
                both!(self, store => store.resolve(&tickets, self.now))?;
                let states = both!(self, store => store.resolve(&tickets, self.now))?;
                live.extend(tickets.into_iter().zip(states));
            }
            Fairness::check_one_ticket_per_user(&live)?;
        }
        Ok(())
    }

    fn ticket(&self, item: usize, index: usize) -> Option<Ticket> {
        let tickets = &self.tickets[item];
        (!tickets.is_empty()).then(|| tickets[index % tickets.len()].clone())
    }

    /// Returns a ticket with its number increased by `off`, as if the store had lost it. `None` if another
    /// user holds that number, because tokens are signed.
    fn ticket_with_offset(&self, item: usize, index: usize, off: u64) -> Option<Ticket> {
        let ticket = self.ticket(item, index)?;
        let ticket = Ticket { number: Number(ticket.number.0 + off), ..ticket };
        let same_number =
            |given: &&Ticket| (given.lane, given.number) == (ticket.lane, ticket.number);
        let holder = self.tickets[item].iter().find(same_number);
        holder.is_none_or(|holder| holder.user == ticket.user).then_some(ticket)
    }

    fn remember(&mut self, item: usize, ticket: &Ticket) {
        if !self.tickets[item].contains(ticket) {
            self.tickets[item].push(ticket.clone());
        }
    }
}

/// The events of one line in order.
fn line_events_of(outbox: &[OutboxBatch], item: &ItemId) -> Vec<LineEvent> {
    let batches = outbox.iter().filter(|batch| batch.item == *item);
    batches.filter_map(|batch| batch.line.clone()).collect()
}

/// The lanes of histories: the standard one and two others.
pub(crate) const LANES: usize = 3;

/// Returns the lanes of histories.
pub(super) fn all_lanes() -> impl Iterator<Item = Lane> {
    (0..LANES).filter_map(Lane::numbered)
}

/// Returns the tickets by lane, in their order.
fn by_lane(tickets: impl Iterator<Item = Ticket>) -> BTreeMap<Lane, Vec<Ticket>> {
    let mut lanes: BTreeMap<Lane, Vec<Ticket>> = BTreeMap::new();
    tickets.for_each(|ticket| lanes.entry(ticket.lane).or_default().push(ticket));
    lanes
}

/// The events of one item in order, with their lanes; ends of one time are sorted by lane and number.
fn events_of(outbox: &[OutboxBatch], item: &ItemId) -> Vec<(Lane, Option<LaneName>, TicketEvent)> {
    let batches = outbox.iter().filter(|batch| batch.item == *item);
    let with_lane = |batch: &OutboxBatch| {
        let (lane, name) = (batch.lane, batch.lane_name.clone());
        batch.events.clone().into_iter().map(move |event| (lane, name.clone(), event))
    };
    let mut events: Vec<_> = batches.flat_map(with_lane).collect();
    let end = |(_, _, event): &(Lane, Option<LaneName>, TicketEvent)| match event {
        TicketEvent::Ended { at, .. } => Some(*at),
        TicketEvent::Admitted { .. } => None,
    };
    for ends in events.chunk_by_mut(|one, next| end(one).is_some() && end(one) == end(next)) {
        ends.sort_unstable_by_key(|(lane, _, event)| (*lane, event.number()));
    }
    events
}
