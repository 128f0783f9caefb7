//! The stored history of a line: its figures by minute, the same from every replica.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use daegi_domain::history::{HOUR_MS, MINUTE_MS, growth};
use daegi_domain::{HourLog, ItemId, Millis, MinuteFigures, rfc3339};
use daegi_runtime::http::{PathParams, QueryParams};
use daegi_store::Error as StoreError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::period::{Period, PeriodQuery};
use super::{AdminError, AdminResult, AdminState, store_call};

/// Rows that a response has unless `step` is given.
const DEFAULT_ROWS: u64 = 1_500;

/// Rows of one response at most: 31 days by minute.
const MAX_ROWS: u64 = 45_000;

/// The steps from which one is chosen, in minutes.
const STEPS: [u64; 7] = [1, 5, 15, 60, 240, 720, 1_440];

const MINUTES_PER_HOUR: u64 = HOUR_MS / MINUTE_MS;

/// A line over time: one list per figure, oldest first.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "itemId": "concert",
    "stepMinutes": 1,
    "at": ["2026-11-20T19:30:00.000Z", "2026-11-20T19:31:00.000Z"],
    "waiting": [4216, null],
    "entered": [199, null],
    "joined": [620, null],
    "admitted": [600, null],
    "completed": [540, null],
    "expired": [12, null],
    "abandoned": [31, null],
    "left": [4, null],
}))]
pub(super) struct LineMinutes {
    item_id: String,
    /// The length of a step.
    step_minutes: u64,
    /// When each step begins, as RFC 3339.
    at: Vec<String>,
    /// Waiting tickets: the highest count at the end of a minute of the step. Null where nothing was recorded
    /// although the line had tickets.
    waiting: Vec<Option<u64>>,
    /// Entries, as `waiting`.
    entered: Vec<Option<u64>>,
    /// Tickets that joined in the step, and so on. What happened while nothing was recorded counts in the next
    /// recorded minute.
    joined: Vec<Option<u64>>,
    admitted: Vec<Option<u64>>,
    completed: Vec<Option<u64>>,
    expired: Vec<Option<u64>>,
    abandoned: Vec<Option<u64>>,
    left: Vec<Option<u64>>,
}

/// The figures of one step: counts at its end, and what happened in it.
type Step = MinuteFigures;

pub(super) async fn show(
    State(admin): State<Arc<AdminState>>,
    PathParams(id): PathParams<ItemId>,
    QueryParams(query): QueryParams<PeriodQuery>,
) -> AdminResult<Response> {
    let now = admin.clock.now_ms();
    let requested = query.period(now)?;
    // The present minute has not ended.
    let period = Period { to: requested.to.min(now / MINUTE_MS), ..requested };
    let step = step_of(period, query.step)?;
    let hours = period.from / MINUTES_PER_HOUR..=period.to / MINUTES_PER_HOUR;
    // The last log before the period tells whether the line was quiet at its beginning.
    let hours = hours.start().saturating_sub(1)..=*hours.end();
    let (item, stored) = store_call(async {
        tokio::try_join!(admin.store.item(&id), admin.store.hours(&id, hours))
    })
    .await?;
    if item.is_none() {
        return Err(AdminError::ItemNotFound(id));
    }
    let logs = stored.into_iter().map(|(hour, log)| match HourLog::parse(&log) {
        Ok(log) => Ok((hour, log)),
        Err(error) => Err(StoreError::Corrupt(error.to_string().into())),
    });
    let minutes = minutes(&logs.collect::<Result<Vec<_>, _>>()?, period);
    let body = LineMinutes::new(&id, period, step, &minutes);
    Ok(query.format.response((&id, "minutes"), body, LineMinutes::to_csv))
}

/// Returns the length of a step in minutes.
fn step_of(period: Period, requested: Option<u64>) -> AdminResult<u64> {
    let minutes = period.to.saturating_sub(period.from);
    let fits = |step: &u64| minutes / step <= DEFAULT_ROWS;
    let step = requested.unwrap_or_else(|| STEPS.into_iter().find(fits).unwrap_or(STEPS[6]));
    if !(1..=STEPS[6]).contains(&step) {
        return Err(AdminError::Invalid("step must be from 1 to 1440 minutes".into()));
    }
    if minutes / step > MAX_ROWS {
        let detail = format!("more than {MAX_ROWS} steps: give a longer step or a shorter period");
        return Err(AdminError::Invalid(detail));
    }
    Ok(step)
}

