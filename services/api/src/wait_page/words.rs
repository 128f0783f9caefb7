use std::collections::HashMap;
use std::sync::LazyLock;

use daegi_domain::{Eta, Language};

/// The words of one language.
pub(super) struct Words {
    words: HashMap<String, String>,
    json: String,
}

static ENGLISH: LazyLock<Words> =
    LazyLock::new(|| Words::read(include_str!("../../../../web/wait/words/en.json")));
static KOREAN: LazyLock<Words> =
    LazyLock::new(|| Words::read(include_str!("../../../../web/wait/words/ko.json")));

/// What the page says in a language.
pub(super) fn words(language: Language) -> &'static Words {
    match language {
        Language::English => &ENGLISH,
        Language::Korean => &KOREAN,
    }
}

impl Words {
    /// The files are part of the binary, and a test reads them.
    fn read(json: &str) -> Self {
        let words: HashMap<String, String> = serde_json::from_str(json).unwrap_or_default();
        let lines = json.lines().map(str::trim).collect::<String>();
        // Within a script element only this could end it.
        Self { words, json: lines.replace('<', "\\u003c") }
    }

    pub(super) fn get(&self, key: &str) -> &str {
        self.words.get(key).map_or("", String::as_str)
    }

    /// All of them, as JSON that may stand in a script element.
    pub(super) fn for_script(&self) -> &str {
        &self.json
    }

    /// A range that promises no more than is known. Kept in step with `etaWords` of the script.
    pub(super) fn eta(&self, eta: Option<Eta>) -> String {
        let Some(Eta { p50, p90 }) = eta else {
            return self.get("etaUnknown").to_owned();
        };
        if p90 < 60 {
            return self.get("etaSoon").to_owned();
        }
        let range = |unit: u64| (((p50 + unit / 2) / unit).max(1), p90.div_ceil(unit));
        let (minutes, hours) = (range(60), range(3600));
        let (key, (a, b)) = match (minutes, hours) {
            ((_, ..=1), _) => ("etaMinute", minutes),
            ((a, b @ ..=90), _) if a < b => ("etaMinutesRange", minutes),
            ((_, ..=90), _) => ("etaMinutes", minutes),
            (_, (a, b)) if a < b => ("etaHoursRange", hours),
            (_, (_, 1)) => ("etaHour", hours),
            _ => ("etaHours", hours),
        };
        self.get(key).replace("{a}", &a.to_string()).replace("{b}", &b.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn both_languages_have_the_same_words() {
        let keys =
            |language: Language| -> BTreeSet<&String> { words(language).words.keys().collect() };
        assert!(keys(Language::English).len() > 40);
        assert_eq!(keys(Language::English), keys(Language::Korean));
    }

    #[test]
    fn times_are_told_in_words() {
        let eta = |p50, p90| words(Language::English).eta(Some(Eta { p50, p90 }));
        assert_eq!(eta(10, 40), "Less than a minute");
        assert_eq!(eta(50, 60), "About a minute");
        assert_eq!(eta(170, 290), "3–5 minutes");
        assert_eq!(eta(298, 300), "About 5 minutes");
        assert_eq!(eta(5_000, 9_000), "1–3 hours");
        assert_eq!(words(Language::Korean).eta(None), "계산 중");
    }
}
