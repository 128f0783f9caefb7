//! Writes the minutes of lines to the store, once per minute, so that every replica shows the same history and a
//! restart loses none of it.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use daegi_domain::history::{HOUR_MS, MINUTE_MS};
use daegi_domain::{HourLog, ItemId, Millis, MinuteFigures};
use daegi_runtime::Clock;
use daegi_runtime::outage::OutageLog;
use daegi_store::{Epoch, Error, HourAppend, LineCounts, Result, SharedStore};
use futures_util::{StreamExt, TryStreamExt, stream};

/// How often the recorder checks whether a minute has ended.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Lines that are written concurrently.
const MAX_CONCURRENT_LINES: usize = 32;

const MINUTES_PER_HOUR: u64 = HOUR_MS / MINUTE_MS;
const HOURS_PER_DAY: u64 = 24;

/// Records the minutes of one term. What it keeps only saves reads: a new leader reads where the logs end.
#[derive(Debug)]
pub struct MinuteRecorder {
    store: SharedStore,
    epoch: Epoch,
    retention: Millis,
    state: Mutex<RecorderState>,
}

#[derive(Debug, Default)]
struct RecorderState {
    /// Lines that a tick processed since the last record, also those that were active for seconds only.
    ticked: HashSet<ItemId>,
    /// Where the logs of lines with tickets end.
    ends: HashMap<ItemId, LogEnd>,
}

/// Where the log of a line ends.
#[derive(Debug, Clone, Copy, Default)]
struct LogEnd {
    /// The hour of the log, counted since 1970.
    hour: u64,
    /// Its length in bytes.
    length: usize,
    /// The last recorded minute of the hour.
    minute: Option<u8>,
    figures: MinuteFigures,
}

impl MinuteRecorder {
    /// Records in the term of `epoch`; minutes are kept for `retention`.
    #[must_use]
    pub fn new(store: SharedStore, epoch: Epoch, retention: Duration) -> Self {
        let retention = retention.as_millis() as Millis;
        Self { store, epoch, retention, state: Mutex::default() }
    }

    /// Notes the lines of a tick.
    pub fn note_tick(&self, lines: &[ItemId]) {
        if self.retention > 0 {
            self.state().ticked.extend(lines.iter().cloned());
        }
    }

    /// Records each minute when it has ended. Never returns, because a return would end the term.
    pub(super) async fn run(&self, clock: &Clock) {
        if self.retention > 0 {
            self.record_until_stale(clock).await;
        }
        std::future::pending().await
    }

    async fn record_until_stale(&self, clock: &Clock) {
        let mut outage = OutageLog::new("minute recorder");
        // The minute before, which the leader before may not have recorded.
        let mut recorded = (clock.now_ms() / MINUTE_MS).saturating_sub(2);
        loop {
            let ended = (clock.now_ms() / MINUTE_MS).saturating_sub(1);
            if ended > recorded {
                match self.record(ended).await {
                    Ok(()) => {
                        outage.recovered();
                        recorded = ended;
                    }
                    // The ticks end the term.
                    Err(Error::StaleEpoch(_)) => return,
                    Err(error) => drop(outage.failed(&error)),
                }
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Records the present figures of all lines as those of the end of a minute, counted since 1970. A minute that is
    /// recorded already stays as it is.
    ///
    /// # Errors
    /// If the store is unavailable or another replica leads. Lines may be recorded already; a repeated call records
    /// the others.
    pub async fn record(&self, minute: u64) -> Result<()> {
        let mut lines = self.lines_to_record();
        lines.extend(self.store.active_lines().await?);
        lines.retain(|id| !id.is_reserved());
        let lines: Vec<_> = lines.into_iter().collect();
        let counts = self.store.counts(&lines).await?;
        let writes = counts.iter().map(|line| async move {
            let end = self.state().ends.get(&line.item).copied();
            match self.record_line(&line.item, end, minute, &figures(line)).await {
                Ok(end) => Ok(Some((line.item.clone(), end))),
                Err(Error::Corrupt(error)) => {
                    tracing::warn!(item.id = %line.item, %error, "minute of a line not recorded");
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        });
        let ends = stream::iter(writes.collect::<Vec<_>>()).buffer_unordered(MAX_CONCURRENT_LINES);
        let ends: Vec<_> = ends.try_collect().await?;
        let mut state = self.state();
        for id in &lines {
            state.ticked.remove(id);
        }
        let ends = ends.into_iter().flatten();
        state.ends = ends.filter(|(_, end)| end.figures.has_tickets()).collect();
        Ok(())
    }

    /// Records a minute of a line and returns where its log ends.
    async fn record_line(
        &self,
        id: &ItemId,
        known: Option<LogEnd>,
        minute: u64,
        figures: &MinuteFigures,
    ) -> Result<LogEnd> {
        let mut end = match known {
            Some(end) => end,
            None => self.read_end(id, minute).await?,
        };
        let (hour, minute) = (minute / MINUTES_PER_HOUR, (minute % MINUTES_PER_HOUR) as u8);
        loop {
            let is_recorded = (end.hour, end.minute) >= (hour, Some(minute));
            let is_quiet = end.figures == *figures && !figures.has_tickets();
            if is_recorded || is_quiet {
                return Ok(end);
            }
            let (length, last) = match end.hour == hour {
                true => (end.length, end.minute),
                false => (0, None),
            };
            let mut bytes = Vec::new();
            if length == 0 {
                bytes = HourLog::header(&end.figures);
            }
            bytes.extend(HourLog::record((last, &end.figures), minute, figures));
            let append = HourAppend { hour, length, bytes: &bytes };
            match self.store.append_hour(self.epoch, id, append, self.retention).await? {
                None => {
                    let length = length + bytes.len();
                    return Ok(LogEnd { hour, length, minute: Some(minute), figures: *figures });
                }
                // An append whose reply was lost.
                Some(stored) => end = log_end(hour, &stored)?,
            }
        }
    }

    /// Reads where the log of a line ends: of this day or the day before, otherwise the latest one that is kept.
    async fn read_end(&self, id: &ItemId, minute: u64) -> Result<LogEnd> {
        let hour = minute / MINUTES_PER_HOUR;
        for hours in [2 * HOURS_PER_DAY, self.retention / HOUR_MS] {
            let logs = self.store.hours(id, hour.saturating_sub(hours)..=hour).await?;
            if let Some((hour, stored)) = logs.last() {
                return log_end(*hour, stored);
            }
        }
        Ok(LogEnd::default())
    }

    fn lines_to_record(&self) -> HashSet<ItemId> {
        let state = self.state();
        state.ticked.iter().chain(state.ends.keys()).cloned().collect()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, RecorderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_end(hour: u64, stored: &[u8]) -> Result<LogEnd> {
    let log = HourLog::parse(stored).map_err(|error| Error::Corrupt(error.to_string().into()))?;
    let (minute, figures) = log.end();
    Ok(LogEnd { hour, length: stored.len(), minute, figures })
}

fn figures(line: &LineCounts) -> MinuteFigures {
    let totals = &line.totals;
    MinuteFigures {
        waiting: line.waiting + line.returning,
        entered: line.entered,
        joined: totals.joined,
        admitted: totals.admitted,
        completed: totals.completed,
        expired: totals.expired,
        abandoned: totals.abandoned,
        left: totals.left,
    }
}
