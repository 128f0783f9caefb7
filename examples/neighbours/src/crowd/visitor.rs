//! One person: joins, asks again when told to, goes to the shop with the pass.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{LineState, Status};
use reqwest::{Client, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::Crowd;
use crate::PAUSE;

/// What kind of person it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Habit {
    /// Waits to the end.
    Stays,
    /// Leaves the line after a while, and says so.
    Leaves,
    /// Closes the page after joining. Nobody is told.
    Vanishes,
}

/// What became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Had their turn at the shop.
    Ordered,
    /// Came when nothing was left or the line was closed.
    TurnedAway,
    /// Left the line.
    Left,
    /// Was not seen again.
    Vanished,
    /// Waited, and it was over.
    InVain,
}

impl Ending {
    pub(super) const COUNT: usize = 5;
}

/// A person on the way.
pub(super) struct Visitor {
    user: String,
    habit: Habit,
    crowd: Arc<Crowd>,
    http: Client,
}

/// What a ticket says, as far as anybody needs it here.
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
    pub(super) fn new(user: String, habit: Habit, crowd: Arc<Crowd>, http: Client) -> Self {
        Self { user, habit, crowd, http }
    }

    pub(super) async fn visit(self) -> Ending {
        let Some(mut ticket) = self.join().await else { return Ending::TurnedAway };
        loop {
            match ticket.status {
                Status::Enterable => return self.buy(ticket).await,
                Status::Waiting if ticket.line_state == LineState::Disabled => break,
                Status::Waiting if self.habit == Habit::Vanishes => return Ending::Vanished,
                Status::Waiting => {}
                _ => break,
            }
            sleep(Duration::from_millis(ticket.poll_after_ms)).await;
            if self.habit == Habit::Leaves {
                return self.leave(&ticket).await;
            }
            ticket = self.poll(&ticket).await.unwrap_or(ticket);
        }
        Ending::InVain
    }

    /// None if it is too late. Tries again while daegi cannot answer.
    async fn join(&self) -> Option<Ticket> {
        loop {
            let asked = self.http.post(self.crowd.line_url()).header("user-id", &self.user).send();
            match asked.await {
                Ok(answer) if answer.status().is_success() => return answer.json().await.ok(),
                Ok(answer) if answer.status().is_client_error() => return None,
                Ok(_) | Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// None if daegi cannot answer now; the ticket in hand is still good then.
    async fn poll(&self, ticket: &Ticket) -> Option<Ticket> {
        let asked = self.http.get(self.ticket_url(ticket)).send().await;
        asked.and_then(Response::error_for_status).ok()?.json().await.ok()
    }

    async fn leave(&self, ticket: &Ticket) -> Ending {
        let _ = self.http.delete(self.ticket_url(ticket)).send().await;
        Ending::Left
    }

    fn ticket_url(&self, ticket: &Ticket) -> String {
        format!("{}/{}", self.crowd.line_url(), ticket.token)
    }

    /// Looks around, then orders. Repeats until there is an answer: the same pass is the same
    /// order.
    async fn buy(&self, ticket: Ticket) -> Ending {
        let pass = ticket.pass.unwrap_or_default();
        sleep(Duration::from_millis(fastrand::u64(self.crowd.thinking_ms.clone()))).await;
        loop {
            let order = self.http.post(format!("{}/orders", self.crowd.shop));
            let order = order.bearer_auth(&pass).json(&json!({ "itemId": self.crowd.item }));
            match order.send().await {
                Ok(answer) if answer.status() == StatusCode::SERVICE_UNAVAILABLE => {}
                Ok(answer) if answer.status().is_success() => return Ending::Ordered,
                Ok(_) => return Ending::InVain,
                Err(_) => {}
            }
            sleep(PAUSE).await;
        }
    }
}
