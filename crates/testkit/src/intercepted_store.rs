//! A memory store whose calls can be observed and failed.

use std::ops::RangeInclusive;
use std::sync::Arc;

use async_trait::async_trait;
use daegi_domain::pace::origin::OriginReport;
use daegi_domain::{
    AccessEvent, CohortRange, Drawn, EndReason, Item, ItemChange, ItemControl, ItemId, ItemUpdate,
    Lane, LivenessPage, Millis, Number, PaceState, PolicyChange, Settings, SignalCounts, Signals,
    Ticket, UserId, VisitCounts, VisitStep,
};
use daegi_store::{
    AccessChange, AccessLog, AccessOutcome, AccessRules, AccessStore, AdminStore, Admission,
    AdmissionStore, BeaconOutcome, ChangeCursor, ControlStore, EndOutcome, EntryProof, Epoch,
    Expiry, HeartbeatRecord, HistoryStore, HourAppend, ItemStore, ItemUpdateOutcome, JoinOutcome,
    LaneJoin, LineCounts, LineSnapshot, LockBackend, MemoryStore, OpeningStore, OutboxBatch,
    OutboxStore, PaceStore, PolicyUpdateOutcome, PutOperator, PutOutcome, ReplayState, ReplayStore,
    Result, SignalStore, Store, Sweep, TicketState, TicketStore,
};

/// Observes store calls, by their names in [`Store`].
pub trait StoreInterceptor: std::fmt::Debug + Send + Sync + 'static {
    /// Runs before a call. An error prevents the call.
    fn before(&self, call: &'static str) -> impl Future<Output = Result<()>> + Send;

    /// Runs after a call. An error replaces the reply, although the call took effect.
    ///
    /// # Errors
    /// If the reply is to be lost.
    fn after(&self, _call: &'static str) -> Result<()> {
        Ok(())
    }

    /// Runs before numbers are marked as seen.
    fn marks(&self, _id: &ItemId, _pages: &[LivenessPage]) {}
}

/// A memory store with an interceptor.
#[derive(Debug, Clone)]
pub struct InterceptedStore<G> {
    /// The store.
    pub store: Arc<MemoryStore>,
    /// The interceptor.
    pub interceptor: G,
}

macro_rules! intercept {
    ($self:ident.$call:ident($($argument:expr),*)) => {{
        $self.interceptor.before(stringify!($call)).await?;
        let reply = $self.store.$call($($argument),*).await;
        $self.interceptor.after(stringify!($call))?;
        reply
    }};
}

#[async_trait]
impl<G: StoreInterceptor> ItemStore for InterceptedStore<G> {
    async fn put_item(&self, change: &ItemChange, now: Millis) -> Result<PutOutcome> {
        intercept!(self.put_item(change, now))
    }

    async fn remove_item(&self, id: &ItemId, now: Millis) -> Result<bool> {
        intercept!(self.remove_item(id, now))
    }

    async fn apply_item_updates(
        &self,
        news: &[ItemUpdate],
        now: Millis,
    ) -> Result<Vec<ItemUpdateOutcome>> {
        intercept!(self.apply_item_updates(news, now))
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>> {
        intercept!(self.item(id))
    }

    async fn items(&self) -> Result<Vec<Item>> {
        intercept!(self.items())
    }

    async fn item_ids(&self) -> Result<Vec<ItemId>> {
        intercept!(self.item_ids())
    }

    async fn set_policy(
        &self,
        id: &ItemId,
        change: &PolicyChange,
        rev: u64,
        now: Millis,
    ) -> Result<PolicyUpdateOutcome> {
        intercept!(self.set_policy(id, change, rev, now))
    }

    async fn set_paused(&self, id: &ItemId, paused: bool, now: Millis) -> Result<Option<Item>> {
        intercept!(self.set_paused(id, paused, now))
    }

    async fn reset(&self, id: &ItemId, now: Millis) -> Result<Option<Item>> {
        intercept!(self.reset(id, now))
    }

    async fn purge(&self, id: &ItemId) -> Result<()> {
        intercept!(self.purge(id))
    }
}

#[async_trait]
impl<G: StoreInterceptor> PaceStore for InterceptedStore<G> {
    async fn set_pace(&self, epoch: Epoch, id: &ItemId, state: &PaceState) -> Result<bool> {
        intercept!(self.set_pace(epoch, id, state))
    }

