use std::collections::BTreeMap;
use std::sync::LazyLock;

use askama::filters;
use daegi_domain::{Eta, Language, StockChance};

use super::{MORE_SCRIPT, SCRIPT};
use crate::wire::StockAhead;

/// The texts of one language.
pub(super) struct Messages {
    messages: BTreeMap<String, String>,
    script: String,
    more: String,
}

static ALL: LazyLock<Vec<Messages>> = LazyLock::new(|| {
    Language::ALL.iter().map(|language| Messages::read(json_of(*language))).collect()
});

/// Returns the texts of a language.
pub(super) fn messages(language: Language) -> &'static Messages {
    let index = Language::ALL.iter().position(|other| *other == language);
    &ALL[index.unwrap_or_default()]
}

fn json_of(language: Language) -> &'static str {
    match language {
        Language::English => include_str!("../../../../web/wait/i18n/en.json"),
        Language::Korean => include_str!("../../../../web/wait/i18n/ko.json"),
        Language::Japanese => include_str!("../../../../web/wait/i18n/ja.json"),
        Language::SimplifiedChinese => include_str!("../../../../web/wait/i18n/zh-Hans.json"),
        Language::TraditionalChinese => include_str!("../../../../web/wait/i18n/zh-Hant.json"),
        Language::Spanish => include_str!("../../../../web/wait/i18n/es.json"),
        Language::Vietnamese => include_str!("../../../../web/wait/i18n/vi.json"),
        Language::Thai => include_str!("../../../../web/wait/i18n/th.json"),
    }
}

impl Messages {
    /// Parses an embedded file. An invalid file would result in empty texts; a test covers all
    /// files. Each script gets the texts that it names; the others would only enlarge the page.
    fn read(json: &str) -> Self {
        let messages: BTreeMap<String, String> = serde_json::from_str(json).unwrap_or_default();
        let named_in = |script: &str| {
            let named = messages.iter().filter(|(key, _)| is_named(script, key));
            let named: BTreeMap<_, _> = named.collect();
            let Ok(json) = filters::json(&named).map(|json| json.to_string());
            json
        };
        let (script, more) = (named_in(SCRIPT), named_in(MORE_SCRIPT));
        Self { messages, script, more }
    }

    pub(super) fn get(&self, key: &str) -> &str {
        self.messages.get(key).map_or("", String::as_str)
    }

    /// Returns the texts of the script as JSON that is safe in a script element.
    pub(super) fn for_script(&self) -> &str {
        &self.script
    }

    /// Returns the texts of the script that is loaded on demand, as JSON.
    pub(super) fn for_more(&self) -> &str {
        &self.more
    }

    /// Says how much is left. Must match `stockText` of the script.
    pub(super) fn stock(&self, stock: &StockAhead) -> String {
        let key = match stock.chance {
            StockChance::Enough => "stockEnough",
            StockChance::Uncertain => "stockUncertain",
            StockChance::Unlikely => "stockUnlikely",
        };
        let text = self.get(key).replace("{left}", &stock.left.to_string());
        text.replace("{ahead}", &stock.ahead.to_string())
    }

    /// Formats an ETA as a duration, for browsers without scripts: the script shows a time of day, for which
    /// the server would need the user's time zone. Rounds to what is known, as `etaWindow` of the script does.
    pub(super) fn eta(&self, eta: Option<Eta>) -> String {
        let Some(Eta { p50, p90, .. }) = eta else {
            return self.get("etaUnknown").to_owned();
        };
        if p90 < 60 {
            return self.get("etaSoon").to_owned();
        }
        let unit = rounding_minutes(p50, p90);
        let a = ((p50 + unit * 30) / (60 * unit) * unit).max(1);
        let b = p90.div_ceil(60 * unit) * unit;
        let (key, a, b) = match (a, b) {
            (_, ..=1) => ("etaMinute", a, b),
            (a, b @ ..=90) if a < b => ("etaMinutesRange", a, b),
            (_, ..=90) => ("etaMinutes", a, b),
            (a, b) => match ((a / 60).max(1), b.div_ceil(60)) {
                (from, to) if from < to => ("etaHoursRange", from, to),
                (_, 1) => ("etaHour", 1, 1),
                (from, to) => ("etaHours", from, to),
            },
        };
        self.get(key).replace("{a}", &a.to_string()).replace("{b}", &b.to_string())
    }
}

/// Returns to how many minutes an estimate is rounded: 5 of a wait of half an hour or of a wide range, 1 of a short one.
fn rounding_minutes(p50: u64, p90: u64) -> u64 {
    let spread = p90.saturating_sub(p50);
    match (p90, spread) {
        (10_800.., _) | (_, 3_600..) => 15,
        (1_800.., _) | (_, 600..) => 5,
        _ => 1,
    }
}

/// Returns whether a script contains this key as a name of its own and not as a part of a longer one.
fn is_named(script: &str, key: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    script.match_indices(key).any(|(at, _)| {
        !script[..at].ends_with(is_part) && !script[at + key.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_language_has_the_same_keys_and_placeholders() {
        // What the translation of a text may fill in: names in braces.
        let shape = |language: Language| -> BTreeMap<&String, BTreeSet<&str>> {
            let slots = |text: &'static str| {
                text.split('{')
                    .skip(1)
                    .filter_map(|rest| rest.split_once('}'))
                    .map(|(name, _)| name)
            };
            let texts = messages(language).messages.iter();
            texts.map(|(key, text)| (key, slots(text).collect())).collect()
        };
        let english = shape(Language::English);
        assert!(english.len() > 150);
        for language in Language::ALL {
            assert_eq!(shape(language), english, "{language}");
            for (key, text) in &messages(language).messages {
                assert!(!text.trim().is_empty() && text.trim() == text, "{language}: {key}");
            }
        }
    }

    #[test]
    fn each_script_gets_only_the_texts_that_it_names() {
        let english = messages(Language::English);
        assert!(
            english.for_script().contains("\"waitingHead\"")
                && !english.for_script().contains("drawSeedGood")
        );
        assert!(
            english.for_more().contains("\"drawSeedGood\"")
                && !english.for_more().contains("waitingHead")
        );
        assert!(is_named("a.wait,b", "wait") && !is_named("a.waiting,await", "wait"));
    }

    #[test]
    fn what_is_left_is_said_with_its_chance() {
        let stock = |left, ahead, chance| {
            messages(Language::English).stock(&StockAhead { left, ahead, chance })
        };
        assert_eq!(stock(412, 379, StockChance::Enough), "412 left, 379 people ahead of you.");
        assert!(stock(3, 90, StockChance::Unlikely).contains("probably not be enough"));
    }

    #[test]
    fn an_eta_is_formatted_as_a_range() {
        let eta = |p50, p90| messages(Language::English).eta(Some(Eta { p10: p50, p50, p90 }));
        assert_eq!(eta(10, 40), "Less than a minute");
        assert_eq!(eta(50, 60), "About a minute");
        assert_eq!(eta(170, 290), "3–5 minutes");
        assert_eq!(eta(298, 300), "About 5 minutes");
        assert_eq!(eta(3_950, 4_010), "65–70 minutes", "and never 66–67");
        assert_eq!(eta(300, 1_500), "5–25 minutes");
        assert_eq!(eta(5_000, 9_000), "1–3 hours");
        assert_eq!(messages(Language::Korean).eta(None), "계산 중");
    }
}
