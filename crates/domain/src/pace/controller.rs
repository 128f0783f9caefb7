//! The rate of a line that follows its origin: one step per tick, a pure function of state, observation and time.
//!
//! The rate rises slowly and falls immediately (AIMD with a slow start), because an overload costs every user and
//! unused capacity costs only those who wait:
//!
//! - **Cut.** If the 95th percentile or the share of errors is above its limit, the rate becomes a share of what the
//!   origin completes: 80 % just above the limit, 10 % far above it, so that the origin works off its queue.
//! - **Threshold.** What the origin completes per admitted user under pressure is its capacity. 80 % of it is
//!   remembered: below it the rate rises by half per second, above it by 1.5 % per second.
//! - **Rise.** Only with demand and with fresh signals. Between 50 % and 70 % of the target the rate stays (hysteresis),
//!   between 70 % and the target it eases by 2 % per second.
//! - **Gradient.** A percentile of a third of the usual one at the usual rate means more capacity than before: the rate
//!   then rises by 4 % to 5 % per second, also above the threshold, until the percentile moves.
//! - **Silence.** Without signals the rate stays for [`HOLD_MS`], then decays to the minimum.
//! - **Mode auto.** The rate is the maximum until the origin comes under pressure, and again when the line was
//!   empty and the origin well for [`CALM_MS`].

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AdaptivePace;
use super::origin::OriginSignal;
use crate::{Millis, Mode};

/// Time between two cuts of one overload, and between a cut and the next rise: as long as a change of the rate takes
/// to show in the signals, which are 1 s to 2 s old.
pub const REACTION_MS: Millis = 2_500;

/// How long the rate stays without signals. Longer for rates that admit fewer than ten users in this time.
pub const HOLD_MS: Millis = 10_000;

/// How long a line in mode `auto` is empty and its origin well before the rate is the maximum again.
pub const CALM_MS: Millis = 10_000;

/// Age at which a state says nothing any more, and the rate starts again.
const STALE_MS: Millis = 60_000;

/// How long an overload lasts before the rate is cut below what the origin completes.
const PERSISTENT_MS: Millis = 30_000;

/// How long the origin is far from its target before the rate rises fast beyond what is known of it.
const SURE_MS: Millis = 5_000;

/// The share of the origin's capacity up to which the rate rises fast.
const SAFE_SHARE: f64 = 0.8;

/// How fast the memory of admissions fades: about as late as the signals of the origin are, so that both describe the same
/// users.
const USED_HALF_LIFE_MS: f64 = 3_500.0;

/// The longest time that one step makes up for.
const MAX_STEP_MS: Millis = 5_000;

/// Thousandths of a user per minute, the unit of rates in a state, of one user per millisecond.
const UNITS: u64 = 60_000_000;

/// The state of the controller. It is stored with the line, so that another leader continues it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaceState {
    /// The rate, in thousandths of a user per minute. So are all rates below.
    pub rate: u64,
    /// What the line admitted lately, smoothed.
    pub used: u64,
    /// The rate up to which the origin is known to be well; 0 if it never was under pressure.
    pub threshold: u64,
    /// Requests of an admitted user, in thousandths; 0 while unknown.
    pub requests_per_user: u64,
    /// The part of a user that the last quota left over, in [`UNITS`].
    carry: u64,
    /// Admissions of this tick.
    pub quota: u32,
    /// When this step was.
    pub at: Millis,
    /// When the origin was seen last.
    pub signal_at: Millis,
    /// When the rate was cut last.
    pub cut_at: Millis,
    /// Since when the origin is well.
    pub well_since: Millis,
    /// How long the rate has been rising fast, in milliseconds.
    rising_ms: Millis,
    /// The percentile of the last seconds without pressure, smoothed; 0 while unknown.
    usual_p95: u64,
    /// What was used in the same seconds, smoothed.
    usual_rate: u64,
    /// Why the rate is what it is.
    pub reason: PaceReason,
    /// The 95th percentile that the step saw.
    pub p95_ms: Option<u32>,
    /// Errors per thousand responses that the step saw.
    pub error_permille: u32,
}