    async fn put_origin_report(
        &self,
        id: &ItemId,
        report: &OriginReport,
        now: Millis,
    ) -> Result<bool> {
        intercept!(self.put_origin_report(id, report, now))
    }

    async fn origin_reports(&self, id: &ItemId, now: Millis) -> Result<Vec<OriginReport>> {
        intercept!(self.origin_reports(id, now))
    }
}

#[async_trait]
impl<G: StoreInterceptor> ReplayStore for InterceptedStore<G> {
    async fn replay_state(&self, log: &str) -> Result<ReplayState> {
        intercept!(self.replay_state(log))
    }

    async fn begin_replay(&self, log: &str) -> Result<()> {
        intercept!(self.begin_replay(log))
    }

    async fn complete_replay(&self, log: &str) -> Result<bool> {
        intercept!(self.complete_replay(log))
    }
}

#[async_trait]
impl<G: StoreInterceptor> TicketStore for InterceptedStore<G> {
    async fn join(
        &self,
        id: &ItemId,
        users: &[UserId],
        settings: &Settings,
        now: Millis,
    ) -> Result<Vec<JoinOutcome>> {
        intercept!(self.join(id, users, settings, now))
    }

    async fn join_lane(
        &self,
        id: &ItemId,
        lane: Lane,
        joins: &[LaneJoin],
        settings: &Settings,
        now: Millis,
    ) -> Result<Vec<JoinOutcome>> {
        self.interceptor.before("join").await?;
        let joined = self.store.join_lane(id, lane, joins, settings, now).await;
        self.interceptor.after("join")?;
        joined
    }

    async fn snapshot(
        &self,
        id: &ItemId,
        lane: Lane,
        cursor: ChangeCursor,
    ) -> Result<Option<LineSnapshot>> {
        intercept!(self.snapshot(id, lane, cursor))
    }

    async fn mark_seen(
        &self,
        id: &ItemId,
        lane: Lane,
        pages: &[LivenessPage],
        now: Millis,
    ) -> Result<()> {
        self.interceptor.marks(id, pages);
        intercept!(self.mark_seen(id, lane, pages, now))
    }

    async fn use_handover(&self, ticket: &Ticket, issued_at: Millis, now: Millis) -> Result<bool> {
        intercept!(self.use_handover(ticket, issued_at, now))
    }

    async fn used_handover(&self, ticket: &Ticket, now: Millis) -> Result<Option<Millis>> {
        intercept!(self.used_handover(ticket, now))
    }

    async fn resolve(&self, tickets: &[Ticket], now: Millis) -> Result<Vec<TicketState>> {
        intercept!(self.resolve(tickets, now))
    }

    async fn restore_entry(&self, entry: &EntryProof, now: Millis) -> Result<TicketState> {
        intercept!(self.restore_entry(entry, now))
    }

    async fn leave(&self, ticket: &Ticket, now: Millis) -> Result<EndOutcome> {
        intercept!(self.leave(ticket, now))
    }

    async fn complete(
        &self,
        ticket: &Ticket,
        reason: EndReason,
        now: Millis,
    ) -> Result<EndOutcome> {
        intercept!(self.complete(ticket, reason, now))
    }

    async fn note_ended(&self, ended: &[(Ticket, EndReason)], now: Millis) -> Result<bool> {
        intercept!(self.note_ended(ended, now))
    }

    async fn counts(&self, ids: &[ItemId]) -> Result<Vec<LineCounts>> {
        intercept!(self.counts(ids))
    }
}

#[async_trait]
impl<G: StoreInterceptor> AdmissionStore for InterceptedStore<G> {
    async fn begin_term(&self, now: Millis) -> Result<Epoch> {
        intercept!(self.begin_term(now))
    }

    async fn active_lines_in(&self, partition: u16) -> Result<Vec<ItemId>> {
        intercept!(self.active_lines_in(partition))
    }

