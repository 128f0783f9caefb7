//! HTML of the shop pages.

use daegi_domain::{ItemId, ItemName, Language};

use super::messages::{self, Messages};

pub(super) const SCRIPT: &str = include_str!("shop.js");
pub(super) const STYLE: &str = include_str!("shop.css");
const FRAME: &str = include_str!("shop.html");

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
    Trouble,
}

impl ShopPage<'_> {
    /// The name for style sheets and tests, headline, text and action.
    fn parts(
        &self,
        item: &ItemId,
        words: &Messages,
    ) -> (&'static str, &'static str, String, String) {
        let line = |text: &str| format!("<a class=\"button\" href=\"/wait/{item}\">{text}</a>");
        let back = format!("<a class=\"button\" href=\"/shop\">{}</a>", words.back);
        match self {
            Self::Window => {
                let [headline, text, buy] = words.window;
                let text = format!("{text} <span id=\"crowd\"></span>");
                ("window", headline, text, line(buy))
            }
            Self::Checkout { user, pass } => {
                let [headline, text, pay] = words.checkout;
                let who = format!("<span class=\"who\">{}</span>", escape(user));
                let pay = format!(
                    "<form method=\"post\" action=\"/shop/buy?pass={}\"><button \
                     class=\"button\">{pay}</button></form>",
                    escape(pass)
                );
                ("checkout", headline, text.replace("{who}", &who), pay)
            }
            Self::Thanks { order } => {
                let [headline, text] = words.thanks;
                let order = format!("<code>{}</code>", escape(order));
                ("thanks", headline, text.replace("{order}", &order), back)
            }
            Self::TooLate => ("late", words.late[0], words.late[1].to_owned(), back),
            Self::NoPass { why } => {
                let [headline, text, join] = words.no_pass;
                ("no-pass", headline, text.replace("{why}", &escape(why)), line(join))
            }
            Self::Trouble => {
                ("trouble", words.trouble[0], words.trouble[1].to_owned(), String::new())
            }
        }
    }
}

pub(super) fn render(
    (item, name): (&ItemId, &ItemName),
    left: Option<u32>,
    language: Language,
    scene: &ShopPage<'_>,
) -> String {
    let words = messages::for_language(language);
    let (kind, headline, text, action) = scene.parts(item, words);
    let left = left.map_or_else(|| "–".to_owned(), |left| left.to_string());
    let slots = [
        ("{{language}}", language.tag()),
        ("{{item}}", item.as_str()),
        ("{{crowd}}", &escape(&words.crowd.join("|"))),
        ("{{shop}}", words.shop),
        ("{{leftWords}}", words.left),
        ("{{footer}}", words.footer),
        ("{{scene}}", kind),
        ("{{left}}", &left),
        ("{{headline}}", headline),
        ("{{name}}", &escape(name.as_str())),
        ("{{action}}", &action),
        ("{{text}}", &text),
    ];
    slots.iter().fold(FRAME.to_owned(), |page, (slot, value)| page.replace(slot, value))
}

/// For text and for attributes between double quotes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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
            ShopPage::Trouble,
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