/// Why the rate is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PaceReason {
    /// The controller has just begun.
    Started,
    /// Mode `auto`, and the origin is well: the maximum.
    Unlimited,
    /// The origin is well, and users wait.
    Raised,
    /// The origin is well, and fewer users come than the rate allows.
    NoDemand,
    /// The percentile is near the target, or a cut must show first.
    Held,
    /// The percentile was above the target.
    CutLatency,
    /// The share of errors was above its limit.
    CutErrors,
    /// Nothing is known of the origin: the rate decays to the minimum.
    NoSignals,
}

/// What the leader saw since the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Observation {
    /// The origin in the last window; `None` without a source.
    pub signal: Option<OriginSignal>,
    /// The length of that window in milliseconds, for rates of requests.
    pub window_ms: Millis,
    /// Users admitted since the last step; `None` in the first step of a term.
    pub admitted: Option<u64>,
    /// Tickets that wait.
    pub waiting: u64,
}

impl PaceReason {
    const ALL: [Self; 8] = [
        Self::Started,
        Self::Unlimited,
        Self::Raised,
        Self::NoDemand,
        Self::Held,
        Self::CutLatency,
        Self::CutErrors,
        Self::NoSignals,
    ];

    fn is_cut(self) -> bool {
        matches!(self, Self::CutLatency | Self::CutErrors)
    }
}

impl PaceState {
    /// Returns the state of a line that was not observed before. In mode `auto` the line has no limit below the
    /// maximum until the origin comes under pressure.
    #[must_use]
    pub fn start(pace: &AdaptivePace, mode: Mode, now: Millis) -> Self {
        let (rate, reason) = match mode {
            Mode::Auto => (pace.max_per_minute, PaceReason::Unlimited),
            Mode::Always => (pace.min_per_minute, PaceReason::Started),
        };
        Self {
            rate: u64::from(rate) * 1000,
            used: 0,
            threshold: 0,
            requests_per_user: 0,
            carry: 0,
            quota: 0,
            at: now,
            signal_at: now,
            cut_at: 0,
            well_since: now,
            rising_ms: 0,
            usual_p95: 0,
            usual_rate: 0,
            reason,
            p95_ms: None,
            error_permille: 0,
        }
    }

