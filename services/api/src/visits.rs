//! Counts visits: what devices, browsers, countries and languages users come with, how they come, how long the page
//! takes to load, and when they give up.
//!
//! A request becomes a few labels of bounded sets, and the labels become counts of the line. The counts of all
//! lines are written to the store every [`FLUSH_INTERVAL`]. Nothing else of a request is kept: no address, no id, no
//! header. Polls are not counted.

mod user_agent;

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::header::{ACCEPT_LANGUAGE, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use daegi_domain::visit::{Access, Browser, Device, Total};
use daegi_domain::{ItemId, Millis, Number, Ticket, VisitCounts, VisitLabel};
use daegi_runtime::Clock;
use daegi_store::HistoryStore;
use futures_util::{StreamExt, stream};
use metrics::Counter;
use metrics::counter;
use tokio_util::sync::CancellationToken;

use crate::metrics::VISITS_DROPPED;
use crate::tickets::TicketService;
use crate::timeouts::with_store_timeout;

/// How often counts are written to the store.
const FLUSH_INTERVAL: Duration = Duration::from_secs(5);

/// Lines that are written concurrently.
const MAX_CONCURRENT_LINES: usize = 16;

/// Lines whose visits are counted at the same time. Visits of further ones are not counted until the next flush.
const MAX_LINES: usize = 4_096;

/// The header in which a client names itself, and the page its load time: `page;load=834`.
const DAEGI_CLIENT: HeaderName = HeaderName::from_static("daegi-client");

/// A page load time above this is not plausible: 10 min.
const MAX_PAGE_LOAD_MS: u32 = 600_000;

/// How often the number of a join is noted, to know later when a ticket joined.
const NOTE_INTERVAL_MS: Millis = 5_000;

/// Notes of a line at most: 2 h of joins, 12 KB.
const MAX_NOTES: usize = 1_440;

/// How visits are counted.
#[derive(Debug, Clone, Default)]
pub struct VisitOptions {
    /// The header in which a content delivery network names the country of the client.
    pub country_header: Option<HeaderName>,
    /// How long visits are kept.
    pub retention: Duration,
}

/// What is counted about one join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visit {
    device: Device,
    browser: Browser,
    country: Option<VisitLabel>,
    language: VisitLabel,
    access: Access,
    page_load: Option<VisitLabel>,
}

/// The counts of all lines since the last flush.
pub(crate) struct Visits {
    options: VisitOptions,
    lines: Mutex<HashMap<ItemId, LineVisits>>,
    dropped: Counter,
}

/// The counts of one line.
#[derive(Debug, Default)]
struct LineVisits {
    counts: VisitCounts,
    /// Numbers of the standard lane and when they joined, oldest first. Joins between two of them joined between
    /// their times.
    joins: VecDeque<(Number, Millis)>,
}

impl FromRequestParts<Arc<TicketService>> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<TicketService>,
    ) -> Result<Self, Infallible> {
        Ok(service.visits.classify(&parts.headers))
    }
}

impl Visit {
    /// The same visit, of a user who sent the form of the page without scripts.
    pub(crate) fn by_form(self) -> Self {
        Self { access: Access::Form, ..self }
    }

    fn count(self, counts: &mut VisitCounts) {
        let bounded = [self.country, Some(self.language)];
        let closed = [Some(self.device.into()), Some(self.browser.into())];
        let access = [Some(self.access.into()), self.page_load, Some(Total::Visits.into())];
        for label in closed.into_iter().chain(bounded).chain(access).flatten() {
            counts.add_bounded(label, 1);
        }
    }
}

impl LineVisits {
    /// Notes when a number joined. After a data loss numbers may begin again anywhere.
    fn note(&mut self, number: Number, now: Millis) {
        if let Some((last, at)) = self.joins.back() {
            if number < *last {
                self.joins.clear();
            } else if now < at + NOTE_INTERVAL_MS {
                return;
            }
        }
        if self.joins.len() == MAX_NOTES {
            self.joins.pop_front();
        }
        self.joins.push_back((number, now));
    }

    /// Returns when a number joined, at most the interval between two notes too late. Returns `None` if it joined
    /// before the oldest note.
    fn joined_at(&self, number: Number) -> Option<Millis> {
        let next = self.joins.partition_point(|(noted, _)| *noted < number);
        let is_known = next > 0 || self.joins.front().is_some_and(|(first, _)| *first == number);
        let note = self.joins.get(next).or(self.joins.back()).filter(|_| is_known);
        note.map(|(_, at)| *at)
    }
}

