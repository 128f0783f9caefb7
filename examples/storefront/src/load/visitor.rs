//! One visitor: joins, polls as `pollAfterMs` says, and orders with the pass.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{LineState, Status};
use reqwest::{Client, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::VisitorLoad;
use crate::RETRY_INTERVAL;

/// What a visitor does while waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Waits until the ticket ends.
    Wait,
    /// Leaves the line after the first poll interval.
    Leave,
    /// Stops polling after the join.
    Disappear,
}

/// How a visit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VisitOutcome {
    /// Placed an order.
    Ordered,
    /// The join was refused.
    TurnedAway,
    /// Left the line.
    Left,
    /// Stopped polling.
    Disappeared,
    /// The ticket ended without an order.
    NotServed,
}

impl VisitOutcome {
    pub(super) const COUNT: usize = 5;
}

pub(super) struct Visitor {
    user: String,
    behaviour: Behaviour,
    load: Arc<VisitorLoad>,
    http: Client,
}

/// The fields of a ticket that a visitor needs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ticket {
    token: String,
    status: Status,
    line_state: LineState,
    poll_after_ms: u64,
    pass: Option<String>,
}

impl Visitor {
    pub(super) fn new(
        user: String,
        behaviour: Behaviour,
        load: Arc<VisitorLoad>,
        http: Client,
    ) -> Self {
        Self { user, behaviour, load, http }
    }

    pub(super) async fn visit(self) -> VisitOutcome {
        let Some(mut ticket) = self.join().await else { return VisitOutcome::TurnedAway };
        loop {
            match ticket.status {
                Status::Enterable => return self.buy(ticket).await,
                Status::Waiting if ticket.line_state == LineState::Disabled => break,
                Status::Waiting if self.behaviour == Behaviour::Disappear => {
                    return VisitOutcome::Disappeared;
                }
                Status::Waiting => {}
                _ => break,
            }
            sleep(Duration::from_millis(ticket.poll_after_ms)).await;
            if self.behaviour == Behaviour::Leave {
                return self.leave(&ticket).await;
            }
            ticket = self.poll(&ticket).await.unwrap_or(ticket);
        }
        VisitOutcome::NotServed
    }

    /// Returns `None` if the join is refused. Retries while daegi is unavailable.
    async fn join(&self) -> Option<Ticket> {
        loop {
            let response =
                self.http.post(self.load.line_url()).header("user-id", &self.user).send();
            match response.await {
                Ok(response) if response.status().is_success() => {
                    return response.json().await.ok();
                }
                Ok(response) if response.status().is_client_error() => return None,
                Ok(_) | Err(_) => sleep(RETRY_INTERVAL).await,
            }
        }
    }

    /// Returns `None` if daegi is unavailable; the ticket stays valid.
    async fn poll(&self, ticket: &Ticket) -> Option<Ticket> {
        let response = self.http.get(self.ticket_url(ticket)).send().await;
        response.and_then(Response::error_for_status).ok()?.json().await.ok()
    }

    async fn leave(&self, ticket: &Ticket) -> VisitOutcome {
        let _ = self.http.delete(self.ticket_url(ticket)).send().await;
        VisitOutcome::Left
    }

    fn ticket_url(&self, ticket: &Ticket) -> String {
        format!("{}/{}", self.load.line_url(), ticket.token)
    }

    /// Waits and orders. Retries until there is a response, because the same pass is the same order.
    async fn buy(&self, ticket: Ticket) -> VisitOutcome {
        let pass = ticket.pass.unwrap_or_default();
        sleep(Duration::from_millis(fastrand::u64(self.load.thinking_ms.clone()))).await;
        loop {
            let order = self.http.post(format!("{}/orders", self.load.shop));
            let order = order.bearer_auth(&pass).json(&json!({ "itemId": self.load.item }));
            match order.send().await {
                Ok(response) if response.status() == StatusCode::SERVICE_UNAVAILABLE => {}
                Ok(response) if response.status().is_success() => return VisitOutcome::Ordered,
                Ok(_) => return VisitOutcome::NotServed,
                Err(_) => {}
            }
            sleep(RETRY_INTERVAL).await;
        }
    }
}