/// Returns the minutes of a period. A minute without a record is quiet if the line had no tickets before, and
/// otherwise was not recorded: it is left out.
fn minutes(logs: &[(u64, HourLog)], period: Period) -> BTreeMap<u64, Step> {
    let mut minutes = BTreeMap::new();
    let mut quiet = |is_quiet: bool, from: u64, to: u64| {
        let unrecorded = from.max(period.from)..to.min(period.to);
        minutes.extend(unrecorded.filter(|_| is_quiet).map(|minute| (minute, Step::default())));
    };
    let mut recorded = Vec::new();
    let mut next = period.from;
    let mut end = logs.first().map_or(MinuteFigures::default(), |(_, log)| log.before);
    for (hour, log) in logs {
        end = log.before;
        for (minute, figures) in &log.minutes {
            let at = hour * MINUTES_PER_HOUR + u64::from(*minute);
            quiet(!end.has_tickets(), next, at);
            recorded.push((at, step_between(&end, figures)));
            (next, end) = (at + 1, *figures);
        }
    }
    quiet(!end.has_tickets(), next, period.to);
    let is_requested = |(at, _): &(u64, Step)| (period.from..period.to).contains(at);
    minutes.extend(recorded.into_iter().filter(is_requested));
    minutes
}

/// Returns the counts at the end of a minute and what happened since the record before.
fn step_between(before: &MinuteFigures, after: &MinuteFigures) -> Step {
    Step {
        waiting: after.waiting,
        entered: after.entered,
        joined: growth(before.joined, after.joined),
        admitted: growth(before.admitted, after.admitted),
        completed: growth(before.completed, after.completed),
        expired: growth(before.expired, after.expired),
        abandoned: growth(before.abandoned, after.abandoned),
        left: growth(before.left, after.left),
    }
}

impl LineMinutes {
    fn new(id: &ItemId, period: Period, step: u64, minutes: &BTreeMap<u64, Step>) -> Self {
        let mut all = Self { item_id: id.to_string(), step_minutes: step, ..Self::default() };
        // Steps begin at multiples of their length, so that two calls have the same ones.
        let mut from = period.from / step * step;
        while from < period.to {
            let recorded = minutes.range(from..from + step).map(|(_, minute)| minute);
            all.push(from * MINUTE_MS, recorded.copied().reduce(sum));
            from += step;
        }
        all
    }

    fn push(&mut self, at: Millis, step: Option<Step>) {
        self.at.push(rfc3339(at));
        self.waiting.push(step.map(|step| step.waiting));
        self.entered.push(step.map(|step| step.entered));
        self.joined.push(step.map(|step| step.joined));
        self.admitted.push(step.map(|step| step.admitted));
        self.completed.push(step.map(|step| step.completed));
        self.expired.push(step.map(|step| step.expired));
        self.abandoned.push(step.map(|step| step.abandoned));
        self.left.push(step.map(|step| step.left));
    }

    /// Returns one row per step. A figure that was not recorded is empty.
    fn to_csv(&self) -> String {
        let mut csv =
            String::from("at,waiting,entered,joined,admitted,completed,expired,abandoned,left\r\n");
        for (row, at) in self.at.iter().enumerate() {
            csv.push_str(at);
            let figures = [&self.waiting, &self.entered, &self.joined, &self.admitted];
            let ends = [&self.completed, &self.expired, &self.abandoned, &self.left];
            for figure in figures.into_iter().chain(ends) {
                match figure[row] {
                    Some(count) => drop(write!(csv, ",{count}")),
                    None => csv.push(','),
                }
            }
            csv.push_str("\r\n");
        }
        csv
    }
}

/// Adds two steps: the higher counts, and the sum of what happened.
fn sum(one: Step, next: Step) -> Step {
    Step {
        waiting: one.waiting.max(next.waiting),
        entered: one.entered.max(next.entered),
        joined: one.joined + next.joined,
        admitted: one.admitted + next.admitted,
        completed: one.completed + next.completed,
        expired: one.expired + next.expired,
        abandoned: one.abandoned + next.abandoned,
        left: one.left + next.left,
    }
}
