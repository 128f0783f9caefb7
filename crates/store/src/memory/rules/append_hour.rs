use daegi_domain::history::HOUR_MS;
use daegi_domain::{ItemId, Millis};

use crate::memory::history::LineHistories;
use crate::types::HourAppend;

/// Appends to the log of an hour, or returns the log if it has another length.
pub(in crate::memory) fn append_hour(
    histories: &mut LineHistories,
    id: &ItemId,
    append: HourAppend<'_>,
    retention: Millis,
) -> Option<Vec<u8>> {
    let stored = histories.hours.get(id, append.hour).map_or(&[][..], Vec::as_slice);
    if stored.len() != append.length {
        return Some(stored.to_vec());
    }
    let oldest = append.hour.saturating_sub(retention / HOUR_MS);
    histories.hours.entry(id, append.hour, oldest).extend(append.bytes);
    None
}
