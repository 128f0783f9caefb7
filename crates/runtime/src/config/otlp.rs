use std::path::PathBuf;
use std::{fmt, fs};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;

use super::{ConfigError, InvalidValue};

/// The path of spans below the base address, as OTLP specifies.
const TRACES_PATH: &str = "/v1/traces";

/// The address of an OpenTelemetry collector that accepts OTLP over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpEndpoint(Uri);

/// Headers of every request to the collector, such as its API key. The `Debug` form hides their values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OtlpHeaders(HeaderMap);

/// The collector and what requests to it need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpCollector {
    /// Its address.
    pub endpoint: OtlpEndpoint,
    /// The CAs that sign its certificate; without it those of the system.
    pub ca: Option<PathBuf>,
    headers: OtlpHeaders,
    headers_file: Option<PathBuf>,
}

impl OtlpEndpoint {
    /// Parses the base address.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidValue> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidValue::InvalidOtlpEndpoint)?;
        // User and password would appear in logs with the address, and are not sent. A path cannot
        // be appended to a query or a fragment.
        if !matches!(scheme, "http" | "https") || rest.contains(['@', '?', '#']) {
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

    /// Returns whether requests are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }
}

impl OtlpHeaders {
    /// Parses `name=value,name=value` with percent-encoded values, as OpenTelemetry specifies
    /// `OTEL_EXPORTER_OTLP_HEADERS`.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidValue> {
        let pairs = text.split([',', '\n']).map(str::trim).filter(|pair| !pair.is_empty());
        pairs
            .map(parse_header)
            .collect::<Option<_>>()
            .map(Self)
            .ok_or(InvalidValue::InvalidOtlpHeaders)
    }
}

fn parse_header(pair: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = pair.split_once('=')?;
    let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some((name.trim().parse().ok()?, value))
}

impl fmt::Debug for OtlpHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl OtlpCollector {
    pub(super) fn resolve(
        endpoint: Option<OtlpEndpoint>,
        headers: Option<OtlpHeaders>,
        headers_file: Option<PathBuf>,
        ca: Option<PathBuf>,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(endpoint) = endpoint else { return Ok(None) };
        if ca.is_some() && !endpoint.is_encrypted() {
            let reason = "is for TLS, and --otlp-endpoint is not https://";
            return Err(ConfigError::invalid("otlp-ca", reason));
        }
        let collector = Self { endpoint, ca, headers: headers.unwrap_or_default(), headers_file };
        collector.headers().map_err(|reason| ConfigError::invalid("otlp-headers-file", reason))?;
        Ok(Some(collector))
    }

    /// Returns the headers of the next request. Those of the file override others of the same name.
    ///
    /// # Errors
    /// If the file cannot be read or has another format.
    pub fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = self.headers.0.clone();
        if let Some(path) = &self.headers_file {
            let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
            let of_file = OtlpHeaders::parse(&text).map_err(|error| error.to_string())?;
            headers.extend(of_file.0);
        }
        Ok(headers)
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
            ("https://otlp.example", "https://otlp.example/v1/traces"),
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
            OtlpEndpoint::parse("https://u:p@a"),
            Err(InvalidValue::InvalidOtlpEndpoint)
        ));
    }

    #[test]
    fn headers_are_decoded_and_hidden() {
        let headers =
            OtlpHeaders::parse("authorization=Bearer%20secret, x-team = tickets").unwrap();
        assert_eq!(headers.0["authorization"], "Bearer secret");
        assert_eq!(headers.0["x-team"], "tickets");
        assert!(!format!("{headers:?}").contains("secret"), "{headers:?}");
        for bad in ["authorization", "a b=c", "=c", "a=%0a"] {
            assert!(
                matches!(OtlpHeaders::parse(bad), Err(InvalidValue::InvalidOtlpHeaders)),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_file_is_read_again_and_overrides_the_option() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let resolve = |url: &str, ca: Option<PathBuf>| {
            let (endpoint, path) = (OtlpEndpoint::parse(url).unwrap(), file.path().to_owned());
            let given = OtlpHeaders::parse("key=old,team=a").unwrap();
            OtlpCollector::resolve(Some(endpoint), Some(given), Some(path), ca)
        };
        let collector = resolve("https://a", None).unwrap().unwrap();
        assert_eq!(collector.headers().unwrap()["key"], "old");
        fs::write(file.path(), "key=new\n").unwrap();
        let headers = collector.headers().unwrap();
        assert_eq!(
            (&headers["key"], &headers["team"]),
            (&"new".parse().unwrap(), &"a".parse().unwrap())
        );
        fs::write(file.path(), "new").unwrap();
        assert!(collector.headers().is_err() && resolve("https://a", None).is_err());
        fs::write(file.path(), "").unwrap();
        assert!(resolve("http://a", Some("ca.pem".into())).is_err());
    }
}
