use daegi_domain::{Millis, Phase};

use crate::memory::line::Line;
use crate::types::BeaconOutcome;

/// Stores the signature of a round for the draw that names it, unless the line has opened or closed.
pub(in crate::memory) fn put_beacon(
    line: &mut Line,
    round: u64,
    signature: &[u8; 48],
    now: Millis,
) -> BeaconOutcome {
    let is_ahead = matches!(line.shared.item.phase(now), Phase::Scheduled | Phase::Lobby);
    let is_removed = line.shared.removed;
    let beacon = line.shared.item.draw.as_mut().and_then(|draw| draw.beacon.as_mut());
    match beacon.filter(|beacon| !is_removed && beacon.round == round) {
        Some(beacon) if beacon.signature == Some(*signature) => BeaconOutcome::Known,
        Some(beacon) if is_ahead && beacon.signature.is_none() => {
            beacon.signature = Some(*signature);
            line.bump_control(now);
            BeaconOutcome::Stored
        }
        _ => BeaconOutcome::NotAwaited,
    }
}
