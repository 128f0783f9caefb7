//! Counts responses with a server error. The metrics of each service count the successful ones.

use axum::http::StatusCode;
use axum::response::Response;
use metrics::counter;

/// Responses with a status of 500 or more, by `status`. Readiness probes of a process that is not
/// ready are not counted.
pub const ERRORS: &str = "daegi_http_errors_total";

/// Marks a response with a server status that is not an error, such as `/readyz` during startup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedError;

/// Registers the counter at the start, so that an alert can distinguish 0 from absent.
pub(super) fn register() {
    for status in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::SERVICE_UNAVAILABLE] {
        counter!(ERRORS, "status" => status.as_str().to_owned()).increment(0);
    }
}

pub(super) fn record(response: &Response) {
    let status = response.status();
    if status.is_server_error() && response.extensions().get::<ExpectedError>().is_none() {
        counter!(ERRORS, "status" => status.as_str().to_owned()).increment(1);
    }
}

#[cfg(test)]
mod tests {
    use axum::Extension;
    use axum::response::IntoResponse;

    use super::*;
    use crate::telemetry;

    #[test]
    fn server_errors_are_counted_and_expected_ones_are_not() {
        // Installs the recorder.
        let _ = telemetry::render();
        record(&StatusCode::INSUFFICIENT_STORAGE.into_response());
        record(&(Extension(ExpectedError), StatusCode::LOOP_DETECTED).into_response());
        record(&StatusCode::NOT_FOUND.into_response());
        let text = telemetry::render();
        assert!(text.contains(r#"daegi_http_errors_total{status="507"} 1"#), "{text}");
        for not in ["508", "404"] {
            assert!(!text.contains(&format!("status=\"{not}\"")), "{text}");
        }
    }
}
