//! A line filled with waiting users.

use anyhow::{Context, ensure};
use daegi_domain::{
    ItemChange, ItemId, ItemName, Lane, LivenessPage, Millis, Number, Opening, OpeningChange,
    Order, Policy, PolicyChange, Reveal, Ticket, TicketKeys, UserId,
};
use daegi_store::{ItemStore, JoinOutcome, PolicyUpdateOutcome, RedisStore, TicketStore};

use super::fixture::{SETTINGS, now_ms};

const JOIN_BATCH_SIZE: usize = 1_000;

pub(super) struct Line {
    pub(super) item: ItemId,
    pub(super) tickets: Vec<Ticket>,
}

impl Line {
    /// Creates an item with unlimited stock and joins so many users.
    pub(super) async fn fill(store: &RedisStore, name: &str, users: usize) -> anyhow::Result<Self> {
        let mut line = Self::create(store, name).await?;
        line.join(store, users).await?;
        Ok(line)
    }

    /// Creates an item with a draw at this time and joins so many users to its lobby.
    pub(super) async fn fill_lobby(
        store: &RedisStore,
        name: &str,
        users: usize,
        opens_at: Millis,
    ) -> anyhow::Result<Self> {
        let mut line = Self::create(store, name).await?;
        let (reveal, opening) = (Some(Reveal([7; 32])), OpeningChange::Replaced);
        let policy = Policy { opening: Some(draw_at(opens_at)), ..idle_policy() };
        line.change_policy(store, &PolicyChange { policy, opening, reveal }).await?;
        line.join(store, users).await?;
        Ok(line)
    }

    async fn create(store: &RedisStore, name: &str) -> anyhow::Result<Self> {
        let item = ItemId::parse(name)?;
        let change = ItemChange {
            id: item.clone(),
            name: ItemName::parse("A concert")?,
            stock: u32::MAX,
            enabled: true,
            version: None,
            policy: Some(idle_policy()),
        };
        store.put_item(&change, now_ms()).await?;
        Ok(Self { item, tickets: Vec::new() })
    }

    async fn join(&mut self, store: &RedisStore, users: usize) -> anyhow::Result<()> {
        self.tickets.reserve_exact(users);
        let ids: Result<Vec<_>, _> =
            (0..users).map(|user| UserId::parse(&format!("u{user:09}"))).collect();
        for users in ids?.chunks(JOIN_BATCH_SIZE) {
            let joined = store.join(&self.item, users, &SETTINGS, now_ms()).await?;
            for (joined, user) in joined.into_iter().zip(users) {
                let number = number_of(&joined)?;
                self.tickets.push(Ticket::new(self.item.clone(), user.clone(), number));
            }
        }
        Ok(())
    }

    pub(super) async fn set_policy(
        &self,
        store: &RedisStore,
        policy: &Policy,
    ) -> anyhow::Result<()> {
        self.change_policy(store, &policy.clone().into()).await
    }

    async fn change_policy(&self, store: &RedisStore, change: &PolicyChange) -> anyhow::Result<()> {
        let revision = store.item(&self.item).await?.context("item not found")?.revision;
        let changed = store.set_policy(&self.item, change, revision, now_ms()).await?;
        ensure!(matches!(changed, PolicyUpdateOutcome::Changed(_)), "{changed:?}");
        Ok(())
    }

    /// Marks all users as seen at this time.
    pub(super) async fn mark_all_seen(&self, store: &RedisStore, at: Millis) -> anyhow::Result<()> {
        let pages = LivenessPage::of(self.tickets.iter().map(|ticket| ticket.number));
        Ok(store.mark_seen(&self.item, Lane::STANDARD, &pages, at).await?)
    }

    /// The poll paths of at most `count` users, spread over the whole line.
    pub(super) fn poll_paths(&self, keys: &TicketKeys, count: usize) -> Vec<String> {
        let step = (self.tickets.len() / count).max(1);
        let spread = self.tickets.iter().step_by(step).take(count);
        spread.map(|ticket| self.poll_path(keys, ticket)).collect()
    }

    pub(super) fn poll_path(&self, keys: &TicketKeys, ticket: &Ticket) -> String {
        format!("{}/{}", self.join_path(), keys.token(ticket))
    }

    pub(super) fn join_path(&self) -> String {
        format!("/api/v1/item/{}/waiting-queue", self.item)
    }
}

/// The default policy, except that absence does not count: the users do not poll.
fn idle_policy() -> Policy {
    Policy { grace_seconds: 0, ..Policy::default() }
}

/// An opening with a draw, whose lobby is open.
pub(super) fn draw_at(opens_at: Millis) -> Opening {
    Opening { opens_at: Some(opens_at), order: Order::Draw, ..Opening::default() }
}

fn number_of(joined: &JoinOutcome) -> anyhow::Result<Number> {
    match joined {
        JoinOutcome::Ticket { number, .. } => Ok(*number),
        JoinOutcome::Refused(refusal) => anyhow::bail!("refused: {refusal:?}"),
    }
}