    /// Returns the rate in users per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.rate as f64 / 60_000.0
    }

    /// Returns the next state. A state that is absent or older than a minute starts again.
    #[must_use]
    pub fn step(
        before: Option<&Self>,
        pace: &AdaptivePace,
        mode: Mode,
        tick_ms: u32,
        seen: &Observation,
        now: Millis,
    ) -> Self {
        let fresh = before.filter(|state| now.abs_diff(state.at) <= STALE_MS);
        let mut state = fresh.cloned().unwrap_or_else(|| Self::start(pace, mode, now));
        let elapsed = now.saturating_sub(state.at).min(MAX_STEP_MS);
        state.at = now;
        let p95_before = state.p95_ms;
        state.measure(seen, elapsed, now);
        let limits = Limits::new(pace);
        match seen.signal.and_then(|signal| limits.pressure(&signal)) {
            Some(pressure) => state.cut(&pressure, seen, p95_before, elapsed),
            None => state.recover(mode, seen, &limits, elapsed, now),
        }
        state.rate = state.rate.clamp(limits.min, limits.max);
        state.count_quota(tick_ms);
        state
    }

    /// Updates what is known of demand and origin.
    fn measure(&mut self, seen: &Observation, elapsed: Millis, now: Millis) {
        if let Some(admitted) = seen.admitted.filter(|_| elapsed > 0) {
            let rate = admitted.saturating_mul(UNITS) / elapsed;
            self.used = smooth(self.used, rate, elapsed, USED_HALF_LIFE_MS);
        }
        let signal = seen.signal.unwrap_or_default();
        (self.p95_ms, self.error_permille) = (signal.p95_ms, signal.error_permille);
        // Silence means nothing while no user is sent to the origin.
        let is_idle = seen.waiting == 0 && seen.admitted == Some(0);
        if signal.p95_ms.is_some() || is_idle {
            self.signal_at = now;
        }
    }

    /// Returns the rate of users whose requests the origin completed in the window.
    fn completed(&self, seen: &Observation) -> Option<u64> {
        let requests = seen.signal?.requests;
        let per_minute = requests.saturating_mul(UNITS).checked_div(seen.window_ms)?;
        per_minute.saturating_mul(1000).checked_div(self.requests_per_user)
    }

    fn cut(
        &mut self,
        pressure: &Pressure,
        seen: &Observation,
        p95_before: Option<u32>,
        elapsed: Millis,
    ) {
        let now = self.at;
        let capacity = self.completed(seen).filter(|capacity| *capacity > 0);
        if !self.reason.is_cut() {
            // A rate that the line did not use says nothing about the origin.
            let used = self.used.saturating_add(self.used / 4);
            let used = if self.used > 0 { self.rate.min(used) } else { self.rate };
            let base = capacity.map_or(used, |capacity| capacity.min(used));
            self.threshold = scaled(used.max(capacity.unwrap_or(0)), SAFE_SHARE);
            self.rate = scaled(base, pressure.share);
            self.cut_at = now;
        } else {
            let lasts = now.saturating_sub(self.cut_at);
            if let Some(capacity) = capacity {
                if lasts >= REACTION_MS {
                    // The origin completes as much as it can while it falls behind. Later it has worked off its
                    // queue, and completes what it gets.
                    let safe = scaled(capacity, SAFE_SHARE);
                    let falls_behind = self.p95_ms >= p95_before;
                    if lasts < REACTION_MS + elapsed || safe > self.threshold {
                        self.threshold = safe;
                    } else if falls_behind {
                        self.threshold = smooth(self.threshold, safe, elapsed, 1_500.0);
                    }
                    self.rate = scaled(self.threshold, pressure.share / SAFE_SHARE);
                } else {
                    self.rate = self.rate.min(scaled(capacity, pressure.share));
                }
            }
            let patience = if capacity.is_some() { PERSISTENT_MS } else { REACTION_MS };
            if lasts >= patience {
                self.threshold =
                    scaled(self.threshold, if capacity.is_some() { 0.5 } else { SAFE_SHARE });
                self.rate = scaled(self.rate, pressure.share.max(0.5));
                self.cut_at = now - (patience - REACTION_MS);
            }
        }
        self.well_since = now;
        self.rising_ms = 0;
        self.reason = pressure.reason;
    }

    fn recover(
        &mut self,
        mode: Mode,
        seen: &Observation,
        limits: &Limits,
        elapsed: Millis,
        now: Millis,
    ) {
        // At a low rate requests are rare: ten users are enough to see one.
        let ten_users = UNITS.saturating_mul(10) / self.rate.max(1);
        let hold = HOLD_MS.max(ten_users.min(30 * HOLD_MS));
        if now.saturating_sub(self.signal_at) > hold {
            self.rate = grown(self.rate, 0.9, elapsed);
            (self.reason, self.rising_ms, self.well_since) = (PaceReason::NoSignals, 0, now);
            return;
        }
        if let Some(p95) = seen.signal.and_then(|signal| signal.p95_ms) {
            self.learn(seen, p95, elapsed);
        }
        let unlimited = self.reason == PaceReason::Unlimited;
        let has_demand = seen.waiting > 0 || self.used > scaled(self.rate, 0.7);
        let is_calm = !has_demand && now.saturating_sub(self.well_since) >= CALM_MS;
        if mode == Mode::Auto && (unlimited || is_calm) {
            (self.rate, self.reason) = (limits.max, PaceReason::Unlimited);
            return;
        }
        let Some(p95) = seen.signal.and_then(|signal| signal.p95_ms) else {
            if !has_demand {
                self.reason = PaceReason::NoDemand;
            }
            return;
        };
        if !has_demand {
            (self.reason, self.rising_ms) = (PaceReason::NoDemand, 0);
        } else if p95 > limits.near_target()
            && (self.rate >= self.threshold || p95 > limits.close_to_target())
        {
            if p95 > limits.close_to_target() {
                self.rate = grown(self.rate, 0.98, elapsed);
            }
            (self.reason, self.rising_ms) = (PaceReason::Held, 0);
        } else {
            self.raise(p95, limits, elapsed);
            self.reason = PaceReason::Raised;
        }
    }

    /// Updates what is usual: the percentile, and how many requests an admitted user sends. A percentile of half the
    /// usual one at the same rate means that the origin can take more than before.
    fn learn(&mut self, seen: &Observation, p95: u32, elapsed: Millis) {
        let p95 = u64::from(p95);
        if self.at.saturating_sub(self.well_since) < REACTION_MS {
            return;
        }
        let is_usual_rate = self.used > scaled(self.usual_rate, 0.9);
        if is_usual_rate && p95 * 3 < self.usual_p95 {
            self.threshold = self.threshold.min(scaled(self.rate, SAFE_SHARE));
            (self.usual_p95, self.rising_ms) = (p95, SURE_MS);
        }
        self.usual_p95 = smooth(self.usual_p95, p95, elapsed, 8_000.0);
        self.usual_rate = smooth(self.usual_rate, self.used, elapsed, 8_000.0);
        let requests = seen.signal.map_or(0, |signal| signal.requests);
        let per_minute = requests.saturating_mul(UNITS).checked_div(seen.window_ms);
        let Some(rate) = per_minute.filter(|_| self.used > 0 && requests > 0) else { return };
        let each = rate.saturating_mul(1000) / self.used;
        self.requests_per_user = match self.requests_per_user {
            0 => each,
            known => smooth(known, each, elapsed, 10_000.0),
        };
    }

    /// Raises the rate: by half per second below the threshold, by 12 % before there is one, by 1.5 % above it, and by up
    /// to 5 % when the origin is far from its target there.
    fn raise(&mut self, p95: u32, limits: &Limits, elapsed: Millis) {
        if self.threshold == 0 && p95 > limits.near_target() {
            self.threshold = self.rate;
        }
        let is_far = p95 < limits.quarter_of_target();
        let is_known = self.rate < scaled(self.threshold, 1.0 / SAFE_SHARE);
        self.rising_ms = if is_far && (self.rising_ms > 0 || !is_known) {
            self.rising_ms.saturating_add(elapsed)
        } else {
            0
        };
        self.rate = if self.threshold == 0 {
            grown(self.rate, 1.12, elapsed)
        } else if self.rate < self.threshold {
            grown(self.rate, 1.5, elapsed).min(self.threshold)
        } else {
            let factor = match self.rising_ms {
                0..5_000 => 1.015,
                5_000..7_000 => 1.04,
                _ => 1.05,
            };
            grown(self.rate, factor, elapsed)
        };
    }

    /// Computes the quota of a tick. What is left of a user is carried over, so that 0.5 per second admits one user
    /// every 2 s; an unused quota is not.
    fn count_quota(&mut self, tick_ms: u32) {
        let users = self.rate.saturating_mul(tick_ms.into()).saturating_add(self.carry);
        self.carry = users % UNITS;
        self.quota = u32::try_from(users / UNITS).unwrap_or(u32::MAX);
    }
}

