//! HTML of the shop pages.

use askama::Template;
use daegi_domain::{ItemId, ItemName, Language};

use super::messages::{self, Messages};

pub(super) const SCRIPT: &str = include_str!("shop.js");
pub(super) const STYLE: &str = include_str!("shop.css");

/// One page of the shop.
pub(super) enum ShopPage<'a> {
    /// The item and a button to the line.
    Window,
    /// The checkout of an admitted user.
    Checkout { user: &'a str, pass: &'a str },
    /// The order is placed.
    Thanks { order: &'a str },
    /// The stock ran out before the order.
    TooLate,
    /// The pass was rejected.
    NoPass { why: &'a str },
    /// Orders cannot be placed now.
    Unavailable,
}

/// The values of `templates/shop.html`.
#[derive(Template)]
#[template(path = "shop.html")]
struct ShopTemplate<'a> {
    language: Language,
    messages: &'static Messages,
    item: &'a ItemId,
    name: &'a str,
    left: Option<u32>,
    /// The name of the page for style sheets and tests.
    kind: &'static str,
    headline: &'static str,
    /// The text before and after the value of the page.
    before: &'static str,
    after: &'static str,
    action: &'static str,
    page: &'a ShopPage<'a>,
}

impl ShopPage<'_> {
    /// The name for style sheets and tests; headline, text and action.
    fn texts(&self, messages: &'static Messages) -> (&'static str, [&'static str; 3]) {
        let with_action = |[headline, text]: [&'static str; 2], action| [headline, text, action];
        match self {
            Self::Window => ("window", messages.window),
            Self::Checkout { .. } => ("checkout", messages.checkout),
            Self::Thanks { .. } => ("thanks", with_action(messages.thanks, messages.back)),
            Self::TooLate => ("late", with_action(messages.late, messages.back)),
            Self::NoPass { .. } => ("no-pass", messages.no_pass),
            Self::Unavailable => ("trouble", with_action(messages.trouble, "")),
        }
    }
}

pub(super) fn render(
    (item, name): (&ItemId, &ItemName),
    left: Option<u32>,
    language: Language,
    page: &ShopPage<'_>,
) -> String {
    let messages = messages::for_language(language);
    let (kind, [headline, text, action]) = page.texts(messages);
    // The text of a page with a value has one placeholder, like `{who}`.
    let (before, rest) = text.split_once('{').unwrap_or((text, ""));
    let after = rest.split_once('}').map_or("", |(_, after)| after);
    let page = ShopTemplate {
        language,
        messages,
        item,
        name: name.as_str(),
        left,
        kind,
        headline,
        before,
        after,
        action,
        page,
    };
    page.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(language: Language, scene: &ShopPage<'_>) -> String {
        let item = ItemId::parse("concert").unwrap();
        let name = ItemName::parse("<i>Friday</i>").unwrap();
        render((&item, &name), Some(3), language, scene)
    }

    #[test]
    fn user_input_is_escaped() {
        let scene = ShopPage::Checkout { user: "kim", pass: "\"><script>" };
        let page = page(Language::English, &scene);
        assert!(!page.contains("<i>") && !page.contains("\"><script>"), "{page}");
        assert!(page.contains("href=\"/shop\"") && page.contains(">kim</span>"), "{page}");
    }

    #[test]
    fn every_page_is_complete_in_both_languages() {
        for scene in [
            ShopPage::Window,
            ShopPage::Checkout { user: "kim", pass: "good" },
            ShopPage::Thanks { order: "7" },
            ShopPage::TooLate,
            ShopPage::NoPass { why: "forged" },
            ShopPage::Unavailable,
        ] {
            let [english, korean] =
                [Language::English, Language::Korean].map(|language| page(language, &scene));
            // Placeholders of the script have single braces.
            for page in [&english, &korean] {
                assert!(!page.contains("{{") && !page.contains("{w"), "{page}");
            }
            assert!(english.contains("lang=\"en\"") && english.contains("tickets left"));
            assert!(korean.contains("lang=\"ko\"") && !korean.contains("tickets left"));
        }
    }
}
