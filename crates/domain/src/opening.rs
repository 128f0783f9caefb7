//! When a line opens and closes, and the phase that follows from it.

mod state;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::state::{CohortRange, Draw, Drawn, Reveal};
use crate::{Item, Millis};

/// The longest time between now and any time of an opening: 400 days. A longer one is a typing error.
const MAX_AHEAD_MS: Millis = 400 * 24 * 3_600_000;

/// A planned opening of a line. Missing fields are null.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Opening {
    /// When the line opens, RFC 3339; null opens when an operator calls `open`.
    #[serde(with = "timestamp")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub opens_at: Option<Millis>,
    /// When the lobby opens, RFC 3339: from then on users join and hold a place. Null opens the lobby
    /// immediately.
    #[serde(with = "timestamp")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub lobby_at: Option<Millis>,
    /// When the line closes, RFC 3339: later joins are refused, and no waiting ticket is admitted. Null
    /// never closes it.
    #[serde(with = "timestamp")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub closes_at: Option<Millis>,
    /// In which order the users of the lobby are served.
    pub order: Order,
}

/// In which order a line serves the users of its lobby. Users who join after the opening are served after
/// them, in order of arrival.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// In order of arrival.
    #[default]
    Arrival,
    /// In a random order that is drawn at the opening and that can be verified.
    Draw,
}

/// Where a line is between the planning of its opening and its close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The lobby is not open yet: joins are refused.
    Scheduled,
    /// Users join and hold a place; no ticket is admitted.
    Lobby,
    /// The line has opened, or has no opening.
    Open,
    /// The line has closed: joins are refused, and no ticket is admitted.
    Closed,
}

/// Why an opening is invalid, or cannot be changed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// A time is in the past.
    #[error("opening.{0} is in the past; use a later time, or POST …/open to open the line now")]
    Past(&'static str),
    /// A time is too far ahead.
    #[error("opening.{0} is more than 400 days ahead")]
    TooFar(&'static str),
    /// A time is not before the next one.
    #[error("opening.{0} must be before opening.{1}")]
    Order(&'static str, &'static str),
}

/// How a change of the policy affects the opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpeningChange {
    /// The opening is the same, apart from its times.
    Times,
    /// There is another opening, or none any more. Allowed only while no ticket is in the line.
    Replaced,
}

impl Opening {
    /// Checks the order of the times. Whether they are in the future depends on what changed, see
    /// [`Opening::check_change`].
    ///
    /// # Errors
    /// If the lobby does not open before the line, or the line does not close after it.
    pub fn check(&self) -> Result<(), OpeningError> {
        let ordered = |first: Option<Millis>, second: Option<Millis>| match first.zip(second) {
            Some((first, second)) => first < second,
            None => true,
        };
        // A lobby of no length is an opening without a lobby.
        if self.lobby_at.zip(self.opens_at).is_some_and(|(lobby, opens)| lobby > opens) {
            return Err(OpeningError::Order("lobbyAt", "opensAt"));
        }
        if !ordered(self.opens_at, self.closes_at) {
            return Err(OpeningError::Order("opensAt", "closesAt"));
        }
        if !ordered(self.lobby_at, self.closes_at) {
            return Err(OpeningError::Order("lobbyAt", "closesAt"));
        }
        Ok(())
    }

    /// Checks the change of an item's opening to `new` at `now`, and returns what it affects.
    ///
    /// # Errors
    /// If a changed time is in the past or too far ahead.
    pub fn check_change(
        item: &Item,
        new: Option<&Self>,
        now: Millis,
    ) -> Result<OpeningChange, OpeningError> {
        let old = item.policy.opening.as_ref();
        let Some(new) = new else {
            return Ok(if old.is_none() { OpeningChange::Times } else { OpeningChange::Replaced });
        };
        let same_opening = old.is_some_and(|old| old.order == new.order);
        let before =
            |time: fn(&Self) -> Option<Millis>| old.filter(|_| same_opening).and_then(time);
        let times = [
            ("opensAt", new.opens_at, before(|opening| opening.opens_at)),
            ("lobbyAt", new.lobby_at, before(|opening| opening.lobby_at)),
            ("closesAt", new.closes_at, before(|opening| opening.closes_at)),
        ];
        for (name, time, before) in times {
            match time.filter(|_| time != before) {
                // A lobby that began before is open; only the opening itself must be ahead.
                Some(time) if time <= now && name != "lobbyAt" => {
                    return Err(OpeningError::Past(name));
                }
                Some(time) if time > now + MAX_AHEAD_MS => return Err(OpeningError::TooFar(name)),
                _ => {}
            }
        }
        let start_changed =
            old.is_some_and(|old| (old.opens_at, old.lobby_at) != (new.opens_at, new.lobby_at));
        // A line that has opened opens again only as a new opening.
        let reopens = item.opened_at.is_some() && start_changed;
        Ok(if same_opening && !reopens { OpeningChange::Times } else { OpeningChange::Replaced })
    }
}