/// The settings in the units of a state.
struct Limits {
    min: u64,
    max: u64,
    target_p95_ms: u32,
    max_error_permille: u32,
}

/// The origin is above a limit.
struct Pressure {
    reason: PaceReason,
    /// What is left of the rate.
    share: f64,
}

impl Limits {
    fn new(pace: &AdaptivePace) -> Self {
        Self {
            min: u64::from(pace.min_per_minute) * 1000,
            max: u64::from(pace.max_per_minute) * 1000,
            target_p95_ms: pace.target_p95_ms,
            max_error_permille: pace.max_error_percent * 10,
        }
    }

    fn near_target(&self) -> u32 {
        self.target_p95_ms / 2
    }

    fn close_to_target(&self) -> u32 {
        self.target_p95_ms / 10 * 7
    }

    fn quarter_of_target(&self) -> u32 {
        self.target_p95_ms / 4
    }

    fn pressure(&self, signal: &OriginSignal) -> Option<Pressure> {
        let share = |limit: u32, value: u32| {
            let ratio = f64::from(limit) / f64::from(value);
            ratio.sqrt().max(0.65).min(2.6 * ratio).clamp(0.1, 0.8)
        };
        let p95 = signal.p95_ms.filter(|p95| *p95 > self.target_p95_ms);
        let slow = p95.map(|p95| share(self.target_p95_ms, p95));
        let failing = (signal.error_permille > self.max_error_permille)
            .then(|| share(self.max_error_permille, signal.error_permille));
        match (slow, failing) {
            (None, None) => None,
            (Some(slow), failing) if failing.is_none_or(|failing| slow <= failing) => {
                Some(Pressure { reason: PaceReason::CutLatency, share: slow })
            }
            (_, failing) => {
                let share = failing.unwrap_or(0.5);
                Some(Pressure { reason: PaceReason::CutErrors, share })
            }
        }
    }
}

fn scaled(rate: u64, by: f64) -> u64 {
    (rate as f64 * by) as u64
}

