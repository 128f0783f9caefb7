//! Signals that a ticket belongs to a program. They are shown to operators and change nothing by themselves.
//!
//! A ticket looks automated if its honeypot field was filled in, or if it has two other signals: each of them alone is
//! common among honest users, such as a campus behind one address or a service that joins for its users.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reason to believe that a ticket belongs to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Signal {
    /// Many joins came from the source before this one.
    Source,
    /// Many joins had the same headers, which are not those of a browser.
    Headers,
    /// The ticket is polled far more often than its responses say.
    EarlyPolls,
    /// The join came without the waiting page.
    NoPage,
    /// A field was filled in that users do not see.
    Honeypot,
}

/// The signals of a ticket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Signals(u8);

/// How many tickets of an item have signals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalCounts {
    /// Tickets that look automated.
    pub automated: u64,
    /// Tickets from a source of many joins.
    pub source: u64,
    /// Tickets with the headers of many others, which are not those of a browser.
    pub headers: u64,
    /// Tickets that are polled too often.
    pub early_polls: u64,
    /// Tickets that joined without the waiting page.
    pub no_page: u64,
    /// Tickets whose honeypot field was filled in.
    pub honeypot: u64,
    /// Tickets with signals that are not counted, because too many others are.
    pub uncounted: u64,
}

impl Signal {
    /// Every signal, in the order of its bits.
    pub const ALL: [Self; 5] =
        [Self::Source, Self::Headers, Self::EarlyPolls, Self::NoPage, Self::Honeypot];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Signals {
    /// No signal.
    pub const NONE: Self = Self(0);

    /// Signals with these bits; others are ignored.
    #[must_use]
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & ((1 << Signal::ALL.len()) - 1))
    }

    /// Returns the bits.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Returns these signals and another one.
    #[must_use]
    pub fn with(self, signal: Signal) -> Self {
        Self(self.0 | signal.bit())
    }

    /// Returns the signals of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether this signal is among them.
    #[must_use]
    pub fn contains(self, signal: Signal) -> bool {
        self.0 & signal.bit() != 0
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the ticket looks automated.
    #[must_use]
    pub fn is_automated(self) -> bool {
        self.contains(Signal::Honeypot) || self.0.count_ones() >= 2
    }
}

impl SignalCounts {
    /// Counts a ticket that had some signals and has more now.
    pub fn add(&mut self, before: Signals, after: Signals) {
        let began = |is: fn(Signals) -> bool| u64::from(is(after) && !is(before));
        self.automated += began(Signals::is_automated);
        self.source += began(|signals| signals.contains(Signal::Source));
        self.headers += began(|signals| signals.contains(Signal::Headers));
        self.early_polls += began(|signals| signals.contains(Signal::EarlyPolls));
        self.no_page += began(|signals| signals.contains(Signal::NoPage));
        self.honeypot += began(|signals| signals.contains(Signal::Honeypot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_common_signal_is_not_enough_and_the_honeypot_is() {
        for signal in Signal::ALL {
            let is_honeypot = signal == Signal::Honeypot;
            assert_eq!(Signals::NONE.with(signal).is_automated(), is_honeypot, "{signal:?}");
        }
        let campus = Signals::NONE.with(Signal::Source);
        assert!(campus.with(Signal::Headers).is_automated());
        assert!(!campus.with(Signal::Source).is_automated());
    }

    #[test]
    fn a_ticket_counts_once_per_signal() {
        let (mut counts, mut signals) = (SignalCounts::default(), Signals::NONE);
        for signal in [Signal::NoPage, Signal::NoPage, Signal::EarlyPolls, Signal::Honeypot] {
            let more = signals.with(signal);
            counts.add(signals, more);
            signals = more;
        }
        let expected = SignalCounts {
            automated: 1,
            no_page: 1,
            early_polls: 1,
            honeypot: 1,
            ..SignalCounts::default()
        };
        assert_eq!(counts, expected);
    }
}
