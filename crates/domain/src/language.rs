//! The languages of pages.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Language {
    /// The default.
    English,
    /// Korean.
    Korean,
    /// Japanese.
    Japanese,
    /// Chinese in simplified characters.
    SimplifiedChinese,
    /// Chinese in traditional characters.
    TraditionalChinese,
    /// Spanish.
    Spanish,
    /// Vietnamese.
    Vietnamese,
    /// Thai.
    Thai,
}

/// A tag that is not the one of a page language.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a language of the pages: en, ko, ja, zh-Hans, zh-Hant, es, vi or th")]
pub struct UnknownLanguage(String);

impl Language {
    /// All of them, in the order in which pages list them.
    pub const ALL: [Self; 8] = [
        Self::English,
        Self::Korean,
        Self::Japanese,
        Self::SimplifiedChinese,
        Self::TraditionalChinese,
        Self::Spanish,
        Self::Vietnamese,
        Self::Thai,
    ];

    /// Returns the preferred language of an `Accept-Language` header; English if it has no supported one.
    #[must_use]
    pub fn from_accept_language(header: &str) -> Self {
        let mut best = (Self::English, 0.0);
        for range in header.split(',') {
            let (tag, rest) = range.split_once(';').unwrap_or((range, ""));
            let weight = rest.trim().strip_prefix("q=").map_or(Some(1.0), |q| q.parse().ok());
            let language = Self::from_range(tag.trim());
            if let (Some(language), Some(weight)) = (language, weight)
                && weight > best.1
            {
                best = (language, weight);
            }
        }
        best.0
    }

    /// Returns the language of a range such as `zh-TW`, with any region and script.
    fn from_range(range: &str) -> Option<Self> {
        let lower = range.to_ascii_lowercase();
        let mut parts = lower.split('-');
        match parts.next()? {
            "en" => Some(Self::English),
            "ko" => Some(Self::Korean),
            "ja" => Some(Self::Japanese),
            "zh" => Some(Self::chinese(parts)),
            "es" => Some(Self::Spanish),
            "vi" => Some(Self::Vietnamese),
            "th" => Some(Self::Thai),
            _ => None,
        }
    }

    /// Returns which Chinese the script names, or else the region: Taiwan, Hong Kong and Macao write traditional
    /// characters.
    fn chinese<'a>(subtags: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self::SimplifiedChinese;
        for subtag in subtags {
            match subtag {
                "hans" => return Self::SimplifiedChinese,
                "hant" => return Self::TraditionalChinese,
                "tw" | "hk" | "mo" => found = Self::TraditionalChinese,
                _ => {}
            }
        }
        found
    }

    /// Returns the language with exactly this tag.
    #[must_use]
    pub fn from_tag(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.tag() == tag)
    }

    /// Returns the language tag for HTML.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Korean => "ko",
            Self::Japanese => "ja",
            Self::SimplifiedChinese => "zh-Hans",
            Self::TraditionalChinese => "zh-Hant",
            Self::Spanish => "es",
            Self::Vietnamese => "vi",
            Self::Thai => "th",
        }
    }

    /// Returns whether headlines of the language are set in a serif face: only for Latin letters do all systems have one.
    #[must_use]
    pub fn has_serif(self) -> bool {
        matches!(self, Self::English | Self::Spanish | Self::Vietnamese)
    }

    /// Returns the name of the language in that language.
    #[must_use]
    pub fn own_name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Korean => "한국어",
            Self::Japanese => "日本語",
            Self::SimplifiedChinese => "简体中文",
            Self::TraditionalChinese => "繁體中文",
            Self::Spanish => "Español",
            Self::Vietnamese => "Tiếng Việt",
            Self::Thai => "ไทย",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tag())
    }
}

impl TryFrom<String> for Language {
    type Error = UnknownLanguage;
    fn try_from(tag: String) -> Result<Self, UnknownLanguage> {
        Self::from_tag(&tag).ok_or(UnknownLanguage(tag))
    }
}

impl From<Language> for &'static str {
    fn from(language: Language) -> Self {
        language.tag()
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
            ("es-MX,es;q=0.9,en;q=0.8", Language::Spanish),
            ("vi-VN", Language::Vietnamese),
            ("th,en;q=0.5", Language::Thai),
            ("ja-JP,ja;q=0.9", Language::Japanese),
        ] {
            assert_eq!(Language::from_accept_language(header), language, "{header:?}");
        }
    }

    #[test]
    fn chinese_follows_the_script_and_then_the_region() {
        for (tag, language) in [
            ("zh", Language::SimplifiedChinese),
            ("zh-CN", Language::SimplifiedChinese),
            ("zh-SG", Language::SimplifiedChinese),
            ("zh-TW", Language::TraditionalChinese),
            ("zh-HK", Language::TraditionalChinese),
            ("zh-Hant", Language::TraditionalChinese),
            ("zh-hant-CN", Language::TraditionalChinese),
            ("zh-Hans-HK", Language::SimplifiedChinese),
        ] {
            assert_eq!(Language::from_accept_language(tag), language, "{tag}");
        }
    }

    #[test]
    fn a_tag_is_read_back_and_another_one_is_refused() {
        for language in Language::ALL {
            let json = serde_json::to_string(&language).unwrap();
            assert_eq!(serde_json::from_str::<Language>(&json).unwrap(), language);
        }
        let error = serde_json::from_str::<Language>("\"de\"").unwrap_err().to_string();
        assert!(error.contains("zh-Hant"), "{error}");
    }
}
