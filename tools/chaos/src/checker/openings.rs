//! A planned opening happens once. Its draw follows from a secret that was committed to before the first user joined,
//! and covers all users of the lobby and no others.

use std::collections::HashMap;

use super::data_loss::DataLosses;
use super::draw;
use super::lines::Lines;
use super::responses::ITEM_RECOVERY_MS;
use super::serving_order::{ServingOrder, opened_at};
use super::{Rule, Violations};
use crate::History;
use crate::history::{
    Call, DrawRecord, EventKind, Millis, ObservedDraw, ObservedOpening, Op, PlannedOpening, Setup,
    TicketNumber,
};

/// What the history has about one planned opening.
struct OpeningHistory<'a> {
    item: &'a str,
    planned: &'a PlannedOpening,
    /// The first delivery of each opening, in commit order.
    openings: Vec<&'a ObservedOpening>,
    draws: Vec<&'a ObservedDraw>,
    calls: Vec<&'a Call>,
}

/// A contradiction and its time.
type Found = (Millis, String);

pub(super) fn judge(
    setup: &Setup,
    history: &History,
    lines: &Lines<'_>,
    (openings, order): (&[ObservedOpening], &ServingOrder<'_>),
    violations: &mut Violations,
) {
    let planned = setup.items.iter().filter_map(|item| Some((&item.item, item.opening.as_ref()?)));
    for (item, planned) in planned {
        let opening = OpeningHistory::new(item, planned, (openings, history));
        let mut found = repeats(item, history);
        found.extend(opening.count(setup, &lines.losses));
        found.extend(opening.early_admissions(lines));
        if planned.is_draw {
            found.extend(opening.records());
            found.extend(opening.commitment());
            found.extend(opening.published_draws(&lines.losses));
            found.extend(opening.members(setup, lines, order));
            found.extend(opening.replied_ranks(&lines.losses, order));
        }
        for (at, what) in found {
            violations.add(Rule::Openings, at, format!("{item}: {what}"));
        }
    }
}

/// A repeat equals the original.
fn repeats(item: &str, history: &History) -> Vec<Found> {
    let mut first: HashMap<&str, &ObservedOpening> = HashMap::new();
    let content = |one: &ObservedOpening| ObservedOpening { received_at: 0, ..one.clone() };
    let deliveries = history.openings.iter().filter(|opening| opening.item == item);
    let differs = deliveries
        .filter(|opening| content(first.entry(&opening.id).or_insert(opening)) != content(opening));
    differs.map(|other| (other.at, "was published with different contents".to_owned())).collect()
}

impl<'a> OpeningHistory<'a> {
    fn new(
        item: &'a str,
        planned: &'a PlannedOpening,
        (observed, history): (&'a [ObservedOpening], &'a History),
    ) -> Self {
        let mut openings: Vec<&ObservedOpening> = Vec::new();
        for delivery in observed.iter().filter(|opening| opening.item == item) {
            match openings.iter_mut().find(|known| known.id == delivery.id) {
                Some(known) if delivery.received_at < known.received_at => *known = delivery,
                Some(_) => {}
                None => openings.push(delivery),
            }
        }
        let draws = history.draws.iter().filter(|draw| draw.item == item).collect();
        let calls = history.calls.iter().filter(|call| call.item == item).collect();
        Self { item, planned, openings, draws, calls }
    }

    /// The line opens once, and not before its time. Only a data loss may undo an opening.
    fn count(&self, setup: &Setup, losses: &DataLosses) -> Vec<Found> {
        let mut found = Vec::new();
        if self.openings.is_empty() && setup.to > self.planned.opens_at {
            found.push((self.planned.opens_at, "did not open".to_owned()));
        }
        for opening in self.openings.iter().filter(|opening| opening.at < self.planned.opens_at) {
            let early = self.planned.opens_at - opening.at;
            found.push((opening.at, format!("opened {early} ms early")));
        }
        for (first, second) in self.openings.iter().zip(self.openings.iter().skip(1)) {
            if !losses.between(opened_at(first), opened_at(second)) {
                let what = format!("opened twice, as {} and {}", first.id, second.id);
                found.push((second.at, what));
            }
        }
        found
    }

    /// No ticket is admitted before the opening.
    fn early_admissions(&self, lines: &Lines<'_>) -> Vec<Found> {
        let Some(first) = self.openings.first() else { return Vec::new() };
        let events = lines.events.get(self.item).into_iter().flatten();
        let early = events
            .filter(|event| event.event == EventKind::Activated && event.sequence < first.sequence);
        let what = |number| format!("{number} was admitted before the opening");
        early.map(|event| (event.at, what(event.number))).collect()
    }

    /// The published records prove themselves.
    fn records(&self) -> Vec<Found> {
        let check = |opening: &&&ObservedOpening| match &opening.draw {
            Some(record) => draw::check(self.item, record).err(),
            None => Some("opened without a draw".to_owned()),
        };
        let opened = self.openings.iter();
        opened.filter_map(|opening| Some((opening.at, check(&opening)?))).collect()
    }

    /// The commitment was public before the first user joined, and never changed.
    fn commitment(&self) -> Vec<Found> {
        let mut found = Vec::new();
        let joins = self.calls.iter().filter(|call| call.op == Op::Join);
        let first_join = joins.map(|call| call.from).min().unwrap_or(Millis::MAX);
        let published = self.draws.iter().filter_map(|draw| Some((draw.to, draw.record.as_ref()?)));
        let published: Vec<_> = published.collect();
        match published.iter().find(|(at, _)| *at <= first_join) {
            None => found.push((first_join, "no commitment before the first user".to_owned())),
            Some((_, before)) => {
                let opened = self.openings.iter();
                let opened = opened.filter_map(|one| Some((one.received_at, one.draw.as_ref()?)));
                let later = published.iter().copied().chain(opened);
                let other = later.filter(|(_, record)| record.commitment != before.commitment);
                found.extend(other.map(|(at, record)| {
                    let (old, new) = (&before.commitment, &record.commitment);
                    (at, format!("was committed to {old}, and then to {new}"))
                }));
            }
        }
        found
    }

    /// Pods return the record of the event.
    fn published_draws(&self, losses: &DataLosses) -> Vec<Found> {
        let (mut found, drawn) = (Vec::new(), |record: &&DrawRecord| record.seed.is_some());
        for draw in &self.draws {
            let Some(record) = draw.record.as_ref().filter(drawn) else { continue };
            let is_of = |opening: &&ObservedOpening| opening.draw.as_ref() == Some(record);
            if !self.openings.iter().copied().any(|opening| is_of(&opening)) {
                let seed = &record.seed;
                found.push((draw.to, format!("a pod returned the seed {seed:?}, without event")));
            }
        }
        // A pod returns the draw from some seconds after the opening on, also after a data loss.
        let Some(last) = self.openings.last() else { return found };
        let late = self.draws.iter().filter(|draw| {
            losses.is_settled_after(last.received_at, draw.from)
                && !losses.between(draw.from.saturating_sub(ITEM_RECOVERY_MS), draw.to)
                && draw.record.as_ref().filter(drawn).is_none()
        });
        found.extend(late.map(|draw| (draw.to, "a pod does not return the draw".to_owned())));
        found
    }

    /// The cohort has every user who joined before the opening, and no user who joined after it.
    fn members(&self, setup: &Setup, lines: &Lines<'_>, order: &ServingOrder<'_>) -> Vec<Found> {
        let Some(opening) = self.openings.last() else { return Vec::new() };
        let losses = &lines.losses;
        let (opened, mut found) = (opened_at(opening), Vec::new());
        for (number, joined) in self.first_replies() {
            let ticket = lines.ticket(self.item, number);
            let has_left = ticket.has_ended() && !ticket.was_admitted();
            let place = order.cohort_rank(self.item, number, losses.era(opened));
            let is_early = joined + setup.clock_skew < self.planned.opens_at;
            if is_early && place.is_none() && !has_left && !losses.between(joined, opened) {
                found.push((joined, format!("{number} joined in the lobby and was not drawn")));
            }
            let requested = lines.first_requests.earliest(self.item, number);
            if requested > opening.received_at && place.is_some() {
                found.push((requested, format!("{number} joined after the opening and was drawn")));
            }
        }
        found
    }

    /// When each number of the standard lane was first returned.
    fn first_replies(&self) -> HashMap<TicketNumber, Millis> {
        let mut first = HashMap::new();
        for call in &self.calls {
            if let Some(number) = call.reply().and_then(|reply| reply.number)
                && number.lane == 0
            {
                let at = first.entry(number).or_insert(call.to);
                *at = call.to.min(*at);
            }
        }
        first
    }

    /// Users receive the rank of the published draw.
    fn replied_ranks(&self, losses: &DataLosses, order: &ServingOrder<'_>) -> Vec<Found> {
        let mut found = Vec::new();
        for call in self.calls.iter().filter(|call| losses.is_fresh(call.from)) {
            let Some(reply) = call.reply() else { continue };
            let Some((number, rank)) = call.number().zip(reply.cohort_rank) else { continue };
            let place = order.cohort_rank(self.item, number, losses.era(call.from));
            if place != Some(rank) {
                found.push((call.to, format!("{number} received rank {rank}, drawn is {place:?}")));
            }
        }
        found
    }
}
