use std::collections::BTreeMap;
use std::sync::LazyLock;

use askama::filters;
use daegi_domain::{Eta, Language, StockChance};

use super::SCRIPT;
use crate::wire::StockAhead;

/// The texts of one language.
pub(super) struct Messages {
    messages: BTreeMap<String, String>,
    json: String,
}

static ENGLISH: LazyLock<Messages> =
    LazyLock::new(|| Messages::read(include_str!("../../../../web/wait/i18n/en.json")));
static KOREAN: LazyLock<Messages> =
    LazyLock::new(|| Messages::read(include_str!("../../../../web/wait/i18n/ko.json")));

/// Returns the texts of a language.
pub(super) fn messages(language: Language) -> &'static Messages {
    match language {
        Language::English => &ENGLISH,
        Language::Korean => &KOREAN,
    }
}

impl Messages {
    /// Parses an embedded file. An invalid file would result in empty texts; a test covers all
    /// files. The script gets the texts that it names; the others would only enlarge the page.
    fn read(json: &str) -> Self {
        let messages: BTreeMap<String, String> = serde_json::from_str(json).unwrap_or_default();
        let named = messages.iter().filter(|(key, _)| SCRIPT.contains(key.as_str()));
        let named: BTreeMap<_, _> = named.collect();
        let Ok(json) = filters::json(&named).map(|json| json.to_string());
        Self { messages, json }
    }

    pub(super) fn get(&self, key: &str) -> &str {
        self.messages.get(key).map_or("", String::as_str)
    }

    /// Returns the texts of the script as JSON that is safe in a script element.
    pub(super) fn for_script(&self) -> &str {
        &self.json
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

    /// Formats an ETA as a range. Must match `formatEta` of the script.
    pub(super) fn eta(&self, eta: Option<Eta>) -> String {
        let Some(Eta { p50, p90, .. }) = eta else {
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
    fn both_languages_have_the_same_keys() {
        let keys = |language: Language| -> BTreeSet<&String> {
            messages(language).messages.keys().collect()
        };
        assert!(keys(Language::English).len() > 40);
        assert_eq!(keys(Language::English), keys(Language::Korean));
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
        assert_eq!(eta(5_000, 9_000), "1–3 hours");
        assert_eq!(messages(Language::Korean).eta(None), "계산 중");
    }
}
