//! What the shop's pages say.

use daegi_domain::{ItemId, ItemName};

pub(super) const SCRIPT: &str = include_str!("shop.js");
pub(super) const STYLE: &str = include_str!("shop.css");
const FRAME: &str = include_str!("shop.html");

/// What a person sees.
pub(super) enum Scene<'a> {
    /// What is sold, and a button.
    Window,
    /// It is their turn.
    Checkout { user: &'a str, pass: &'a str },
    /// They have it.
    Thanks { order: &'a str },
    /// The last one went to somebody else.
    TooLate,
    /// They must wait for their turn like everybody else.
    NoPass { why: &'a str },
    /// The shop cannot sell now.
    Trouble,
}

impl Scene<'_> {
    /// A name for style sheets and tests, a headline, a text, and what can be done.
    fn parts(&self, item: &ItemId) -> (&'static str, String, String, String) {
        let line = |words: &str| format!("<a class=\"button\" href=\"/wait/{item}\">{words}</a>");
        let again = "<a class=\"button\" href=\"/shop\">Back to the shop</a>".to_owned();
        match self {
            Self::Window => (
                "window",
                "One night only".into(),
                "Many want to come, and the till takes twenty people at a time. \
                 <span id=\"crowd\"></span>"
                    .into(),
                line("Buy a ticket"),
            ),
            Self::Checkout { user, pass } => (
                "checkout",
                "Your turn".into(),
                format!("Welcome, <span class=\"who\">{}</span>. Your pass is good.", escape(user)),
                format!(
                    "<form method=\"post\" action=\"/shop/buy?pass={}\"><button class=\"button\">Pay \
                     and get the ticket</button></form>",
                    escape(pass)
                ),
            ),
            Self::Thanks { order } => (
                "thanks",
                "Thank you".into(),
                format!("The ticket is yours. Order <code>{}</code>", escape(order)),
                again,
            ),
            Self::TooLate => (
                "late",
                "Too late".into(),
                "The last ticket went to somebody else a moment ago.".into(),
                again,
            ),
            Self::NoPass { why } => (
                "no-pass",
                "One after the other".into(),
                format!("You cannot buy with this: {}.", escape(why)),
                line("Join the line"),
            ),
            Self::Trouble => (
                "trouble",
                "One moment".into(),
                "The till does not work right now. Your place is kept; reload to try again.".into(),
                String::new(),
            ),
        }
    }
}

pub(super) fn render(
    item: &ItemId,
    name: &ItemName,
    left: Option<u32>,
    scene: &Scene<'_>,
) -> String {
    let (kind, headline, text, action) = scene.parts(item);
    let left = left.map_or_else(|| "–".to_owned(), |left| left.to_string());
    let slots = [
        ("{{item}}", item.as_str()),
        ("{{scene}}", kind),
        ("{{left}}", &left),
        ("{{headline}}", &headline),
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

    #[test]
    fn what_people_bring_is_text() {
        let item = ItemId::parse("concert").unwrap();
        let name = ItemName::parse("<i>Friday</i>").unwrap();
        let scene = Scene::Checkout { user: "kim", pass: "\"><script>" };
        let page = render(&item, &name, Some(3), &scene);
        assert!(!page.contains("<i>") && !page.contains("\"><script>"), "{page}");
        assert!(page.contains("href=\"/shop\"") && !page.contains("{{"), "{page}");
    }
}
