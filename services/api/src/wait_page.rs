//! The waiting page: what a person sees while they wait, embedded whole.
//!
//! The script and the style come from `web/wait`, bundled there and committed. The server writes
//! the page in the person's language, and for people without scripts also where they stand.
//!
//! | file | what lives there |
//! |---|---|
//! | `wait_page/words.rs` | what it says in each language |
//! | `wait_page/still.rs` | the page for people without scripts |
//! | `wait_page/colours.rs` | an item's own colours |

mod colours;
mod still;
mod words;

use std::sync::LazyLock;

use daegi_domain::{ItemId, Language, Look};
use daegi_runtime::http::version_of;

use crate::wire::Ticket;

pub(crate) use colours::style_of;

/// The page's script.
pub(crate) const SCRIPT: &str = include_str!("../../../web/wait/dist/wait.js");
/// The page's style.
pub(crate) const STYLE: &str = include_str!("../../../web/wait/dist/wait.css");
const TEMPLATE: &str = include_str!("../../../web/wait/page.html");

/// Names script and style of this build, so that browsers may keep them for ever.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| version_of(&[SCRIPT, STYLE]));

/// Where a person stands, as far as the server knows when it writes the page.
pub(crate) enum Standing {
    /// Not in the line, or known to their script only.
    Outside,
    /// In the line, inside, or done.
    Holds(Box<Ticket>),
    /// The item is sold out.
    SoldOut,
    /// The line is switched off.
    Closed,
    /// Could not join just now; names the word of the headline.
    Refused(&'static str),
    /// There is no such item.
    Missing,
    /// The store is away.
    Trouble,
}

/// Everything a page is made of.
pub(crate) struct Page<'a> {
    pub(crate) language: Language,
    /// As the address names it, believed or not.
    pub(crate) item: Option<&'a ItemId>,
    pub(crate) name: &'a str,
    pub(crate) look: &'a Look,
    /// The revision of its texts; empty if the item is not known.
    pub(crate) revision: &'a str,
    pub(crate) standing: Standing,
}

impl Page<'_> {
    /// Writes the page.
    pub(crate) fn render(&self) -> String {
        let words = words::words(self.language);
        let name = escape(self.look.title.as_deref().unwrap_or(self.name));
        let title = words.get("pageTitle").replace("{name}", &name);
        let logo = self
            .look
            .logo
            .as_deref()
            .map(|logo| format!("<img src=\"{}\" alt=\"\">", escape(logo)));
        let message = self.look.message.as_deref().map(escape).unwrap_or_default();
        let slots = [
            ("lang", self.language.tag().to_owned()),
            ("item", self.item.map(|item| escape(item.as_str())).unwrap_or_default()),
            ("version", VERSION.clone()),
            ("revision", self.revision.to_owned()),
            ("title", title),
            ("head", self.head()),
            ("logo", logo.unwrap_or_default()),
            ("message", message),
            ("still", still::render(self)),
            ("words", words.for_script().to_owned()),
            // Last: nothing that is filled in is looked at again.
            ("name", name),
        ];
        fill(TEMPLATE, |slot| {
            let known = slots.iter().find(|(name, _)| *name == slot);
            let word = || escape(words.get(slot.strip_suffix("Word").unwrap_or(slot)));
            known.map_or_else(word, |(_, value)| value.clone())
        })
    }

    fn head(&self) -> String {
        let own = self.item.filter(|_| self.look.accent.is_some());
        let colours = own.map(|item| {
            format!("<link rel=\"stylesheet\" href=\"/wait/{}/look.css\">", escape(item.as_str()))
        });
        colours.unwrap_or_default() + &still::refresh(&self.standing)
    }
}

/// Fills in `{{slot}}`s, each once and from left to right.
fn fill(template: &str, value: impl Fn(&str) -> String) -> String {
    let mut parts = template.split("{{");
    let mut page = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (slot, rest) = part.split_once("}}").unwrap_or((part, ""));
        page += &value(slot);
        page += rest;
    }
    page
}

/// For text and for attributes between double quotes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str, language: Language) -> String {
        let item = ItemId::parse("concert").unwrap();
        let look = Look::default();
        Page {
            language,
            item: Some(&item),
            name,
            look: &look,
            revision: "",
            standing: Standing::Outside,
        }
        .render()
    }

    #[test]
    fn every_slot_is_filled_in_every_language() {
        for language in Language::ALL {
            let page = page("A concert", language);
            assert!(!page.contains("{{") && !page.contains("}}"), "{page}");
            assert!(page.contains(&format!("<html lang=\"{}\"", language.tag())));
        }
    }

    #[test]
    fn a_name_is_text_wherever_it_stands() {
        let page = page("</title><script>alert(1)</script>\"{{words}}", Language::English);
        assert!(!page.contains("<script>alert"));
        assert_eq!(page.matches("{{words}}").count(), 4, "names are not templates");
    }

    #[test]
    fn the_whole_page_is_small() {
        let size = page("A concert", Language::Korean).len() + SCRIPT.len() + STYLE.len();
        assert!(size < 50 * 1024, "{size} bytes");
    }
}
