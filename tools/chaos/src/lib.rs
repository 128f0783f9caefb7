//! Injects faults into a fleet under load, records a history and checks it, in the style of Jepsen.
//!
//! Users join, poll, leave and complete; a nemesis kills, pauses and disconnects processes. Every call and every event is
//! an entry of the history. The checker reads only the history, so a recorded run can be checked again.
//!
//! | module | content |
//! |---|---|
//! | [`history`] | the record of a run |
//! | [`checker`] | the rules of a history; pure |
//! | [`verdict`] | the result as text |
//! | [`timeline`] | an SVG of a run: faults, terms, admissions, errors |
//! | [`nemesis`] | the seeded plan of faults |
//! | [`runner`] | the fleet, its users and faults: records a history |
//! | [`soak`] | constant load without faults: checks for growth |
//! | [`simulation`] | leaders, relays and users in one thread on a faulty store: records many histories |

pub mod checker;
pub mod history;
pub mod nemesis;
pub mod runner;
pub mod simulation;
pub mod soak;
pub mod timeline;
pub mod verdict;

pub use history::History;
pub use verdict::Verdict;