/// Returns the rate after it changed by a factor per second for so long.
fn grown(rate: u64, per_second: f64, elapsed: Millis) -> u64 {
    scaled(rate, per_second.powf(elapsed as f64 / 1000.0))
}

/// Returns an exponentially weighted mean whose weights halve every `half_life_ms`.
fn smooth(before: u64, value: u64, elapsed: Millis, half_life_ms: f64) -> u64 {
    let kept = 0.5_f64.powf(elapsed as f64 / half_life_ms);
    scaled(before, kept).saturating_add(scaled(value, 1.0 - kept))
}

/// Writes a state as words, for one field of the store.
impl fmt::Display for PaceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = PaceReason::ALL.iter().position(|reason| *reason == self.reason);
        let numbers = [
            1,
            self.rate,
            self.used,
            self.threshold,
            self.requests_per_user,
            self.carry,
            self.quota.into(),
            self.at,
            self.signal_at,
            self.cut_at,
            self.well_since,
            self.rising_ms,
            self.usual_p95,
            self.usual_rate,
            reason.unwrap_or(0) as u64,
            // 0 is no percentile: a response takes time.
            self.p95_ms.unwrap_or(0).into(),
            self.error_permille.into(),
        ];
        let words: Vec<_> = numbers.iter().map(u64::to_string).collect();
        f.write_str(&words.join(" "))
    }
}

/// A text that is no state of this release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a state of this release")]
pub struct UnknownState;

