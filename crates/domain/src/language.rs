//! The languages of pages.

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// The default.
    English,
    /// Korean.
    Korean,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::English, Self::Korean];

    /// Returns the preferred language of an `Accept-Language` header; English if it has no supported one.
    #[must_use]
    pub fn from_accept_language(header: &str) -> Self {
        let mut best = (Self::English, 0.0);
        for range in header.split(',') {
            let (tag, rest) = range.split_once(';').unwrap_or((range, ""));
            let weight = rest.trim().strip_prefix("q=").map_or(Some(1.0), |q| q.parse().ok());
            let language = Self::from_tag(tag.trim());
            if let (Some(language), Some(weight)) = (language, weight)
                && weight > best.1
            {
                best = (language, weight);
            }
        }
        best.0
    }

    fn from_tag(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        match primary.to_ascii_lowercase().as_str() {
            "en" => Some(Self::English),
            "ko" => Some(Self::Korean),
            _ => None,
        }
    }

    /// Returns the language tag for HTML.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Korean => "ko",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_with_the_highest_weight_wins() {
        for (header, language) in [
            ("ko-KR,ko;q=0.9,en;q=0.8", Language::Korean),
            ("en-US,en;q=0.9,ko;q=0.8", Language::English),
            ("de, ko;q=0.5, en;q=0.2", Language::Korean),
            ("fr", Language::English),
            ("", Language::English),
            ("ko;q=nonsense", Language::English),
            ("KO", Language::Korean),
        ] {
            assert_eq!(Language::from_accept_language(header), language, "{header:?}");
        }
    }
}
