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

use askama::Template;
use daegi_domain::{Branding, ItemId, Language};
use daegi_runtime::http::build_hash;

use self::messages::Messages;
use self::noscript::Still;
use crate::wire::Ticket;

pub(crate) use colours::style_of;

/// The script of the page.
pub(crate) const SCRIPT: &str = include_str!("../../../web/wait/dist/wait.js");
/// The style sheet of the page.
pub(crate) const STYLE: &str = include_str!("../../../web/wait/dist/wait.css");

/// Hash of script and style, part of their URLs, so that browsers can cache them without expiry.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| build_hash(&[SCRIPT, STYLE]));

/// The state of the page, as far as the server knows when it renders it.
pub(crate) enum PageState {
    /// The user has no ticket, or the token is stored by the script and not in the cookie.
    Outside,
    /// The user has a ticket.
    Holds(Box<Ticket>),
    /// The item is sold out.
    SoldOut,
    /// The line is disabled.
    Closed,
    /// The line has an opening, and its lobby is not open yet.
    Scheduled,
    /// The line has closed at the end of its opening.
    LineClosed,
    /// The join was refused; holds the message key of the headline.
    Refused(&'static str),
    /// The line challenges new users, which needs scripts.
    NeedsScripts,
    /// There is no such item.
    Missing,
    /// The store is unavailable.
    Trouble,
}

/// The form for an invitation code in browsers without scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeForm {
    /// Part of the form that joins. A user who waits gets a link to `Open`, because that page reloads,
    /// which would clear the field.
    Folded,
    /// Shown to a user who waits.
    Open,
    /// Shown, because the server refused a code.
    Refused,
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
    /// Whether the item has lanes, so that users may have invitation codes.
    pub(crate) has_lanes: bool,
    /// Whether a join needs a signed identity, which names the user.
    pub(crate) needs_identity: bool,
    pub(crate) code: CodeForm,
    pub(crate) state: PageState,
}

/// The values of the template `web/wait/page.html`, which includes `templates/noscript.html`.
#[derive(Template)]
#[template(path = "../../../web/wait/page.html")]
struct PageTemplate<'a> {
    language: Language,
    messages: &'static Messages,
    item: &'a str,
    name: &'a str,
    title: String,
    revision: &'a str,
    version: &'static str,
    /// Whether the item has its own colours.
    has_colours: bool,
    has_lanes: bool,
    needs_identity: bool,
    has_code_form: bool,
    is_code_refused: bool,
    refresh: Option<String>,
    logo: Option<&'a str>,
    message: Option<&'a str>,
    still: Still<'a>,
}

impl Page<'_> {
    /// Renders the page.
    pub(crate) fn render(&self) -> String {
        let messages = messages::messages(self.language);
        let name = self.look.title.as_deref().unwrap_or(self.name);
        let page = PageTemplate {
            language: self.language,
            messages,
            item: self.item.map(ItemId::as_str).unwrap_or_default(),
            name,
            title: messages.get("pageTitle").replace("{name}", name),
            revision: self.revision,
            version: VERSION.as_str(),
            has_colours: self.item.is_some() && self.look.accent.is_some(),
            has_lanes: self.has_lanes,
            needs_identity: self.needs_identity,
            has_code_form: self.code != CodeForm::Folded,
            is_code_refused: self.code == CodeForm::Refused,
            refresh: noscript::refresh(&self.state, self.code),
            logo: self.look.logo.as_deref(),
            message: self.look.message.as_deref(),
            still: Still::new(&self.state, name, messages),
        };
        page.to_string()
    }
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
            needs_identity: false,
            has_lanes: true,
            code: CodeForm::Folded,
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
    fn the_page_with_its_assets_is_below_64_kb() {
        let size = page("A concert", Language::Korean).len() + SCRIPT.len() + STYLE.len();
        assert!(size < 64_000, "{size} bytes");
    }
}
