//! Handlers: extract, ask the room one thing, map the answer.
//!
//! | file | what it answers |
//! |---|---|
//! | `http/queue.rs` | people: join, poll, leave, the line |
//! | `http/live.rs` | people who listen: server-sent events, WebSocket |
//! | `http/entry.rs` | the order service: verify, complete |
//! | `http/reading.rs` | what can be read: keys, the specification, the docs |
//! | `http/wait.rs` | the waiting page |
//! | `http/shortcut.rs` | nearly every poll and join, before the router |
//! | `http/presented.rs` | the item, token and user of a request |

mod presented;

pub(crate) mod entry;
pub(crate) mod live;
pub(crate) mod queue;
pub(crate) mod reading;
pub(crate) mod shortcut;
pub(crate) mod wait;
