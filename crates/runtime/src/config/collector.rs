use axum::http::Uri;

use super::BadValue;

/// Where spans go, below the address that is configured, as OTLP says.
const TRACES: &str = "/v1/traces";

/// A collector of OpenTelemetry that takes OTLP over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collector(Uri);

impl Collector {
    /// Reads the base address.
    pub(super) fn parse(text: &str) -> Result<Self, BadValue> {
        let (scheme, rest) = text.split_once("://").ok_or(BadValue::UnknownCollector)?;
        match scheme {
            "http" => {}
            "https" => return Err(BadValue::CollectorTls),
            _ => return Err(BadValue::UnknownCollector),
        }
        // A password would be in every log that shows the address, and nothing would send it.
        if rest.contains(['@', '?', '#']) {
            return Err(BadValue::UnknownCollector);
        }
        let base = text.trim_end_matches('/');
        let uri = format!("{base}{TRACES}").parse().map_err(|_| BadValue::UnknownCollector)?;
        Ok(Self(uri))
    }

    /// Where spans are sent.
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
            assert_eq!(Collector::parse(base).unwrap().traces().to_string(), traces);
        }
    }

    #[test]
    fn what_is_no_address_of_a_collector_is_refused() {
        for bad in ["", "localhost:4318", "grpc://a:4317", "http://", "http:///x", "http://a b"] {
            assert!(matches!(Collector::parse(bad), Err(BadValue::UnknownCollector)), "{bad}");
        }
        assert!(matches!(Collector::parse("http://u:p@a"), Err(BadValue::UnknownCollector)));
        assert!(matches!(Collector::parse("https://a:4318"), Err(BadValue::CollectorTls)));
    }
}
