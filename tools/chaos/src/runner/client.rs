//! HTTP client of users and order services for any pod; records every call.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemId, OrderClosed, Outcome as OrderOutcome, TicketKeys, Topics, UserId};
use daegi_kafka::{Publisher, Record};
use daegi_testkit::fleet::TICKET_SECRETS;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, RequestBuilder};
use serde_json::json;

use super::fleet::ChaosFleet;
use super::recorder::{Recorder, now};
use super::response::Response;
use crate::history::{Call, Entry, Op, Outcome, ReplyFields, TicketNumber};

/// After this time a call has an unknown effect.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// Sends calls to the pods and records them.
pub(crate) struct RecordingClient {
    /// Public and internal URL of each pod.
    addresses: Vec<(String, String)>,
    http: Client,
    keys: TicketKeys,
    publisher: Publisher,
    recorder: Arc<Recorder>,
}

/// A user and an item.
#[derive(Debug, Clone)]
pub(crate) struct UserRef {
    pub(crate) user: UserId,
    pub(crate) item: ItemId,
}

/// A ticket as its user holds it.
#[derive(Debug, Clone)]
pub(super) struct HeldTicket {
    pub(super) token: String,
    pub(super) number: TicketNumber,
}

/// A parsed reply.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) outcome: Outcome,
    pub(super) ticket: Option<HeldTicket>,
    pub(super) poll_after: Duration,
}

impl RecordingClient {
    /// A client for all pods of the fleet.
    pub(crate) async fn new(fleet: &ChaosFleet, recorder: Arc<Recorder>) -> anyhow::Result<Self> {
        let addresses = fleet.apis.iter();
        let http =
            Client::builder().timeout(REQUEST_TIMEOUT).connect_timeout(Duration::from_secs(1));
        Ok(Self {
            addresses: addresses.map(|api| (api.public.clone(), api.internal.clone())).collect(),
            http: http.build()?,
            keys: TICKET_SECRETS.parse()?,
            publisher: Publisher::new(&fleet.brokers().await)?,
            recorder,
        })
    }

    /// Joins, with an invitation code if the user has one.
    pub(super) async fn join(&self, pod: usize, user_ref: &UserRef, code: Option<&str>) -> Reply {
        let request =
            self.http.post(self.line(pod, user_ref)).header("user-id", user_ref.user.as_str());
        let request = match code {
            Some(code) => request.header("daegi-code", code),
            None => request,
        };
        let from = now();
        let reply = self.send(user_ref, request).await;
        self.record(Op::Join, user_ref, (None, code), from, &reply.outcome);
        reply
    }

    pub(super) async fn poll(&self, pod: usize, user_ref: &UserRef, ticket: &HeldTicket) -> Reply {
        let request = self.http.get(format!("{}/{}", self.line(pod, user_ref), ticket.token));
        self.call(Op::Poll, user_ref, Some(ticket), request).await
    }

    pub(super) async fn leave(&self, pod: usize, user_ref: &UserRef, ticket: &HeldTicket) -> Reply {
        let request = self.http.delete(format!("{}/{}", self.line(pod, user_ref), ticket.token));
        self.call(Op::Leave, user_ref, Some(ticket), request).await
    }

    pub(super) async fn complete(
        &self,
        pod: usize,
        user_ref: &UserRef,
        ticket: &HeldTicket,
    ) -> Reply {
        let internal = &self.addresses[pod % self.addresses.len()].1;
        let url = format!("{internal}/internal/v1/item/{}/entry/complete", user_ref.item);
        let request = self.http.post(url).json(&json!({ "token": ticket.token }));
        self.call(Op::Complete, user_ref, Some(ticket), request).await
    }

