//! How often sources, users and tickets may send requests to this pod.
//!
//! A request over a limit is refused before it costs a store call. The pod counts on its own: with `n`
//! pods behind a load balancer a source has up to `n` times the rate.
//!
//! A limit of joins leads to a challenge first and to a refusal last: at a line that challenges new users, a source over
//! the limit gets the hardest challenge instead of 429, until it sends [`CHALLENGED_FACTOR`] times as many joins.

use std::time::Duration;

use ::metrics::{Counter, counter};
use axum::http::Method;
use axum::response::{IntoResponse, Redirect, Response};
use daegi_domain::{ItemId, UserId};
use daegi_runtime::config::Rates;
use daegi_runtime::http::{RequestHead, Source, TrustedProxies, bearer};
use daegi_runtime::rate_limit::{Rate, RateLimiter};

use crate::endpoints::waiting_page::REFUSED;
use crate::error::{Error, Result};
use crate::metrics::RATE_LIMITED;

/// Keys that a pod counts at the same time: 8 MiB.
const KEYS: usize = 512 * 1024;

/// How many times the limit of joins a source over it may send to lines with challenges. A join takes two requests
/// there, and a user may solve a second challenge because the first one expired.
const CHALLENGED_FACTOR: u32 = 8;

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
    ChallengedJoins,
    SourcePolls,
    SourceStreams,
    UserJoins,
    TicketPolls,
}

impl Limited {
    /// Values of the label `limit`, in the order of the variants.
    const LABELS: [&str; 6] = [
        "source_joins",
        "challenged_joins",
        "source_polls",
        "source_streams",
        "user_joins",
        "ticket_polls",
    ];

    /// Describes what there was too much of, for the detail of the problem.
    fn description(self) -> &'static str {
        match self {
            Self::SourceJoins | Self::ChallengedJoins => "joins from your network",
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

/// Returns the item that a join names in its path.
fn joined_item(path: &str) -> Option<ItemId> {
    let of_api = || path.strip_prefix("/api/v1/item/")?.strip_suffix("/waiting-queue");
    ItemId::parse(path.strip_prefix("/wait/").or_else(of_api)?).ok()
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

    /// Refuses a request of the public listener whose source or ticket is over a limit. `is_challenged` returns whether
    /// the line of an item challenges new users, as far as the pod knows without a store call.
    pub(crate) fn refuse(
        &self,
        head: RequestHead<'_>,
        is_challenged: impl Fn(&ItemId) -> bool,
    ) -> Option<Response> {
        if self.is_off() {
            return None;
        }
        let checked = self.check_source(&head, is_challenged).and_then(|()| self.check_poll(&head));
        let path = head.uri.path();
        checked.err().map(|error| match is_page(path) {
            // A form without scripts, whose user would see the JSON of the problem.
            true => Redirect::to(&format!("{path}?{REFUSED}{}", error.code())).into_response(),
            false => error.into_response(),
        })
    }

    fn check_source(
        &self,
        head: &RequestHead<'_>,
        is_challenged: impl Fn(&ItemId) -> bool,
    ) -> Result<()> {
        let Some((limited, peer)) = Limited::of_source(head).zip(head.peer) else { return Ok(()) };
        let Some(rate) = self.rate(limited) else { return Ok(()) };
        let source = self.proxies.source(peer, head.headers);
        let Err(wait) = self.limiter.check((limited, source), rate) else { return Ok(()) };
        let joined = || joined_item(head.uri.path());
        if limited == Limited::SourceJoins && joined().is_some_and(|item| is_challenged(&item)) {
            return self.check(Limited::ChallengedJoins, source, rate.times(CHALLENGED_FACTOR));
        }
        Err(self.refused(limited, wait))
    }

    /// Returns whether a source has used up its joins.
    pub(crate) fn is_over_joins(&self, source: Source) -> bool {
        let rate = self.rates.source_joins;
        rate.is_some_and(|rate| self.limiter.is_exhausted((Limited::SourceJoins, source), rate))
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
            Limited::SourceJoins | Limited::ChallengedJoins => self.rates.source_joins,
            Limited::SourcePolls => self.rates.source_polls,
            Limited::SourceStreams => self.rates.source_streams,
            Limited::UserJoins => self.rates.user_joins,
            Limited::TicketPolls => self.rates.ticket_polls,
        }
    }

    fn check(&self, limited: Limited, key: impl std::hash::Hash, rate: Rate) -> Result<()> {
        self.limiter.check((limited, key), rate).map_err(|wait| self.refused(limited, wait))
    }

    fn refused(&self, limited: Limited, wait: Duration) -> Error {
        self.refused[limited as usize].increment(1);
        Error::TooOften { what: limited.description(), wait }
    }
}
