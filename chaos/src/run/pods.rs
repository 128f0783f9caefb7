//! How people and order services ask: over HTTP, any pod, and every answer is written down.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemId, OrderClosed, Outcome as OrderOutcome, TicketKeys, Topics, UserId};
use daegi_kafka::{Publisher, Record};
use daegi_testkit::fleet::TICKET_SECRETS;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, RequestBuilder};
use serde_json::json;

use super::answer::Answer;
use super::recorder::{Recorder, now};
use super::stage::Stage;
use crate::history::{Call, Entry, Op, Outcome, Seen};

/// After so long a person gives up and does not know what came of it.
const PATIENCE: Duration = Duration::from_secs(4);

/// Where everybody asks.
pub(crate) struct Pods {
    /// Public and internal address of each.
    addresses: Vec<(String, String)>,
    http: Client,
    keys: TicketKeys,
    publisher: Publisher,
    recorder: Arc<Recorder>,
}

/// Who asks, for what.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) user: UserId,
    pub(crate) item: ItemId,
}

/// A place as its holder knows it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) token: String,
    pub(super) number: u64,
}

/// What a person makes of an answer.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) outcome: Outcome,
    pub(super) place: Option<Place>,
    pub(super) poll_after: Duration,
}

impl Pods {
    /// All that a stage has.
    pub(crate) async fn of(stage: &Stage, recorder: Arc<Recorder>) -> anyhow::Result<Self> {
        let addresses = stage.apis.iter();
        let http = Client::builder().timeout(PATIENCE).connect_timeout(Duration::from_secs(1));
        Ok(Self {
            addresses: addresses.map(|api| (api.public.clone(), api.internal.clone())).collect(),
            http: http.build()?,
            keys: TICKET_SECRETS.parse()?,
            publisher: Publisher::new(&stage.brokers().await)?,
            recorder,
        })
    }

    pub(super) async fn join(&self, pod: usize, who: &Who) -> Heard {
        let request = self.http.post(self.line(pod, who)).header("user-id", who.user.as_str());
        self.call(Op::Join, who, None, request).await
    }

    pub(super) async fn poll(&self, pod: usize, who: &Who, place: &Place) -> Heard {
        let request = self.http.get(format!("{}/{}", self.line(pod, who), place.token));
        self.call(Op::Poll, who, Some(place), request).await
    }

    pub(super) async fn leave(&self, pod: usize, who: &Who, place: &Place) -> Heard {
        let request = self.http.delete(format!("{}/{}", self.line(pod, who), place.token));
        self.call(Op::Leave, who, Some(place), request).await
    }

    pub(super) async fn complete(&self, pod: usize, who: &Who, place: &Place) -> Heard {
        let internal = &self.addresses[pod % self.addresses.len()].1;
        let url = format!("{internal}/internal/v1/item/{}/entry/complete", who.item);
        let request = self.http.post(url).json(&json!({ "token": place.token }));
        self.call(Op::Complete, who, Some(place), request).await
    }

    /// Ends an entry over Kafka; done when the broker has confirmed it.
    pub(super) async fn order(&self, who: &Who, place: &Place) -> Outcome {
        let from = now();
        let order = OrderClosed {
            event_id: format!("order-{}-{}", who.item, place.number),
            item_id: who.item.clone(),
            user_id: who.user.clone(),
            token: place.token.clone(),
            outcome: OrderOutcome::Completed,
            occurred_at: "2026-01-01T00:00:00Z".into(),
        };
        let outcome = match Record::event(&order, &Topics::default()) {
            Ok(record) => match self.publisher.publish(&[record]).await {
                Ok(()) => Outcome::Ok(Seen::default()),
                Err(error) => Outcome::Unknown(error.to_string()),
            },
            Err(error) => Outcome::Unknown(error.to_string()),
        };
        self.note(Op::Order, who, Some(place.number), from, &outcome);
        outcome
    }

    fn line(&self, pod: usize, who: &Who) -> String {
        let public = &self.addresses[pod % self.addresses.len()].0;
        format!("{public}/api/v1/item/{}/waiting-queue", who.item)
    }

    async fn call(
        &self,
        op: Op,
        who: &Who,
        place: Option<&Place>,
        request: RequestBuilder,
    ) -> Heard {
        let from = now();
        let heard = match answer(request).await {
            Ok(answer) => self.understand(&answer, who),
            Err(error) => Heard::without(Outcome::Unknown(error)),
        };
        self.note(op, who, place.map(|place| place.number), from, &heard.outcome);
        heard
    }

    fn understand(&self, answer: &Answer, who: &Who) -> Heard {
        let body = match answer.read() {
            Ok(body) => body,
            Err(outcome) => return Heard::without(outcome),
        };
        let place = body["token"].as_str().and_then(|token| {
            let ticket = self.keys.verify(&who.item, token).ok()?;
            Some(Place { token: token.to_owned(), number: ticket.number.0 })
        });
        let seen = Seen {
            number: place.as_ref().map(|place| place.number),
            status: body["status"].as_str().map(ToOwned::to_owned),
            position: body["position"].as_u64(),
            released: body["released"].as_bool(),
        };
        let poll_after = Duration::from_millis(body["pollAfterMs"].as_u64().unwrap_or(0));
        Heard { outcome: Outcome::Ok(seen), place, poll_after }
    }

    fn note(&self, op: Op, who: &Who, number: Option<u64>, from: u64, outcome: &Outcome) {
        let (user, item) = (who.user.to_string(), who.item.to_string());
        let outcome = outcome.clone();
        self.recorder.write(&Entry::Call(Call {
            op,
            user,
            item,
            number,
            from,
            to: now(),
            outcome,
        }));
    }
}

impl Heard {
    fn without(outcome: Outcome) -> Self {
        Self { outcome, place: None, poll_after: Duration::ZERO }
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Ok(_))
    }

    pub(super) fn status(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Ok(seen) => seen.status.as_deref(),
            _ => None,
        }
    }
}

/// An answer breaks off or is whole; this one is.
async fn answer(request: RequestBuilder) -> Result<Answer, String> {
    let answer = request.send().await.map_err(|error| reason(&error))?;
    let status = answer.status().as_u16();
    let after =
        answer.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
    let text = answer.text().await.map_err(|error| reason(&error))?;
    Ok(Answer { status, after, text })
}

fn reason(error: &reqwest::Error) -> String {
    let kind = if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection"
    } else {
        "connection lost"
    };
    kind.to_owned()
}
