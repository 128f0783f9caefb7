//! Since when a number may have been there: since its holder first asked for it.

use std::collections::HashMap;

use crate::History;
use crate::history::{Millis, Op};

/// When numbers were asked for.
#[derive(Debug, Default)]
pub(super) struct Births<'a>(HashMap<(&'a str, u64), Millis>);

impl<'a> Births<'a> {
    pub(super) fn of(history: &'a History) -> Self {
        let mut births = HashMap::new();
        // A call without an answer may have brought the number that a later one tells.
        let mut asking: HashMap<(&str, &str), Millis> = HashMap::new();
        for call in history.calls.iter().filter(|call| call.op == Op::Join) {
            let person = (call.item.as_str(), call.user.as_str());
            let since = *asking.entry(person).or_insert(call.from);
            if let Some(number) = call.seen().and_then(|seen| seen.number) {
                births.entry((call.item.as_str(), number)).or_insert(since);
                asking.remove(&person);
            }
        }
        Self(births)
    }

    /// The earliest moment; one that nobody was told of may always have been there.
    pub(super) fn earliest(&self, item: &str, number: u64) -> Millis {
        self.0.get(&(item, number)).copied().unwrap_or(0)
    }
}
