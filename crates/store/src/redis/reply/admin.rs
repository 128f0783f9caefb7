use daegi_domain::Millis;

use super::unexpected;
use crate::Result;
use crate::redis::item_hash::Hash;
use crate::types::HeartbeatRecord;

/// Reads heartbeats, which are stored as the time, a space, and the payload.
pub(in crate::redis) fn heartbeats(stored: Hash, oldest: Millis) -> Result<Vec<HeartbeatRecord>> {
    let record = |(process, stored): (String, String)| {
        let (at, payload) =
            stored.split_once(' ').ok_or_else(|| unexpected("heartbeats", &stored))?;
        let at = at.parse().map_err(|_| unexpected("heartbeats", at))?;
        Ok(HeartbeatRecord { process, payload: payload.to_owned(), at })
    };
    let mut records = stored.into_iter().map(record).collect::<Result<Vec<_>>>()?;
    records.retain(|record| record.at >= oldest);
    records.sort_unstable_by(|one, other| one.process.cmp(&other.process));
    Ok(records)
}
