//! A person: comes, waits, is let in, and orders, or not.

use std::sync::Arc;

use daegi_domain::{EndReason, ItemId, Number, UserId};
use daegi_store::{Closing, Error, Joined, Place, Result, Standing, Store};

use super::flaky::{Flaky, way_to};
use super::world::World;
use crate::history::{Call, Entry, Millis, Op, Outcome, Seen};

/// So many turns of others a person lets pass between two questions, at most.
const PATIENCE: usize = 20;

struct Person {
    world: Arc<World>,
    store: Flaky,
    item: ItemId,
    user: UserId,
}

pub(super) async fn live(world: Arc<World>, number: usize) {
    let item = ItemId::parse(["arena", "opera"][number % 2]);
    let (Ok(item), Ok(user)) = (item, UserId::parse(&format!("person-{number}"))) else { return };
    world.turns(world.pick(150)).await;
    let person = Person { store: way_to(&world), world, item, user };
    let mut place = person.join().await;
    if person.world.chance(0.1) {
        return person.leave(place).await;
    }
    if person.world.chance(0.2) {
        place = person.join().await;
    }
    if person.until(place, |status| status != "WAITING").await == "ENTERABLE" {
        person.world.turns(person.world.pick(PATIENCE)).await;
        match person.world.pick(10) {
            0..7 => person.complete(place).await,
            7 => person.leave(place).await,
            _ => {}
        }
        person.until(place, |status| status != "WAITING" && status != "ENTERABLE").await;
    }
}

impl Person {
    async fn join(&self) -> Number {
        loop {
            let from = self.world.now();
            let joined = self.ask_for_place().await;
            let outcome = match &joined {
                Ok(Some((number, status))) => Outcome::Ok(seen(*number, status)),
                Ok(None) => Outcome::Refused { status: 404, code: "ITEM_NOT_FOUND".into() },
                Err(error) => Outcome::Unknown(error.to_string()),
            };
            self.note(Op::Join, None, from, outcome);
            if let Ok(Some((number, _))) = joined {
                return number;
            }
            self.rest().await;
        }
    }

    /// None if there is no such line at the moment.
    async fn ask_for_place(&self) -> Result<Option<(Number, &'static str)>> {
        let settings = self.store.settings().await?;
        let users = std::slice::from_ref(&self.user);
        let joined = self.store.join(&self.item, users, &settings, self.world.now()).await?;
        Ok(match joined.first() {
            Some(Joined::At { number, place, .. }) => Some((*number, status(*place))),
            Some(Joined::Refused(_)) | None => None,
        })
    }

    async fn until(&self, number: Number, enough: impl Fn(&str) -> bool) -> &'static str {
        loop {
            let from = self.world.now();
            let asked = [(self.user.clone(), number)];
            let answer = self.store.resolve(&self.item, &asked, self.world.now()).await;
            let standing = answer.map(|answer| answer.first().copied());
            let told = match standing {
                Ok(Some(standing)) => standing_told(standing),
                Ok(None) => Err("no answer".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            let outcome = match &told {
                Ok("RESTARTED") => Outcome::Refused { status: 410, code: "LINE_RESTARTED".into() },
                Ok(status) => Outcome::Ok(seen(number, status)),
                Err(error) => Outcome::Unknown(error.clone()),
            };
            self.note(Op::Poll, Some(number), from, outcome);
            if let Ok(status) = told
                && enough(status)
            {
                return status;
            }
            self.rest().await;
        }
    }

    async fn leave(&self, number: Number) {
        let call = async || {
            let now = self.world.now();
            self.store.leave(&self.item, &self.user, number, now).await.and_then(answered)
        };
        self.insist(Op::Leave, number, call).await;
    }

    async fn complete(&self, number: Number) {
        let call = async || {
            let (now, reason) = (self.world.now(), EndReason::Completed);
            self.store
                .complete(&self.item, &self.user, number, reason, now)
                .await
                .and_then(answered)
        };
        self.insist(Op::Complete, number, call).await;
    }

    /// Asks until there is an answer.
    async fn insist(&self, op: Op, number: Number, call: impl AsyncFn() -> Result<bool>) {
        loop {
            let from = self.world.now();
            let answer = call().await;
            let outcome = match &answer {
                // There was nothing to leave, or no answer came when there was.
                Ok(false) if op == Op::Leave => Outcome::Unknown("nothing to leave".to_owned()),
                Ok(released) => Outcome::Ok(Seen {
                    released: (op == Op::Complete).then_some(*released),
                    ..Seen::default()
                }),
                Err(error) => Outcome::Unknown(error.to_string()),
            };
            self.note(op, Some(number), from, outcome);
            if answer.is_ok() {
                return;
            }
            self.rest().await;
        }
    }

    async fn rest(&self) {
        self.world.turns(self.world.pick(PATIENCE)).await;
    }

    fn note(&self, op: Op, number: Option<Number>, from: Millis, outcome: Outcome) {
        self.world.write(Entry::Call(Call {
            op,
            user: self.user.to_string(),
            item: self.item.to_string(),
            number: number.map(|number| number.0),
            from,
            to: self.world.now(),
            outcome,
        }));
    }
}

fn seen(number: Number, status: &str) -> Seen {
    Seen { number: Some(number.0), status: Some(status.to_owned()), ..Seen::default() }
}

fn status(place: Place) -> &'static str {
    match place {
        Place::Waiting { .. } => "WAITING",
        Place::Entered { .. } => "ENTERABLE",
    }
}

/// What a pod would say; it asks for patience where nothing is known of the line.
fn standing_told(standing: Standing) -> std::result::Result<&'static str, String> {
    match standing {
        Standing::At(place) => Ok(status(place)),
        Standing::Ended(reason) => Ok(end(reason)),
        Standing::Restarted => Ok("RESTARTED"),
        Standing::Forgotten | Standing::NotFound => Err("503, says the simulation".to_owned()),
    }
}

pub(super) fn end(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Expired => "EXPIRED",
        EndReason::Completed => "COMPLETED",
        EndReason::Left => "LEFT",
        EndReason::Abandoned => "ABANDONED",
        EndReason::Replaced => "REPLACED",
    }
}

/// Whether a ticket was ended. Of a lost item nobody can say, so people ask again.
fn answered(closing: Closing) -> Result<bool> {
    match closing {
        Closing::Done => Ok(true),
        Closing::Over => Ok(false),
        Closing::Forgotten => Err(Error::Unavailable("the item is lost".into())),
    }
}
