//! How fast a line admits: a fixed rate, or one that follows the origin, the service behind the line.
//!
//! | module | contents |
//! |---|---|
//! | this one | the setting of the policy |
//! | [`origin`] | what guards, probes and Prometheus report of the origin |
//! | [`controller`] | the rate that follows from it: a pure function of state, observation and time |
//!
//! `docs/ADAPTIVE-PACE.md` explains the algorithm, ADR 021 the decision.

pub mod controller;
pub mod origin;
#[cfg(test)]
mod simulation;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Mode;

/// How the rate of a line is chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PacePolicy {
    /// `tokensPerTick`, or the global quota.
    #[default]
    Fixed,
    /// The rate follows the origin.
    Adaptive(AdaptivePace),
}

/// A rate that follows the origin. Rates are users per minute, so that whole numbers also express slow lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdaptivePace {
    /// The lowest rate, in users per minute; also the rate while nothing is known of the origin.
    #[schemars(range(min = 1, max = 60_000_000))]
    pub min_per_minute: u32,
    /// The highest rate, in users per minute.
    #[schemars(range(min = 1, max = 60_000_000))]
    pub max_per_minute: u32,
    /// The rate is cut while the origin's 95th percentile of response times is above this, in milliseconds.
    #[schemars(range(min = 1, max = 60_000))]
    pub target_p95_ms: u32,
    /// The rate is cut while more than this percentage of the origin's responses are errors.
    #[serde(default = "default_error_percent")]
    #[schemars(range(min = 1, max = 100))]
    pub max_error_percent: u32,
    /// An address that the leader requests every second; null for none. Response time and status count as
    /// signals of the origin.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub health_url: Option<String>,
    /// Queries of a Prometheus server; null for none.
    #[serde(default)]
    pub prometheus: Option<PrometheusPace>,
}

/// Where Prometheus has the signals of the origin. The leader runs the queries every 5 s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrometheusPace {
    /// The base address of the server, for example `http://prometheus:9090`.
    #[schemars(length(max = 2048))]
    pub url: String,
    /// An instant query that returns the 95th percentile in seconds.
    #[schemars(length(min = 1, max = 2048))]
    pub p95_query: String,
    /// An instant query that returns the share of errors, 0 to 1; null for none.
    #[serde(default)]
    #[schemars(length(min = 1, max = 2048))]
    pub error_query: Option<String>,
}

