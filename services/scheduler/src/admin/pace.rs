//! The state of an adaptive pace, as operators see it.

use daegi_domain::{AdaptivePace, Item, PaceReason, PaceState, rfc3339};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The state of an adaptive pace.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = PaceView::example())]
pub(super) struct PaceView {
    /// The rate, in users per minute.
    per_minute: f64,
    reason: PaceReason,
    /// The reason for readers: `raised`, `cut: p95 812 ms > 500 ms`.
    text: String,
    /// The origin's 95th percentile as the last step saw it; null without requests.
    p95_ms: Option<u32>,
    /// The origin's errors, in percent.
    error_percent: f64,
    /// When the last step was, as RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    at: String,
    /// When the origin was seen last, as RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    signal_at: String,
}

impl PaceView {
    /// Returns `None` for a fixed pace, and before the leader's first step.
    pub(super) fn of_item(item: &Item) -> Option<Self> {
        let (pace, state) = item.policy.pace.adaptive().zip(item.pace.as_ref())?;
        Some(Self {
            per_minute: state.per_second() * 60.0,
            reason: state.reason,
            text: text(pace, state),
            p95_ms: state.p95_ms,
            error_percent: f64::from(state.error_permille) / 10.0,
            at: rfc3339(state.at),
            signal_at: rfc3339(state.signal_at),
        })
    }

    pub(super) fn example() -> Value {
        json!({
            "perMinute": 9_600.0,
            "reason": "CUT_LATENCY",
            "text": "cut: p95 812 ms > 500 ms",
            "p95Ms": 812,
            "errorPercent": 0.4,
            "at": "2026-11-20T19:30:00.000Z",
            "signalAt": "2026-11-20T19:30:00.000Z",
        })
    }
}

fn text(pace: &AdaptivePace, state: &PaceState) -> String {
    let p95 = state.p95_ms.unwrap_or(0);
    match state.reason {
        PaceReason::Started => "started at the minimum".into(),
        PaceReason::Unlimited => "the origin is well: the highest rate".into(),
        PaceReason::Raised => "raised".into(),
        PaceReason::NoDemand => "held: fewer users come than the rate allows".into(),
        PaceReason::Held => format!("held: p95 {p95} ms is near {} ms", pace.target_p95_ms),
        PaceReason::CutLatency => format!("cut: p95 {p95} ms > {} ms", pace.target_p95_ms),
        PaceReason::CutErrors => format!(
            "cut: {} % errors > {} %",
            f64::from(state.error_permille) / 10.0,
            pace.max_error_percent
        ),
        PaceReason::NoSignals => "lowered: no signals of the origin".into(),
    }
}
