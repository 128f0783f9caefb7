//! Counts the answers that are our fault. What goes well is counted by services, under better names.

use axum::http::StatusCode;
use axum::response::Response;
use metrics::counter;

/// Answers with a status of 500 or more, by `status`. Probes of a process that is not ready are no
/// trouble and do not count.
pub const ERRORS: &str = "daegi_http_errors_total";

/// The mark of an answer that is not what was hoped for, and no trouble.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected;

/// From the start, so that an alert can tell "none" from "nobody looks".
pub(super) fn show() {
    for status in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::SERVICE_UNAVAILABLE] {
        counter!(ERRORS, "status" => status.as_str().to_owned()).increment(0);
    }
}

pub(super) fn count(response: &Response) {
    let status = response.status();
    if status.is_server_error() && response.extensions().get::<Expected>().is_none() {
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
    fn our_faults_are_counted_and_what_is_expected_is_not() {
        // The recorder is there from the first look on.
        let _ = telemetry::render();
        count(&StatusCode::INSUFFICIENT_STORAGE.into_response());
        count(&(Extension(Expected), StatusCode::LOOP_DETECTED).into_response());
        count(&StatusCode::NOT_FOUND.into_response());
        let text = telemetry::render();
        assert!(text.contains(r#"daegi_http_errors_total{status="507"} 1"#), "{text}");
        for not in ["508", "404"] {
            assert!(!text.contains(&format!("status=\"{not}\"")), "{text}");
        }
    }
}
