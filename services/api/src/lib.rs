//! The api of the waiting room: people join, learn their exact place, and leave; services learn
//! whether an entry is good.
//!
//! The crate promises:
//!
//! - **A poll costs the store nothing.** A pod answers from what it knows of a line, which it
//!   refreshes four times per second while waiting tickets ask, once for all of them.
//! - **Strangers cost the store next to nothing.** Looks at lines, unknown items and ended tickets
//!   are answered from bounded caches.
//! - **A crowd costs few calls.** People who join at once share a call, and so do people who ask
//!   what became of a ticket.
//! - **The store's trouble is told, not suffered.** Within a second there is an answer: 503 with
//!   `Retry-After`. When the store is back, so is the api, by itself.
//! - **The specification cannot drift.** The router, the OpenAPI document and the docs page are
//!   made from one table.
//!
//! | module | what lives there |
//! |---|---|
//! | `service` | [`start`] and [`run`]: putting it all together |
//! | `operations` | the table of routes |
//! | `http` | handlers: extract, ask the room, map the answer |
//! | `room` | the verbs: join, poll, leave, verify, complete |
//! | `lines` | the lines in view, the heart of it |
//! | `wire` | the JSON of the contract |
//! | `warmup` | the first requests, before people come |
//! | `wait_page` | what people see while they wait |
//! | `openapi`, `docs_page` | the specification for programs and for people |
//! | `error`, `patience`, `meters` | what goes wrong, how long to wait for it, what is counted |

mod docs_page;
mod error;
mod http;
mod lines;
mod meters;
mod openapi;
mod operations;
mod patience;
mod room;
mod service;
mod wait_page;
mod warmup;
mod wire;

pub use error::Error;
pub use openapi::document as openapi_document;
pub use service::{Api, ApiDeps, ApiLimits, Behind, Listeners, run, start};