    async fn admit(
        &self,
        epoch: Epoch,
        id: &ItemId,
        quota: u32,
        min_interval: Millis,
        outbox_max: u64,
        now: Millis,
    ) -> Result<Admission> {
        intercept!(self.admit(epoch, id, quota, min_interval, outbox_max, now))
    }

    async fn expire(&self, epoch: Epoch, id: &ItemId, lane: Lane, now: Millis) -> Result<Expiry> {
        intercept!(self.expire(epoch, id, lane, now))
    }

    async fn sweep(
        &self,
        epoch: Epoch,
        id: &ItemId,
        lane: Lane,
        from: Number,
        now: Millis,
    ) -> Result<Sweep> {
        intercept!(self.sweep(epoch, id, lane, from, now))
    }
}

#[async_trait]
impl<G: StoreInterceptor> OpeningStore for InterceptedStore<G> {
    async fn freeze_cohort(
        &self,
        epoch: Epoch,
        id: &ItemId,
        now: Millis,
    ) -> Result<Option<CohortRange>> {
        intercept!(self.freeze_cohort(epoch, id, now))
    }

    async fn fix_root(
        &self,
        epoch: Epoch,
        id: &ItemId,
        root: &[u8; 32],
        now: Millis,
    ) -> Result<Option<[u8; 32]>> {
        intercept!(self.fix_root(epoch, id, root, now))
    }

    async fn put_beacon(
        &self,
        id: &ItemId,
        round: u64,
        signature: &[u8; 48],
        now: Millis,
    ) -> Result<BeaconOutcome> {
        intercept!(self.put_beacon(id, round, signature, now))
    }

    async fn open_line(
        &self,
        epoch: Epoch,
        id: &ItemId,
        drawn: Option<Drawn>,
        now: Millis,
    ) -> Result<bool> {
        intercept!(self.open_line(epoch, id, drawn, now))
    }

    async fn close_line(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<bool> {
        intercept!(self.close_line(epoch, id, now))
    }

    async fn waiting_from(
        &self,
        id: &ItemId,
        from: Number,
        limit: u32,
    ) -> Result<Vec<(UserId, Number)>> {
        intercept!(self.waiting_from(id, from, limit))
    }

    async fn put_leaves(
        &self,
        id: &ItemId,
        root: &[u8; 32],
        first: u64,
        leaves: &[[u8; 32]],
    ) -> Result<()> {
        intercept!(self.put_leaves(id, root, first, leaves))
    }

    async fn leaves(&self, id: &ItemId, root: &[u8; 32], first: u64) -> Result<Vec<[u8; 32]>> {
        intercept!(self.leaves(id, root, first))
    }
}

#[async_trait]
impl<G: StoreInterceptor> ControlStore for InterceptedStore<G> {
    async fn changed_controls(&self, partition: u16, limit: u32) -> Result<Vec<(ItemId, u64)>> {
        intercept!(self.changed_controls(partition, limit))
    }

    async fn control(&self, id: &ItemId) -> Result<Option<ItemControl>> {
        intercept!(self.control(id))
    }

    async fn controls_published(&self, partition: u16, published: &[(ItemId, u64)]) -> Result<()> {
        intercept!(self.controls_published(partition, published))
    }

    async fn checkpoint_control(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<bool> {
        intercept!(self.checkpoint_control(epoch, id, now))
    }

    async fn restore_control(&self, control: &ItemControl, now: Millis) -> Result<bool> {
        intercept!(self.restore_control(control, now))
    }
}

#[async_trait]
impl<G: StoreInterceptor> OutboxStore for InterceptedStore<G> {
    async fn outbox_read(
        &self,
        partition: u16,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<OutboxBatch>> {
        intercept!(self.outbox_read(partition, after, limit))
    }

    async fn outbox_ack(&self, partition: u16, ids: &[String]) -> Result<()> {
        intercept!(self.outbox_ack(partition, ids))
    }

    async fn outbox_len(&self, partition: u16) -> Result<u64> {
        intercept!(self.outbox_len(partition))
    }
}

#[async_trait]
impl<G: StoreInterceptor> AdminStore for InterceptedStore<G> {
    async fn settings(&self) -> Result<Settings> {
        intercept!(self.settings())
    }