impl Visits {
    pub(crate) fn new(options: VisitOptions) -> Self {
        Self { options, lines: Mutex::default(), dropped: counter!(VISITS_DROPPED) }
    }

    /// Returns the labels of a request.
    pub(crate) fn classify(&self, headers: &HeaderMap) -> Visit {
        let bytes = |name: &HeaderName| headers.get(name).map(|value| value.as_bytes());
        let user_agent = bytes(&USER_AGENT).unwrap_or_default();
        let (device, browser) = user_agent::classify(user_agent);
        let (access, page_load) = client(bytes(&DAEGI_CLIENT).unwrap_or_default());
        let country = self.options.country_header.as_ref();
        Visit {
            device,
            browser,
            country: country.map(|header| VisitLabel::country(bytes(header))),
            language: VisitLabel::language(bytes(&ACCEPT_LANGUAGE)),
            access,
            page_load,
        }
    }

    /// Counts a join that returned this ticket.
    pub(crate) fn joined(&self, ticket: &Ticket, visit: Visit, is_new: bool, now: Millis) {
        self.update(&ticket.item, |line| {
            if !is_new {
                return line.counts.add(Total::Reconnects.into(), 1);
            }
            visit.count(&mut line.counts);
            if ticket.lane.is_standard() {
                line.note(ticket.number, now);
            }
        });
    }

    /// Counts a stream that continues after an interruption.
    pub(crate) fn reconnected(&self, item: &ItemId) {
        self.update(item, |line| line.counts.add(Total::Reconnects.into(), 1));
    }

    /// Counts a waiting page that was served for an item that exists.
    pub(crate) fn viewed(&self, item: &ItemId) {
        self.update(item, |line| line.counts.add(Total::PageViews.into(), 1));
    }

    /// Counts a ticket that its user gave up.
    pub(crate) fn left(&self, ticket: &Ticket, now: Millis) {
        self.update(&ticket.item, |line| {
            line.counts.add(Total::Leaves.into(), 1);
            let joined = line.joined_at(ticket.number).filter(|_| ticket.lane.is_standard());
            if let Some(joined) = joined {
                line.counts.add(VisitLabel::time_to_leave(now.saturating_sub(joined)), 1);
            }
        });
    }

    /// Writes counts to the store until the shutdown, and once more then.
    pub(crate) async fn run(
        self: Arc<Self>,
        store: Arc<dyn HistoryStore>,
        clock: Clock,
        stop: CancellationToken,
    ) {
        loop {
            let stopped = stop.run_until_cancelled(tokio::time::sleep(FLUSH_INTERVAL)).await;
            self.flush(&*store, clock.now_ms()).await;
            if stopped.is_none() {
                return;
            }
        }
    }

    /// Writes the counts. Counts that cannot be written are lost: after a timeout they may be stored already,
    /// and too few visits are better than too many.
    async fn flush(&self, store: &dyn HistoryStore, now: Millis) {
        let retention = self.options.retention.as_millis() as Millis;
        let write = |(item, counts): (ItemId, VisitCounts)| async move {
            let written = store.add_visits(&item, &counts, retention, now);
            if with_store_timeout("add_visits", written).await.is_err() {
                self.dropped.increment(counts.get(Total::Visits));
            }
        };
        stream::iter(self.take(now)).for_each_concurrent(MAX_CONCURRENT_LINES, write).await;
    }

    /// Removes and returns all counts. Lines without recent joins are removed, too.
    fn take(&self, now: Millis) -> Vec<(ItemId, VisitCounts)> {
        let mut taken = Vec::new();
        let oldest = now.saturating_sub(MAX_NOTES as Millis * NOTE_INTERVAL_MS);
        self.lines().retain(|item, line| {
            if !line.counts.is_empty() {
                taken.push((item.clone(), std::mem::take(&mut line.counts)));
            }
            line.joins.back().is_some_and(|(_, at)| *at >= oldest)
        });
        taken
    }