impl Item {
    /// Returns the phase of the item's line. The opening is a step of the leader, because it must happen
    /// once; the lobby and the close follow from the time alone.
    pub fn phase(&self, now: Millis) -> Phase {
        let Some(opening) = &self.policy.opening else { return Phase::Open };
        if opening.closes_at.is_some_and(|at| at <= now) {
            Phase::Closed
        } else if self.opened_at.is_some() {
            Phase::Open
        } else if opening.lobby_at.is_some_and(|at| at > now) {
            Phase::Scheduled
        } else {
            Phase::Lobby
        }
    }

    /// Returns whether the leader must open the line now.
    pub fn is_opening_due(&self, now: Millis) -> bool {
        let opens_at = self.policy.opening.as_ref().and_then(|opening| opening.opens_at);
        let is_ahead = matches!(self.phase(now), Phase::Scheduled | Phase::Lobby);
        is_ahead && opens_at.is_some_and(|at| at <= now)
    }

    /// Returns whether the leader must record the close of the line now.
    pub fn is_close_due(&self, now: Millis) -> bool {
        self.phase(now) == Phase::Closed && self.closed_at.is_none()
    }

    /// Returns whether the line opens or closes later, so that it needs the leader even when it is empty.
    pub fn has_opening_ahead(&self) -> bool {
        self.policy.opening.as_ref().is_some_and(|opening| {
            let opens = self.opened_at.is_none() && self.closed_at.is_none();
            opens || (opening.closes_at.is_some() && self.closed_at.is_none())
        })
    }
}