impl FromStr for PaceState {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        let numbers: Result<Vec<u64>, _> = text.split(' ').map(str::parse).collect();
        let numbers = numbers.map_err(|_| UnknownState)?;
        let &[
            1,
            rate,
            used,
            threshold,
            requests_per_user,
            carry,
            quota,
            at,
            signal_at,
            cut_at,
            well_since,
            rising_ms,
            usual_p95,
            usual_rate,
            reason,
            p95,
            errors,
        ] = numbers.as_slice()
        else {
            return Err(UnknownState);
        };
        let small = |number: u64| u32::try_from(number).map_err(|_| UnknownState);
        let reason = usize::try_from(reason).ok().and_then(|index| PaceReason::ALL.get(index));
        Ok(Self {
            rate,
            used,
            threshold,
            requests_per_user,
            carry,
            quota: small(quota)?,
            at,
            signal_at,
            cut_at,
            well_since,
            rising_ms,
            usual_p95,
            usual_rate,
            reason: *reason.ok_or(UnknownState)?,
            p95_ms: Some(small(p95)?).filter(|p95| *p95 > 0),
            error_permille: small(errors)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Millis = 1000;

    /// A controller with 1 to 600 users per second and a target of 500 ms, stepped every second.
    struct Stepper {
        pace: AdaptivePace,
        mode: Mode,
        state: PaceState,
        now: Millis,
    }

    impl Stepper {
        fn new(mode: Mode) -> Self {
            let pace = AdaptivePace::new(60, 36_000, 500);
            let state = PaceState::start(&pace, mode, 0);
            Self { pace, mode, state, now: 0 }
        }

        fn step(&mut self, seen: Observation) -> &PaceState {
            self.now += SECOND;
            let (pace, before) = (&self.pace, Some(&self.state));
            self.state = PaceState::step(before, pace, self.mode, 1000, &seen, self.now);
            &self.state
        }

        /// Steps with users waiting, all of whom the rate admits.
        fn busy(&mut self, p95: u32) -> &PaceState {
            let admitted = self.state.quota.into();
            self.step(Observation { waiting: 100, ..observation(p95, admitted) })
        }
    }

    fn observation(p95: u32, admitted: u64) -> Observation {
        let signal = OriginSignal { requests: admitted, p95_ms: Some(p95), error_permille: 0 };
        let admitted = Some(admitted);
        Observation { signal: Some(signal), window_ms: 1000, admitted, waiting: 0 }
    }

    #[test]
    fn the_rate_rises_from_the_minimum_while_users_wait_and_the_origin_is_well() {
        let mut line = Stepper::new(Mode::Always);
        let rates: Vec<u64> = (0..8).map(|_| line.busy(20).rate).collect();
        assert!(rates.windows(2).all(|pair| pair[0] < pair[1]), "{rates:?}");
        assert_eq!(line.state.reason, PaceReason::Raised);
        (0..60).for_each(|_| drop(line.busy(20).clone()));
        assert_eq!(line.state.rate, 36_000_000, "the maximum holds");
    }

    #[test]
    fn pressure_cuts_in_the_same_step_and_errors_do_too() {
        let mut line = Stepper::new(Mode::Always);
        (0..20).for_each(|_| drop(line.busy(20).clone()));
        let before = line.state.rate;
        assert!(line.busy(812).rate <= before * 62 / 100, "500/812 of the rate is left");
        assert_eq!((line.state.reason, line.state.p95_ms), (PaceReason::CutLatency, Some(812)));
        let mut line = Stepper::new(Mode::Always);
        (0..20).for_each(|_| drop(line.busy(20).clone()));
        let before = line.state.rate;
        let mut seen = Observation { waiting: 9, ..observation(20, 100) };
        seen.signal.as_mut().unwrap().error_permille = 51;
        assert!(line.step(seen).rate <= before * 9 / 10);
        assert_eq!(line.state.reason, PaceReason::CutErrors);
    }

    #[test]
    fn the_rate_does_not_rise_without_demand_or_near_the_target() {
        let mut line = Stepper::new(Mode::Always);
        (0..10).for_each(|_| drop(line.busy(20).clone()));
        let before = line.state.rate;
        (0..30).for_each(|_| drop(line.step(observation(20, 1)).clone()));
        assert_eq!((line.state.rate, line.state.reason), (before, PaceReason::NoDemand));
        assert_eq!((line.busy(300).rate, line.state.reason), (before, PaceReason::Held));
        assert!(line.busy(450).rate < before, "it eases before the target");
        assert_eq!(line.state.reason, PaceReason::Held);
    }

    #[test]
    fn silence_holds_the_rate_then_decays_it_to_the_minimum() {
        let mut line = Stepper::new(Mode::Always);
        (0..10).for_each(|_| drop(line.busy(20).clone()));
        let before = line.state.rate;
        let silence = Observation { waiting: 100, admitted: Some(30), ..Observation::default() };
        (0..10).for_each(|_| drop(line.step(silence).clone()));
        assert_eq!(line.state.rate, before, "a report may be late");
        assert!(line.step(silence).rate < before);
        (0..60).for_each(|_| drop(line.step(silence).clone()));
        assert_eq!((line.state.rate, line.state.reason), (60_000, PaceReason::NoSignals));
        assert!(line.busy(20).rate > 60_000, "it rises again with the first signal");
    }

    #[test]
    fn half_a_user_per_second_admits_one_every_other_second() {
        let pace = AdaptivePace::new(30, 30, 500);
        let mut state = PaceState::start(&pace, Mode::Always, 0);
        let mut quotas = Vec::new();
        for second in 1..=6 {
            let seen = observation(10, 0);
            state =
                PaceState::step(Some(&state), &pace, Mode::Always, 1000, &seen, second * SECOND);
            quotas.push(state.quota);
        }
        assert_eq!(quotas, [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn mode_auto_has_no_limit_until_the_origin_comes_under_pressure() {
        let mut line = Stepper::new(Mode::Auto);
        assert_eq!(line.step(observation(20, 10)).rate, 36_000_000);
        let cut = line.step(observation(900, 300)).clone();
        assert!(cut.per_second() < 300.0, "the cut starts at what was used: {}", cut.per_second());
        let calm = (0..15).map(|_| line.step(observation(20, 5)).reason).collect::<Vec<_>>();
        let since = calm.iter().position(|reason| *reason == PaceReason::Unlimited);
        assert!(since.is_some_and(|since| since >= 8), "hysteresis: {calm:?}");
    }

    #[test]
    fn a_state_survives_the_store_and_an_old_one_starts_again() {
        let mut line = Stepper::new(Mode::Always);
        (0..10).for_each(|_| drop(line.busy(20).clone()));
        let text = line.state.to_string();
        assert_eq!(text.parse::<PaceState>().as_ref(), Ok(&line.state));
        for bad in ["", "2 1", "1 1 1", &format!("{text} 1"), &text.replace(' ', "x")] {
            assert_eq!(bad.parse::<PaceState>(), Err(UnknownState), "{bad}");
        }
        let seen = observation(20, 0);
        let step =
            |now| PaceState::step(Some(&line.state), &line.pace, line.mode, 1000, &seen, now);
        assert!(step(line.now + STALE_MS).rate >= line.state.rate);
        assert_eq!(step(line.now + STALE_MS + 1).rate, 60_000);
    }
}
