//! The earliest time at which a number can exist: the first join request of its user.

use std::collections::HashMap;

use crate::History;
use crate::history::{Millis, Op, TicketNumber};

/// The time of the first join request of each number.
#[derive(Debug, Default)]
pub(super) struct FirstRequests<'a>(HashMap<(&'a str, TicketNumber), Millis>);

impl<'a> FirstRequests<'a> {
    pub(super) fn from_history(history: &'a History) -> Self {
        let mut first_requests = HashMap::new();
        // A join without a reply may have created the number that a later join returns.
        let mut pending: HashMap<(&str, &str), Millis> = HashMap::new();
        for call in history.calls.iter().filter(|call| call.op == Op::Join) {
            let user = (call.item.as_str(), call.user.as_str());
            let since = *pending.entry(user).or_insert(call.from);
            if let Some(number) = call.reply().and_then(|reply| reply.number) {
                first_requests.entry((call.item.as_str(), number)).or_insert(since);
                pending.remove(&user);
            }
        }
        Self(first_requests)
    }

    /// The earliest time of a number; 0 if no join returned it.
    pub(super) fn earliest(&self, item: &str, number: TicketNumber) -> Millis {
        self.0.get(&(item, number)).copied().unwrap_or(0)
    }
}
