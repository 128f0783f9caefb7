//! Breaks a fleet while people wait, writes down all that happens, and judges it, in the style of
//! Jepsen.
//!
//! People join, poll, leave and complete; a nemesis kills, pauses and cuts off processes; every call
//! and every event on Kafka is a line of a history. The judge only reads the history: it knows
//! nothing of how it came about, and a file of a run that failed can be judged again.
//!
//! | module | what lives there |
//! |---|---|
//! | [`history`] | what is written down, and how it is read again |
//! | [`check`] | what must never be in a history; pure |
//! | [`verdict`] | what was found, for people |
//! | [`picture`] | a run on a time line: faults, terms, admissions, errors |
//! | [`nemesis`] | which faults a seed brings, and when |
//! | [`run`] | the fleet, its people, its faults: makes a history |
//! | [`soak`] | a long evening without faults: what grows? |
//! | [`simulation`] | leaders, relays and people in one thread, on a store that fails: makes many histories |

pub mod check;
pub mod history;
pub mod nemesis;
pub mod picture;
pub mod run;
pub mod simulation;
pub mod soak;
pub mod verdict;

pub use history::History;
pub use verdict::Verdict;
