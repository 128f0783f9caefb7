//! The whole waiting room over HTTP, as people, services and operators use it.

mod fleet;
mod line;
mod outage;
mod people;
mod process;
mod room;
mod sale;
mod tokens;