/// Times as RFC 3339 text, or null.
pub(crate) mod timestamp {
    use std::time::UNIX_EPOCH;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::{Millis, rfc3339};

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Millis>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.serialize_str(&rfc3339(*time)),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Millis>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        parse(&text).map(Some).map_err(D::Error::custom)
    }

    pub(crate) fn parse(text: &str) -> Result<Millis, String> {
        let bad = || format!("{text:?} is not a time such as 2026-11-20T20:00:00Z");
        let (utc, offset_minutes) = split_offset(text).ok_or_else(bad)?;
        let time = humantime::parse_rfc3339(&utc).map_err(|_| bad())?;
        let since_epoch = time.duration_since(UNIX_EPOCH).map_err(|_| bad())?;
        let millis = i64::try_from(since_epoch.as_millis()).map_err(|_| bad())?;
        Millis::try_from(millis - offset_minutes * 60_000).map_err(|_| bad())
    }

    /// Splits `2026-11-20T20:00:00+09:00` into the time with `Z` and the offset in minutes.
    fn split_offset(text: &str) -> Option<(String, i64)> {
        if let Some(time) = text.strip_suffix(['Z', 'z']) {
            return Some((format!("{time}Z"), 0));
        }
        let (time, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
        let sign = match offset.as_bytes()[0] {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let (hours, minutes) = offset[1..].split_once(':')?;
        let two_digits = |text: &str| {
            let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse::<i64>().ok()).flatten()
        };
        let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
        (hours < 24 && minutes < 60).then(|| (format!("{time}Z"), sign * (hours * 60 + minutes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemId, ItemName, Policy};

    const NOW: Millis = 1_794_600_000_000;

    fn opening(opens: Option<i64>, lobby: Option<i64>, closes: Option<i64>) -> Opening {
        let at = |offset: Option<i64>| offset.map(|offset| NOW.saturating_add_signed(offset));
        Opening {
            opens_at: at(opens),
            lobby_at: at(lobby),
            closes_at: at(closes),
            order: Order::Arrival,
        }
    }

    fn item(opening: Option<Opening>) -> Item {
        let id = ItemId::parse("concert").unwrap();
        let mut item = Item::new(id, ItemName::parse("Concert").unwrap(), 5);
        item.policy = Policy { opening, ..Policy::default() };
        item
    }

    #[test]
    fn times_are_read_with_any_offset_and_written_in_utc() {
        let read = |text: &str| serde_json::from_str::<Opening>(text);
        let seoul = read(r#"{"opensAt":"2026-11-20T20:00:00+09:00"}"#).unwrap();
        let utc = read(r#"{"opensAt":"2026-11-20T11:00:00.000Z"}"#).unwrap();
        assert_eq!(seoul, utc);
        let json = serde_json::to_value(&seoul).unwrap();
        assert_eq!(json["opensAt"], "2026-11-20T11:00:00.000Z");
        assert_eq!(json["order"], "arrival");
        for bad in [
            "tomorrow",
            "2026-11-20",
            "2026-11-20T20:00:00",
            "2026-11-20T20:00:00+9",
            "+09:00",
            "한국",
        ] {
            assert!(read(&format!(r#"{{"opensAt":{bad:?}}}"#)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_line_is_scheduled_then_in_the_lobby_then_open_then_closed() {
        let mut item = item(Some(opening(Some(2_000), Some(1_000), Some(3_000))));
        assert_eq!(item.phase(NOW), Phase::Scheduled);
        assert_eq!(item.phase(NOW + 1_000), Phase::Lobby);
        assert_eq!(item.phase(NOW + 2_500), Phase::Lobby, "only the leader opens it");
        assert!(!item.is_opening_due(NOW + 1_999) && item.is_opening_due(NOW + 2_000));
        item.opened_at = Some(NOW + 2_000);
        assert_eq!(item.phase(NOW + 2_000), Phase::Open);
        assert_eq!(item.phase(NOW + 3_000), Phase::Closed);
        assert!(item.has_opening_ahead() && item.is_close_due(NOW + 3_000));
        item.closed_at = Some(NOW + 3_000);
        assert!(!item.has_opening_ahead() && !item.is_close_due(NOW + 3_000));
    }

    #[test]
    fn contradicting_and_past_times_are_refused() {
        let bad = [
            opening(Some(1_000), Some(2_000), None),
            opening(Some(2_000), None, Some(2_000)),
            opening(None, Some(2_000), Some(1_000)),
        ];
        assert!(bad.iter().all(|opening| opening.check().is_err()), "{bad:?}");
        let change = |new: &Opening| Opening::check_change(&item(None), Some(new), NOW);
        assert_eq!(change(&opening(Some(0), None, None)), Err(OpeningError::Past("opensAt")));
        assert_eq!(change(&opening(None, None, Some(-1))), Err(OpeningError::Past("closesAt")));
        let far = opening(Some(401 * 24 * 3_600_000), None, None);
        assert_eq!(change(&far), Err(OpeningError::TooFar("opensAt")));
        assert_eq!(change(&opening(Some(1), Some(-5_000), None)), Ok(OpeningChange::Replaced));
    }

    #[test]
    fn after_the_opening_another_time_is_another_opening() {
        let old = opening(Some(1_000), None, None);
        let mut opened = item(Some(old.clone()));
        let later = Opening { opens_at: Some(NOW + 9_000), ..old.clone() };
        let change =
            |item: &Item, new: &Opening| Opening::check_change(item, Some(new), NOW + 2_000);
        assert_eq!(change(&opened, &later), Ok(OpeningChange::Times));
        opened.opened_at = Some(NOW + 1_000);
        assert_eq!(
            change(&opened, &later),
            Ok(OpeningChange::Replaced),
            "if no ticket is in the line"
        );
        let closes = Opening { closes_at: Some(NOW + 9_000), ..old.clone() };
        assert_eq!(change(&opened, &closes), Ok(OpeningChange::Times));
        let draw = Opening { order: Order::Draw, opens_at: Some(NOW + 9_000), ..old };
        assert_eq!(change(&opened, &draw), Ok(OpeningChange::Replaced));
    }
}
