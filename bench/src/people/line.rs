//! People who wait in one line, with their numbers.

use anyhow::{Context, ensure};
use daegi_domain::{
    ItemChange, ItemId, ItemName, Millis, Number, Policy, SeenPage, Ticket, TicketKeys, UserId,
};
use daegi_store::{Joined, PolicyChange, RedisStore, Store};

use super::arena::{SETTINGS, now};

/// How many people join in one call.
const TOGETHER: usize = 1_000;

pub(super) struct Line {
    pub(super) item: ItemId,
    pub(super) tickets: Vec<Ticket>,
}

impl Line {
    /// One in which so many people wait, unless somebody made it before.
    pub(super) async fn fill(
        store: &RedisStore,
        name: &str,
        people: usize,
    ) -> anyhow::Result<Self> {
        let item = ItemId::parse(name)?;
        let policy = Policy { grace_seconds: 0, ..Policy::default() };
        let change = ItemChange {
            id: item.clone(),
            name: ItemName::parse("A concert")?,
            stock: u32::MAX,
            enabled: true,
            version: None,
            policy: Some(policy),
        };
        store.put_item(&change, now()).await?;
        let mut tickets = Vec::with_capacity(people);
        let users: Result<Vec<_>, _> =
            (0..people).map(|person| UserId::parse(&format!("u{person:09}"))).collect();
        for users in users?.chunks(TOGETHER) {
            let joined = store.join(&item, users, &SETTINGS, now()).await?;
            for (joined, user) in joined.into_iter().zip(users) {
                let number = place(&joined)?;
                tickets.push(Ticket { item: item.clone(), user: user.clone(), number });
            }
        }
        Ok(Self { item, tickets })
    }

    /// Another policy.
    pub(super) async fn set_policy(
        &self,
        store: &RedisStore,
        policy: &Policy,
    ) -> anyhow::Result<()> {
        let revision = store.item(&self.item).await?.context("no item")?.revision;
        let changed = store.set_policy(&self.item, policy, revision, now()).await?;
        ensure!(matches!(changed, PolicyChange::Changed(_)), "{changed:?}");
        Ok(())
    }

    /// Everybody asked at this moment.
    pub(super) async fn was_seen(&self, store: &RedisStore, at: Millis) -> anyhow::Result<()> {
        let pages = SeenPage::of(self.tickets.iter().map(|ticket| ticket.number));
        Ok(store.mark_seen(&self.item, &pages, at).await?)
    }

    /// The addresses of at most `count` people, spread over the whole line.
    pub(super) fn addresses(&self, keys: &TicketKeys, count: usize) -> Vec<String> {
        let step = (self.tickets.len() / count).max(1);
        let spread = self.tickets.iter().step_by(step).take(count);
        spread.map(|ticket| address(&self.item, &keys.token(ticket))).collect()
    }

    /// Where people join.
    pub(super) fn door(&self) -> String {
        format!("/api/v1/item/{}/waiting-queue", self.item)
    }
}

fn address(item: &ItemId, token: &str) -> String {
    format!("/api/v1/item/{item}/waiting-queue/{token}")
}

fn place(joined: &Joined) -> anyhow::Result<Number> {
    match joined {
        Joined::At { number, .. } => Ok(*number),
        Joined::Refused(refusal) => anyhow::bail!("refused: {refusal:?}"),
    }
}
