//! The waiting page, embedded in the binary.
//!
//! Script and style are the committed bundles of `web/wait`. The server renders the page in the user's
//! language, and for browsers without scripts also the state of the ticket.
//!
//! | file | contents |
//! |---|---|
//! | `waiting_page/messages.rs` | the texts in each language |
//! | `waiting_page/noscript.rs` | the content for browsers without scripts |
//! | `waiting_page/colours.rs` | the colours of an item |

mod colours;
mod messages;
mod noscript;

use std::sync::LazyLock;

use daegi_domain::{Branding, ItemId, Language};
use daegi_runtime::http::build_hash;

use crate::wire::Ticket;

pub(crate) use colours::style_of;

/// The script of the page.
pub(crate) const SCRIPT: &str = include_str!("../../../web/wait/dist/wait.js");
/// The style sheet of the page.
pub(crate) const STYLE: &str = include_str!("../../../web/wait/dist/wait.css");
const TEMPLATE: &str = include_str!("../../../web/wait/page.html");

/// Hash of script and style, part of their URLs, so that browsers can cache them without expiry.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| build_hash(&[SCRIPT, STYLE]));

/// The state of the page, as far as the server knows when it renders it.
pub(crate) enum PageState {
    /// The user has no ticket, or only the script has it.
    Outside,
    /// The user has a ticket.
    Holds(Box<Ticket>),
    /// The item is sold out.
    SoldOut,
    /// The line is disabled.
    Closed,
    /// The join was refused; holds the message key of the headline.
    Refused(&'static str),
    /// There is no such item.
    Missing,
    /// The store is unavailable.
    Trouble,
}

/// The data of a page.
pub(crate) struct Page<'a> {
    pub(crate) language: Language,
    /// The item of the URL, whether it exists or not.
    pub(crate) item: Option<&'a ItemId>,
    pub(crate) name: &'a str,
    pub(crate) look: &'a Branding,
    /// Revision of the operator's texts; empty if there is no such item.
    pub(crate) revision: &'a str,
    pub(crate) state: PageState,
}

impl Page<'_> {
    /// Renders the page.
    pub(crate) fn render(&self) -> String {
        let messages = messages::messages(self.language);
        let name = escape(self.look.title.as_deref().unwrap_or(self.name));
        let title = messages.get("pageTitle").replace("{name}", &name);
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
            ("still", noscript::render(self)),
            ("words", messages.for_script().to_owned()),
            ("name", name),
        ];
        fill(TEMPLATE, |slot| {
            let known = slots.iter().find(|(name, _)| *name == slot);
            let word = || escape(messages.get(slot.strip_suffix("Word").unwrap_or(slot)));
            known.map_or_else(word, |(_, value)| value.clone())
        })
    }

    fn head(&self) -> String {
        let own = self.item.filter(|_| self.look.accent.is_some());
        let colours = own.map(|item| {
            format!("<link rel=\"stylesheet\" href=\"/wait/{}/look.css\">", escape(item.as_str()))
        });
        colours.unwrap_or_default() + &noscript::refresh(&self.state)
    }
}

/// Replaces each `{{slot}}` once, from left to right. Inserted values are not scanned again.
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

/// Escapes text for element content and double-quoted attributes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str, language: Language) -> String {
        let item = ItemId::parse("concert").unwrap();
        let look = Branding::default();
        Page {
            language,
            item: Some(&item),
            name,
            look: &look,
            revision: "",
            state: PageState::Outside,
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
    fn a_name_is_escaped_everywhere() {
        let page = page("</title><script>alert(1)</script>\"{{messages}}", Language::English);
        assert!(!page.contains("<script>alert"));
        assert_eq!(page.matches("{{messages}}").count(), 4, "names are not templates");
    }

    #[test]
    fn the_page_with_its_assets_is_below_50_kib() {
        let size = page("A concert", Language::Korean).len() + SCRIPT.len() + STYLE.len();
        assert!(size < 50 * 1024, "{size} bytes");
    }
}
