//! The figures of a line minute by minute, packed for the store.
//!
//! The store keeps one log per line and hour. A log begins with the figures before the hour, and has one record per
//! recorded minute with what changed since the record before. A minute in which the line had no tickets and
//! nothing changed has no record.

use crate::{Millis, varint};

/// The length of a minute.
pub const MINUTE_MS: Millis = 60_000;

/// The length of an hour.
pub const HOUR_MS: Millis = 60 * MINUTE_MS;

/// The length of a day.
pub const DAY_MS: Millis = 24 * HOUR_MS;

/// The format of a log.
const VERSION: u8 = 1;

/// How many figures a minute has.
const FIGURES: usize = 8;

/// A line at the end of a minute: two counts, and totals since the line began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MinuteFigures {
    /// Waiting tickets, returning ones included.
    pub waiting: u64,
    /// Entries.
    pub entered: u64,
    /// Tickets that joined so far.
    pub joined: u64,
    /// Tickets that were admitted so far.
    pub admitted: u64,
    /// Entries that completed so far.
    pub completed: u64,
    /// Entries that expired so far.
    pub expired: u64,
    /// Tickets that were abandoned so far.
    pub abandoned: u64,
    /// Tickets whose user left so far.
    pub left: u64,
}

/// The log of one hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourLog {
    /// The figures of the last record before this hour.
    pub before: MinuteFigures,
    /// The recorded minutes of the hour, 0 to 59, in order.
    pub minutes: Vec<(u8, MinuteFigures)>,
}

/// The stored log is not one of this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored minutes of a line are not readable")]
pub struct CorruptLog;

impl MinuteFigures {
    /// Whether the line has tickets.
    #[must_use]
    pub fn has_tickets(&self) -> bool {
        self.waiting + self.entered > 0
    }

    fn to_array(self) -> [u64; FIGURES] {
        let Self { waiting, entered, joined, admitted, completed, expired, abandoned, left } = self;
        [waiting, entered, joined, admitted, completed, expired, abandoned, left]
    }

    fn from_array(figures: [u64; FIGURES]) -> Self {
        let [waiting, entered, joined, admitted, completed, expired, abandoned, left] = figures;
        Self { waiting, entered, joined, admitted, completed, expired, abandoned, left }
    }
}

/// Returns by how much a total grew. A total that is lower than before began again at 0: the store lost it.
#[must_use]
pub fn growth(before: u64, after: u64) -> u64 {
    after.checked_sub(before).unwrap_or(after)
}

impl HourLog {
    /// Returns the beginning of a log, to which records are appended.
    #[must_use]
    pub fn header(before: &MinuteFigures) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        before.to_array().into_iter().for_each(|figure| varint::push(&mut bytes, figure));
        bytes
    }

    /// Returns the record of a minute after a record of `last`, or after the header.
    #[must_use]
    pub fn record(
        last: (Option<u8>, &MinuteFigures),
        minute: u8,
        figures: &MinuteFigures,
    ) -> Vec<u8> {
        let next = last.0.map_or(0, |minute| minute + 1);
        let (before, after) = (last.1.to_array(), figures.to_array());
        let changes = before.iter().zip(&after).enumerate().filter(|(_, (old, new))| old != new);
        let mut record = vec![minute.saturating_sub(next), 0];
        for (figure, (old, new)) in changes {
            record[1] |= 1 << figure;
            varint::push_signed(&mut record, new.wrapping_sub(*old) as i64);
        }
        record
    }

    /// Parses a stored log.
    ///
    /// # Errors
    /// If it has another format or is incomplete.
    pub fn parse(stored: &[u8]) -> Result<Self, CorruptLog> {
        let (&VERSION, mut rest) = stored.split_first().ok_or(CorruptLog)? else {
            return Err(CorruptLog);
        };
        let mut figures = [0; FIGURES];
        for figure in &mut figures {
            *figure = varint::take(&mut rest).ok_or(CorruptLog)?;
        }
        let mut log = Self { before: MinuteFigures::from_array(figures), minutes: Vec::new() };
        let mut next = 0_u8;
        while let [skipped, changed, changes @ ..] = rest {
            rest = changes;
            let minute = next.checked_add(*skipped).filter(|minute| *minute < 60);
            let minute = minute.ok_or(CorruptLog)?;
            for (position, figure) in figures.iter_mut().enumerate() {
                if changed & (1 << position) != 0 {
                    let change = varint::take_signed(&mut rest).ok_or(CorruptLog)?;
                    *figure = figure.wrapping_add(change as u64);
                }
            }
            log.minutes.push((minute, MinuteFigures::from_array(figures)));
            next = minute + 1;
        }
        if rest.is_empty() { Ok(log) } else { Err(CorruptLog) }
    }

    /// Returns the last recorded minute, and the figures at the end of the log.
    #[must_use]
    pub fn end(&self) -> (Option<u8>, MinuteFigures) {
        self.minutes.last().map_or((None, self.before), |(minute, end)| (Some(*minute), *end))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(before: &MinuteFigures, minutes: &[(u8, MinuteFigures)]) -> Vec<u8> {
        let mut bytes = HourLog::header(before);
        let mut last = (None, *before);
        for (minute, figures) in minutes {
            bytes.extend(HourLog::record((last.0, &last.1), *minute, figures));
            last = (Some(*minute), *figures);
        }
        bytes
    }

    proptest! {
        #[test]
        fn a_log_is_read_as_it_was_written(
            before in prop::array::uniform8(any::<u64>()),
            minutes in prop::collection::btree_map(0_u8..60, prop::array::uniform8(any::<u64>()), 0..60),
        ) {
            let before = MinuteFigures::from_array(before);
            let minutes: Vec<_> = minutes
                .into_iter()
                .map(|(minute, figures)| (minute, MinuteFigures::from_array(figures)))
                .collect();
            let bytes = written(&before, &minutes);
            prop_assert_eq!(HourLog::parse(&bytes), Ok(HourLog { before, minutes }));
        }

        #[test]
        fn any_bytes_are_a_log_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(HourLog::parse(&bytes));
        }
    }

    #[test]
    fn a_busy_minute_takes_sixteen_bytes_and_a_quiet_one_two() {
        let before = MinuteFigures { waiting: 90_000, joined: 3_000_000, ..Default::default() };
        let after = MinuteFigures {
            waiting: 84_000,
            entered: 400,
            joined: 3_006_000,
            admitted: 6_000,
            completed: 5_000,
            expired: 60,
            abandoned: 1_000,
            left: 50,
        };
        assert_eq!(HourLog::record((Some(3), &before), 4, &after).len(), 16);
        assert_eq!(HourLog::record((Some(4), &after), 5, &after), [0, 0]);
    }

    #[test]
    fn a_total_that_fell_began_again() {
        assert_eq!((growth(5, 9), growth(9, 4)), (4, 4));
    }
}
