//! How often sources, users and tickets may send requests to this pod.
//!
//! A request over a limit is refused before it costs a lookup or a store call. The pod counts on its own: with `n`
//! pods behind a load balancer a source has up to `n` times the rate.

use std::time::Duration;

use ::metrics::{Counter, counter};
use axum::http::Method;
use axum::response::{IntoResponse, Redirect, Response};
use daegi_domain::{ItemId, UserId};
use daegi_runtime::config::Rates;
use daegi_runtime::http::{RequestHead, TrustedProxies, bearer};
use daegi_runtime::rate_limit::{Rate, RateLimiter};

use crate::endpoints::waiting_page::REFUSED;
use crate::error::{Error, Result};
use crate::metrics::RATE_LIMITED;

/// Keys that a pod counts at the same time: 8 MiB.
const KEYS: usize = 512 * 1024;

/// Limits requests of one pod.
pub(crate) struct RateLimits {
    proxies: TrustedProxies,
    rates: Rates,
    limiter: RateLimiter,
    refused: [Counter; Limited::LABELS.len()],
}

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Limited {
    SourceJoins,
    SourcePolls,
    SourceStreams,
    UserJoins,
    TicketPolls,
}

impl Limited {
    /// Values of the label `limit`, in the order of the variants.
    const LABELS: [&str; 5] =
        ["source_joins", "source_polls", "source_streams", "user_joins", "ticket_polls"];

    /// Describes what there was too much of, for the detail of the problem.
    fn description(self) -> &'static str {
        match self {
            Self::SourceJoins => "joins from your network",
            Self::SourcePolls => "requests from your network",
            Self::SourceStreams => "new streams from your network",
            Self::UserJoins => "joins of this user",
            Self::TicketPolls => "polls of this ticket",
        }
    }

    /// Returns which limit of its source a request counts against; `None` for requests that are not limited:
    /// documents and the waiting page, which shows its user why a join is refused.
    fn of_source(head: &RequestHead<'_>) -> Option<Self> {
        let path = head.uri.path();
        let is_api = path.starts_with("/api/");
        if *head.method == Method::POST && (is_api || is_page(path)) {
            Some(Self::SourceJoins)
        } else if path.ends_with("/events") || path.ends_with("/ws") {
            Some(Self::SourceStreams).filter(|_| is_api)
        } else {
            Some(Self::SourcePolls).filter(|_| is_api)
        }
    }
}

/// Returns whether a path is one of the waiting page.
fn is_page(path: &str) -> bool {
    path.starts_with("/wait/")
}

impl RateLimits {
    pub(crate) fn new(proxies: TrustedProxies, rates: Rates) -> Self {
        let keys = if rates == Rates::default() { 1 } else { KEYS };
        let refused = Limited::LABELS.map(|limit| counter!(RATE_LIMITED, "limit" => limit));
        Self { proxies, rates, limiter: RateLimiter::new(keys), refused }
    }

    fn is_off(&self) -> bool {
        self.rates == Rates::default()
    }

    /// Refuses a request of the public listener whose source or ticket is over a limit.
    pub(crate) fn refuse(&self, head: RequestHead<'_>) -> Option<Response> {
        if self.is_off() {
            return None;
        }
        let checked = self.check_source(&head).and_then(|()| self.check_poll(&head));
        let path = head.uri.path();
        checked.err().map(|error| match is_page(path) {
            // A form without scripts, whose user would see the JSON of the problem.
            true => Redirect::to(&format!("{path}?{REFUSED}{}", error.code())).into_response(),
            false => error.into_response(),
        })
    }

    fn check_source(&self, head: &RequestHead<'_>) -> Result<()> {
        let Some((limited, peer)) = Limited::of_source(head).zip(head.peer) else { return Ok(()) };
        let Some(rate) = self.rate(limited) else { return Ok(()) };
        self.check(limited, self.proxies.source(peer, head.headers), rate)
    }

    /// Counts a poll by the text of its token, which is cheaper than to verify it. A token that is not genuine
    /// has a count of its own.
    fn check_poll(&self, head: &RequestHead<'_>) -> Result<()> {
        let Some(rate) = self.rates.ticket_polls else { return Ok(()) };
        let path = head.uri.path().split_once("/waiting-queue/").map(|(_, token)| token);
        let token = match path.filter(|_| head.method == Method::GET) {
            Some("me") => bearer(head.headers),
            // The public record of a draw, and streams.
            Some(path) if path == "draw" || path.contains('/') => None,
            token => token,
        };
        token.map_or(Ok(()), |token| self.check(Limited::TicketPolls, token, rate))
    }

    /// Counts a join of a user.
    pub(crate) fn check_user_join(&self, item: &ItemId, user: &UserId) -> Result<()> {
        let Some(rate) = self.rates.user_joins else { return Ok(()) };
        self.check(Limited::UserJoins, (item, user), rate)
    }

    fn rate(&self, limited: Limited) -> Option<Rate> {
        match limited {
            Limited::SourceJoins => self.rates.source_joins,
            Limited::SourcePolls => self.rates.source_polls,
            Limited::SourceStreams => self.rates.source_streams,
            Limited::UserJoins => self.rates.user_joins,
            Limited::TicketPolls => self.rates.ticket_polls,
        }
    }

    fn check(&self, limited: Limited, key: impl std::hash::Hash, rate: Rate) -> Result<()> {
        self.limiter.check((limited, key), rate).map_err(|wait: Duration| {
            self.refused[limited as usize].increment(1);
            Error::TooOften { what: limited.description(), wait }
        })
    }
}
