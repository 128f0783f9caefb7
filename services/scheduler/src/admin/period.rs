//! The period of calls that return stored history, and its CSV form.

use axum::Json;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use daegi_domain::history::{DAY_MS, MINUTE_MS};
use daegi_domain::{ItemId, Millis, parse_rfc3339};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AdminError, AdminResult};

/// How much history a call returns unless `from` is given.
const DEFAULT_PERIOD_MS: Millis = DAY_MS;

/// The longest period of one call: more than is kept.
const MAX_PERIOD_MS: Millis = 400 * DAY_MS;

/// The query of calls that return history.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PeriodQuery {
    from: Option<String>,
    to: Option<String>,
    pub(super) step: Option<u64>,
    #[serde(default)]
    pub(super) format: Format,
}

/// The form of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    #[default]
    Json,
    Csv,
}

/// Minutes since 1970, the last one excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl PeriodQuery {
    /// Returns the requested period: the last day unless it is given. It ends with the present minute at the latest.
    pub(super) fn period(&self, now: Millis) -> AdminResult<Period> {
        let time = |text: &Option<String>| text.as_deref().map(parse_rfc3339).transpose();
        let invalid = |name, error| AdminError::Invalid(format!("{name}: {error}"));
        let to = time(&self.to).map_err(|error| invalid("to", error))?;
        let to = to.map_or(now, |to| to.min(now));
        let from = time(&self.from).map_err(|error| invalid("from", error))?;
        let from = from.unwrap_or(to.saturating_sub(DEFAULT_PERIOD_MS));
        if from >= to {
            return Err(AdminError::Invalid("from must be before to, and before now".into()));
        }
        let from = from.max(to.saturating_sub(MAX_PERIOD_MS));
        Ok(Period { from: from / MINUTE_MS, to: to.div_ceil(MINUTE_MS) })
    }
}

impl Format {
    /// Returns the response in this form.
    pub(super) fn response<T: Serialize>(
        self,
        (id, name): (&ItemId, &str),
        body: T,
        to_csv: impl FnOnce(&T) -> String,
    ) -> Response {
        if self == Self::Json {
            return Json(body).into_response();
        }
        // All characters of an item id are valid in a quoted file name.
        let disposition = format!("attachment; filename=\"{id}-{name}.csv\"");
        let headers = [
            (CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
            (CONTENT_DISPOSITION, disposition),
        ];
        (headers, to_csv(&body)).into_response()
    }
}
