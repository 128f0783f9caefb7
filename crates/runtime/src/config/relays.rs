use axum::http::Uri;

use super::InvalidValue;

/// The base addresses of HTTP relays of drand, in the order in which they are tried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelayUrls(pub Vec<Uri>);

impl RelayUrls {
    /// Parses addresses that are separated by commas. Empty text is none.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidValue> {
        let urls = text.split(',').map(str::trim).filter(|url| !url.is_empty());
        urls.map(parse_url).collect::<Result<_, _>>().map(Self)
    }
}

fn parse_url(text: &str) -> Result<Uri, InvalidValue> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    // User and password would appear in logs. A path cannot be appended to a query or a fragment.
    if rest.is_none_or(|rest| rest.contains(['@', '?', '#'])) {
        return Err(InvalidValue::InvalidRelay);
    }
    text.parse().map_err(|_| InvalidValue::InvalidRelay)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_separated_by_commas() {
        let parse = |text: &str| {
            RelayUrls::parse(text).map(|urls| urls.0.iter().map(Uri::to_string).collect::<Vec<_>>())
        };
        assert_eq!(parse("").unwrap(), Vec::<String>::new());
        assert_eq!(
            parse("https://a.example, http://[::1]:8080/drand,").unwrap(),
            ["https://a.example/", "http://[::1]:8080/drand"]
        );
        for bad in
            ["a.example", "ftp://a", "https://", "https://u:p@a", "https://a?b", "https://a b"]
        {
            assert!(matches!(parse(bad), Err(InvalidValue::InvalidRelay)), "{bad}");
        }
    }
}