    async fn set_settings(&self, count: Option<u32>, tick_ms: Option<u32>) -> Result<Settings> {
        intercept!(self.set_settings(count, tick_ms))
    }

    async fn copy_settings(&self) -> Result<()> {
        intercept!(self.copy_settings())
    }

    async fn declare_loss(&self, now: Millis) -> Result<()> {
        intercept!(self.declare_loss(now))
    }

    async fn append_audit(&self, entry: &str) -> Result<()> {
        intercept!(self.append_audit(entry))
    }

    async fn read_audit(&self, limit: u32) -> Result<Vec<String>> {
        intercept!(self.read_audit(limit))
    }

    async fn put_operator(&self, name: &str, record: &str) -> Result<PutOperator> {
        intercept!(self.put_operator(name, record))
    }

    async fn remove_operator(&self, name: &str) -> Result<bool> {
        intercept!(self.remove_operator(name))
    }

    async fn operators(&self) -> Result<Vec<String>> {
        intercept!(self.operators())
    }

    async fn put_heartbeat(&self, who: &str, text: &str, now: Millis) -> Result<()> {
        intercept!(self.put_heartbeat(who, text, now))
    }

    async fn heartbeats(&self, now: Millis) -> Result<Vec<HeartbeatRecord>> {
        intercept!(self.heartbeats(now))
    }
}

#[async_trait]
impl<G: StoreInterceptor> AccessStore for InterceptedStore<G> {
    async fn access_revision(&self) -> Result<u64> {
        intercept!(self.access_revision())
    }

    async fn access_rules(&self) -> Result<AccessRules> {
        intercept!(self.access_rules())
    }

    async fn change_access(&self, change: &AccessChange, now: Millis) -> Result<AccessOutcome> {
        intercept!(self.change_access(change, now))
    }

    async fn append_access_events(&self, log: AccessLog, events: &[AccessEvent]) -> Result<()> {
        intercept!(self.append_access_events(log, events))
    }

    async fn access_events(&self, log: AccessLog, limit: u32) -> Result<Vec<AccessEvent>> {
        intercept!(self.access_events(log, limit))
    }
}

#[async_trait]
impl<G: StoreInterceptor> SignalStore for InterceptedStore<G> {
    async fn add_signals(
        &self,
        id: &ItemId,
        tickets: &[(Lane, Number, Signals)],
        now: Millis,
    ) -> Result<()> {
        intercept!(self.add_signals(id, tickets, now))
    }

    async fn signal_counts(&self, id: &ItemId, now: Millis) -> Result<SignalCounts> {
        intercept!(self.signal_counts(id, now))
    }
}

#[async_trait]
impl<G: StoreInterceptor> HistoryStore for InterceptedStore<G> {
    async fn append_hour(
        &self,
        epoch: Epoch,
        id: &ItemId,
        append: HourAppend<'_>,
        retention: Millis,
    ) -> Result<Option<Vec<u8>>> {
        intercept!(self.append_hour(epoch, id, append, retention))
    }

    async fn hours(&self, id: &ItemId, hours: RangeInclusive<u64>) -> Result<Vec<(u64, Vec<u8>)>> {
        intercept!(self.hours(id, hours))
    }

    async fn add_visits(
        &self,
        id: &ItemId,
        visits: &VisitCounts,
        keep: Millis,
        now: Millis,
    ) -> Result<()> {
        intercept!(self.add_visits(id, visits, keep, now))
    }

    async fn visits(
        &self,
        id: &ItemId,
        step: VisitStep,
        steps: RangeInclusive<u64>,
    ) -> Result<Vec<(u64, VisitCounts)>> {
        intercept!(self.visits(id, step, steps))
    }
}

#[async_trait]
impl<G: StoreInterceptor> Store for InterceptedStore<G> {
    fn partitions(&self) -> u16 {
        self.store.partitions()
    }

    async fn ping(&self) -> Result<()> {
        intercept!(self.ping())
    }

    fn lock(&self) -> &dyn LockBackend {
        self.store.lock()
    }
}