    /// Changes the counts of a line, unless visits are not kept.
    fn update(&self, item: &ItemId, change: impl FnOnce(&mut LineVisits)) {
        if self.options.retention.is_zero() || item.is_reserved() {
            return;
        }
        let mut lines = self.lines();
        if let Some(line) = lines.get_mut(item) {
            return change(line);
        }
        if lines.len() < MAX_LINES {
            change(lines.entry(item.clone()).or_default());
        } else {
            self.dropped.increment(1);
        }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<ItemId, LineVisits>> {
        // A poisoned lock is usable, because no call panics between two related changes.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads how a user came, and the page load time, from what the client says. Other texts are an API client's.
fn client(text: &[u8]) -> (Access, Option<VisitLabel>) {
    let mut parts = text.split(|byte| *byte == b';');
    match parts.next() {
        Some(b"page") => {
            let load = parts.find_map(|part| part.trim_ascii().strip_prefix(b"load="));
            let millis = load.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
            let plausible = millis.filter(|millis| *millis <= MAX_PAGE_LOAD_MS);
            (Access::Page, plausible.map(VisitLabel::page_load))
        }
        Some(name) if name.starts_with(b"sdk") => (Access::Sdk, None),
        _ => (Access::Api, None),
    }
}

#[cfg(test)]
mod tests {
    use daegi_domain::visit::{Dimension, MAX_LABELS};
    use daegi_domain::{Lane, UserId};

    use super::*;

    fn visits() -> Visits {
        let country_header = Some(HeaderName::from_static("cf-ipcountry"));
        Visits::new(VisitOptions { country_header, retention: Duration::from_secs(1) })
    }

    fn ticket(number: u64) -> Ticket {
        let (item, user) = (ItemId::parse("a").unwrap(), UserId::parse("kim").unwrap());
        Ticket::new(item, user, Number(number))
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| (*name, value.parse().unwrap()));
        pairs.map(|(name, value)| (HeaderName::from_static(name), value)).collect()
    }

    #[test]
    fn a_client_names_itself_and_the_page_its_plausible_load_time() {
        let load = |millis| Some(VisitLabel::page_load(millis));
        for (text, access, page_load) in [
            ("page;load=834", Access::Page, load(834)),
            ("page; load=0", Access::Page, load(0)),
            ("page;load=600001", Access::Page, None),
            ("page;load=-1", Access::Page, None),
            ("page;load=99999999999999999999", Access::Page, None),
            ("page", Access::Page, None),
            ("sdk-js", Access::Sdk, None),
            ("sdk-js;load=5", Access::Sdk, None),
            ("pages", Access::Api, None),
            ("", Access::Api, None),
        ] {
            assert_eq!(client(text.as_bytes()), (access, page_load), "{text}");
        }
    }

    #[test]
    fn counts_stay_bounded_whatever_clients_send() {
        let visits = visits();
        for n in 0..5_000_u64 {
            let letter = |n: u64| char::from(b'a' + (n % 26) as u8);
            let text = String::from_iter([letter(n), letter(n / 26)]);
            let sent =
                [("cf-ipcountry", &*text), ("accept-language", &*text), ("user-agent", &*text)];
            visits.joined(&ticket(n), visits.classify(&headers(&sent)), true, n);
        }
        let (_, counts) = visits.take(5_000).remove(0);
        let labels = |dimension| counts.of(dimension).count();
        assert!(labels(Dimension::Country) + labels(Dimension::Language) <= MAX_LABELS);
        assert_eq!(counts.of(Dimension::Country).map(|(_, count)| count).sum::<u64>(), 5_000);
        assert_eq!(counts.get(Total::Visits), 5_000);
    }

    #[test]
    fn the_time_to_leave_is_known_from_the_numbers_of_joins() {
        let visits = visits();
        let visit = visits.classify(&HeaderMap::new());
        for n in 0..100 {
            visits.joined(&ticket(1_000 + n), visit, true, n * 1_000);
        }
        visits.take(0);
        visits.left(&ticket(1_050), 50_000 + 61_000);
        visits.left(&ticket(7), 111_000);
        visits.left(&Ticket { lane: Lane::numbered(1).unwrap(), ..ticket(1_050) }, 111_000);
        let (_, counts) = visits.take(0).remove(0);
        assert_eq!(counts.get(Total::Leaves), 3);
        let times: Vec<_> = counts.of(Dimension::TimeToLeave).collect();
        assert_eq!(times, [(VisitLabel::time_to_leave(61_000), 1)], "others are not known");
    }

    #[test]
    fn a_line_without_joins_is_forgotten_and_nothing_is_counted_without_retention() {
        let visits = visits();
        visits.viewed(&ticket(1).item);
        assert_eq!(visits.take(0).len(), 1);
        assert!(visits.lines().is_empty());
        let off = Visits::new(VisitOptions::default());
        off.viewed(&ticket(1).item);
        assert_eq!(off.take(0), []);
    }
}