/// Why a pace is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PaceError {
    /// A value outside its range.
    #[error("pace.adaptive.{field} is {value}, allowed are {allowed}")]
    Range {
        /// The field as it is written in JSON.
        field: &'static str,
        /// The given value.
        value: u32,
        /// The permitted range.
        allowed: &'static str,
    },
    /// The lowest rate is above the highest.
    #[error("pace.adaptive.minPerMinute is above maxPerMinute")]
    MinAboveMax,
    /// An address that the leader cannot request.
    #[error(
        "pace.adaptive.{0} must be an absolute http(s) address without user and password, of at most 2048 characters"
    )]
    Url(&'static str),
    /// A query that is empty or too long.
    #[error("pace.adaptive.prometheus.{0} must have 1 to 2048 characters")]
    Query(&'static str),
}

fn default_error_percent() -> u32 {
    5
}

impl PacePolicy {
    /// Returns the settings of an adaptive pace.
    #[must_use]
    pub fn adaptive(&self) -> Option<&AdaptivePace> {
        match self {
            Self::Fixed => None,
            Self::Adaptive(pace) => Some(pace),
        }
    }

    /// Checks ranges and addresses.
    ///
    /// # Errors
    /// The first field that is invalid.
    pub fn check(&self) -> Result<(), PaceError> {
        self.adaptive().map_or(Ok(()), AdaptivePace::check)
    }
}

impl AdaptivePace {
    /// Settings without addresses and with the default limit of errors.
    #[must_use]
    pub fn new(min_per_minute: u32, max_per_minute: u32, target_p95_ms: u32) -> Self {
        Self {
            min_per_minute,
            max_per_minute,
            target_p95_ms,
            max_error_percent: default_error_percent(),
            health_url: None,
            prometheus: None,
        }
    }

    /// Returns the quota before the leader's first step, because the leader does not know a line that no user joined:
    /// in mode `auto` the users of one second at the highest rate, otherwise none.
    #[must_use]
    pub fn first_quota(&self, mode: Mode) -> u32 {
        match mode {
            Mode::Auto => self.max_per_minute.div_ceil(60),
            Mode::Always => 0,
        }
    }

    fn check(&self) -> Result<(), PaceError> {
        within("minPerMinute", self.min_per_minute, 60_000_000, "1 to 60000000")?;
        within("maxPerMinute", self.max_per_minute, 60_000_000, "1 to 60000000")?;
        within("targetP95Ms", self.target_p95_ms, 60_000, "1 to 60000")?;
        within("maxErrorPercent", self.max_error_percent, 100, "1 to 100")?;
        if self.min_per_minute > self.max_per_minute {
            return Err(PaceError::MinAboveMax);
        }
        self.health_url.as_deref().map_or(Ok(()), |url| check_url("healthUrl", url))?;
        self.prometheus.as_ref().map_or(Ok(()), PrometheusPace::check)
    }
}

impl PrometheusPace {
    fn check(&self) -> Result<(), PaceError> {
        check_url("prometheus.url", &self.url)?;
        let queries =
            [("p95Query", Some(&self.p95_query)), ("errorQuery", self.error_query.as_ref())];
        for (field, query) in queries {
            if query.is_some_and(|query| query.trim().is_empty() || query.len() > 2048) {
                return Err(PaceError::Query(field));
            }
        }
        Ok(())
    }
}

fn within(
    field: &'static str,
    value: u32,
    max: u32,
    allowed: &'static str,
) -> Result<(), PaceError> {
    match (1..=max).contains(&value) {
        true => Ok(()),
        false => Err(PaceError::Range { field, value, allowed }),
    }
}

/// Accepts addresses that can be requested. A password would be shown to everyone who may read the policy.
fn check_url(field: &'static str, url: &str) -> Result<(), PaceError> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let is_plain = url.len() <= 2048 && url.chars().all(|c| c.is_ascii_graphic());
    match !host.is_empty() && !host.contains('@') && is_plain {
        true => Ok(()),
        false => Err(PaceError::Url(field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str) -> Result<(), String> {
        let pace: PacePolicy = serde_json::from_str(json).map_err(|error| error.to_string())?;
        pace.check().map_err(|error| error.to_string())
    }

    #[test]
    fn a_pace_is_a_word_or_an_object() {
        assert_eq!(check(r#""fixed""#), Ok(()));
        assert_eq!(
            check(
                r#"{"adaptive":{"minPerMinute":30,"maxPerMinute":6000,"targetP95Ms":500,
                "healthUrl":"http://shop:8080/health?deep=1",
                "prometheus":{"url":"https://prometheus","p95Query":"shop:p95"}}}"#
            ),
            Ok(())
        );
    }

    #[test]
    fn wild_values_are_refused() {
        let with = |field: &str| {
            let all =
                r#"{"adaptive":{"minPerMinute":1,"maxPerMinute":60,"targetP95Ms":500,FIELD}}"#;
            check(&all.replace("FIELD", field))
        };
        assert_eq!(with(r#""maxErrorPercent":1"#), Ok(()));
        for bad in [
            r#""maxErrorPercent":0"#,
            r#""maxErrorPercent":101"#,
            r#""healthUrl":"shop/health""#,
            r#""healthUrl":"http:///health""#,
            r#""healthUrl":"http://user:secret@shop/""#,
            r#""healthUrl":"file:///etc/passwd""#,
            r#""prometheus":{"url":"http://p","p95Query":" "}"#,
            r#""prometheus":{"url":"http://p"}"#,
            r#""unknown":1"#,
        ] {
            assert!(with(bad).is_err(), "{bad} must be refused");
        }
        assert!(check(r#""sometimes""#).is_err());
        let swapped = r#"{"adaptive":{"minPerMinute":61,"maxPerMinute":60,"targetP95Ms":500}}"#;
        assert!(check(swapped).unwrap_err().contains("above"));
    }
}