    /// Completes an entry over Kafka; returns when the broker has confirmed the event.
    pub(super) async fn order(&self, user_ref: &UserRef, ticket: &HeldTicket) -> Outcome {
        let from = now();
        let order = OrderClosed {
            event_id: format!("order-{}-{}", user_ref.item, ticket.number),
            item_id: user_ref.item.clone(),
            user_id: user_ref.user.clone(),
            token: ticket.token.clone(),
            outcome: OrderOutcome::Completed,
            occurred_at: "2026-01-01T00:00:00Z".into(),
        };
        let outcome = match Record::from_event(&order, &Topics::default()) {
            Ok(record) => match self.publisher.publish(&[record]).await {
                Ok(()) => Outcome::Ok(ReplyFields::default()),
                Err(error) => Outcome::Unknown(error.to_string()),
            },
            Err(error) => Outcome::Unknown(error.to_string()),
        };
        self.record(Op::Order, user_ref, (Some(ticket.number), None), from, &outcome);
        outcome
    }

    fn line(&self, pod: usize, user_ref: &UserRef) -> String {
        let public = &self.addresses[pod % self.addresses.len()].0;
        format!("{public}/api/v1/item/{}/waiting-queue", user_ref.item)
    }

    async fn call(
        &self,
        op: Op,
        user_ref: &UserRef,
        ticket: Option<&HeldTicket>,
        request: RequestBuilder,
    ) -> Reply {
        let from = now();
        let reply = self.send(user_ref, request).await;
        let number = ticket.map(|ticket| ticket.number);
        self.record(op, user_ref, (number, None), from, &reply.outcome);
        reply
    }

    async fn send(&self, user_ref: &UserRef, request: RequestBuilder) -> Reply {
        match send(request).await {
            Ok(response) => self.parse(&response, user_ref),
            Err(error) => Reply::without_ticket(Outcome::Unknown(error)),
        }
    }

    fn parse(&self, response: &Response, user_ref: &UserRef) -> Reply {
        let body = match response.read() {
            Ok(body) => body,
            Err(outcome) => return Reply::without_ticket(outcome),
        };
        let ticket = body["token"].as_str().and_then(|token| {
            let ticket = self.keys.verify(&user_ref.item, token).ok()?;
            Some(HeldTicket { token: token.to_owned(), number: TicketNumber::from(&ticket) })
        });
        let fields = ReplyFields {
            number: ticket.as_ref().map(|ticket| ticket.number),
            status: body["status"].as_str().map(ToOwned::to_owned),
            position: body["position"].as_u64(),
            cohort_rank: body["cohortRank"].as_u64(),
            released: body["released"].as_bool(),
        };
        let poll_after = Duration::from_millis(body["pollAfterMs"].as_u64().unwrap_or(0));
        Reply { outcome: Outcome::Ok(fields), ticket, poll_after }
    }

    fn record(
        &self,
        op: Op,
        user_ref: &UserRef,
        (number, code): (Option<TicketNumber>, Option<&str>),
        from: u64,
        outcome: &Outcome,
    ) {
        let (user, item) = (user_ref.user.to_string(), user_ref.item.to_string());
        let outcome = outcome.clone();
        self.recorder.write(&Entry::Call(Call {
            op,
            user,
            item,
            number,
            code: code.map(ToOwned::to_owned),
            from,
            to: now(),
            outcome,
        }));
    }
}

impl Reply {
    fn without_ticket(outcome: Outcome) -> Self {
        Self { outcome, ticket: None, poll_after: Duration::ZERO }
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Ok(_))
    }

    pub(super) fn status(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Ok(fields) => fields.status.as_deref(),
            _ => None,
        }
    }
}

/// Sends a request and reads the whole response.
async fn send(request: RequestBuilder) -> Result<Response, String> {
    let response = request.send().await.map_err(|error| reason(&error))?;
    let status = response.status().as_u16();
    let after =
        response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
    let text = response.text().await.map_err(|error| reason(&error))?;
    Ok(Response { status, after, text })
}

fn reason(error: &reqwest::Error) -> String {
    let kind = if error.is_timeout() {
        "timeout"
    } else if error.is_connect() {
        "no connection"
    } else {
        "connection lost"
    };
    kind.to_owned()
}
