//! Rules of a line that the stores, the leader, the pods and the console share. Each is one pure
//! function, so that all of them decide the same.

use crate::{Item, LineState, Millis, Settings};

/// How many tickets of the item's line are admitted per tick. A global quota of 0 stops every
/// line, also one with its own `tokensPerTick`.
pub fn quota(item: &Item, settings: &Settings) -> u32 {
    match settings.token_count_to_move {
        0 => 0,
        global => item.policy.tokens_per_tick.unwrap_or(global),
    }
}

/// The state of an item's line at `now`. `front_is_above_base` says that no number at or below the
/// line's base waits: while the line holds numbers above its base, it then admits no ticket at all.
pub fn line_state(
    item: &Item,
    front_is_above_base: bool,
    settings: &Settings,
    now: Millis,
) -> LineState {
    if !item.enabled {
        LineState::Disabled
    } else if item.stock == 0 {
        LineState::SoldOut
    } else if item.recovering_until > now {
        LineState::Recovering
    } else if item.paused || quota(item, settings) == 0 {
        LineState::Paused
    } else if item.behind_until > now && front_is_above_base {
        LineState::Recovering
    } else if item.held_until > now {
        LineState::Held
    } else {
        LineState::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemId, ItemName, Policy};

    const NOW: Millis = 1_000_000;
    const GLOBAL: Settings = Settings { token_count_to_move: 10, tick_ms: 1000 };

    fn open_item() -> Item {
        Item {
            id: ItemId::parse("concert").unwrap(),
            name: ItemName::parse("Concert").unwrap(),
            stock: 5,
            enabled: true,
            paused: false,
            recovering_until: 0,
            behind_until: 0,
            held_until: 0,
            version: 0,
            revision: 1,
            created_at: None,
            updated_at: None,
            policy: Policy::default(),
        }
    }

    #[test]
    fn a_line_recovers_while_its_first_number_is_held_above_the_base() {
        let item = Item { behind_until: NOW + 1, ..open_item() };
        assert_eq!(line_state(&item, true, &GLOBAL, NOW), LineState::Recovering);
        assert_eq!(line_state(&item, false, &GLOBAL, NOW), LineState::Open);
        assert_eq!(line_state(&item, true, &GLOBAL, NOW + 1), LineState::Open);
    }

    #[test]
    fn a_line_is_held_while_the_outbox_is_full_unless_the_operator_stopped_it() {
        let item = Item { held_until: NOW + 1, ..open_item() };
        assert_eq!(line_state(&item, true, &GLOBAL, NOW), LineState::Held);
        assert_eq!(line_state(&item, true, &GLOBAL, NOW + 1), LineState::Open);
        let paused = Item { paused: true, ..item };
        assert_eq!(line_state(&paused, true, &GLOBAL, NOW), LineState::Paused);
    }

    #[test]
    fn a_global_quota_of_0_stops_a_line_with_its_own_quota() {
        let policy = Policy { tokens_per_tick: Some(7), ..Policy::default() };
        let item = Item { policy, ..open_item() };
        let stopped = Settings { token_count_to_move: 0, ..GLOBAL };
        assert_eq!((quota(&item, &GLOBAL), quota(&item, &stopped)), (7, 0));
        assert_eq!(line_state(&item, true, &stopped, NOW), LineState::Paused);
        assert_eq!(quota(&open_item(), &GLOBAL), 10);
    }
}
