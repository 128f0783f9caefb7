//! The languages that pages for people speak.

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Where nothing else is known.
    English,
    /// Where people like it better.
    Korean,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::English, Self::Korean];

    /// The language an `Accept-Language` header likes best; English where it knows neither.
    #[must_use]
    pub fn accepted(header: &str) -> Self {
        let mut best = (Self::English, 0.0);
        for range in header.split(',') {
            let (tag, rest) = range.split_once(';').unwrap_or((range, ""));
            let weight = rest.trim().strip_prefix("q=").map_or(Some(1.0), |q| q.parse().ok());
            let language = Self::of(tag.trim());
            if let (Some(language), Some(weight)) = (language, weight)
                && weight > best.1
            {
                best = (language, weight);
            }
        }
        best.0
    }

    fn of(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        match primary.to_ascii_lowercase().as_str() {
            "en" => Some(Self::English),
            "ko" => Some(Self::Korean),
            _ => None,
        }
    }

    /// As HTML names it.
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
    fn the_best_liked_language_wins() {
        for (header, language) in [
            ("ko-KR,ko;q=0.9,en;q=0.8", Language::Korean),
            ("en-US,en;q=0.9,ko;q=0.8", Language::English),
            ("de, ko;q=0.5, en;q=0.2", Language::Korean),
            ("fr", Language::English),
            ("", Language::English),
            ("ko;q=nonsense", Language::English),
            ("KO", Language::Korean),
        ] {
            assert_eq!(Language::accepted(header), language, "{header:?}");
        }
    }
}
