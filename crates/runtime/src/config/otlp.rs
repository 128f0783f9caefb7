use axum::http::Uri;

use super::InvalidValue;

/// The path of spans below the base address, as OTLP specifies.
const TRACES_PATH: &str = "/v1/traces";

/// The address of an OpenTelemetry collector that accepts OTLP over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpEndpoint(Uri);

impl OtlpEndpoint {
    /// Parses the base address.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidValue> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidValue::InvalidOtlpEndpoint)?;
        match scheme {
            "http" => {}
            "https" => return Err(InvalidValue::OtlpTlsUnsupported),
            _ => return Err(InvalidValue::InvalidOtlpEndpoint),
        }
        // User and password would appear in logs with the address, and are not sent. A path cannot
        // be appended to a query or a fragment.
        if rest.contains(['@', '?', '#']) {
            return Err(InvalidValue::InvalidOtlpEndpoint);
        }
        let base = text.trim_end_matches('/');
        let uri = format!("{base}{TRACES_PATH}")
            .parse()
            .map_err(|_| InvalidValue::InvalidOtlpEndpoint)?;
        Ok(Self(uri))
    }

    /// Returns the URL of spans.
    #[must_use]
    pub fn traces(&self) -> &Uri {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_go_below_the_address() {
        for (base, traces) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            ("http://[::1]:4318/otlp", "http://[::1]:4318/otlp/v1/traces"),
        ] {
            assert_eq!(OtlpEndpoint::parse(base).unwrap().traces().to_string(), traces);
        }
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        for bad in ["", "localhost:4318", "grpc://a:4317", "http://", "http:///x", "http://a b"] {
            assert!(
                matches!(OtlpEndpoint::parse(bad), Err(InvalidValue::InvalidOtlpEndpoint)),
                "{bad}"
            );
        }
        assert!(matches!(
            OtlpEndpoint::parse("http://u:p@a"),
            Err(InvalidValue::InvalidOtlpEndpoint)
        ));
        assert!(matches!(
            OtlpEndpoint::parse("https://a:4318"),
            Err(InvalidValue::OtlpTlsUnsupported)
        ));
    }
}
