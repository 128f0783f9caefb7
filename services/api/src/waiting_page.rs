//! The waiting page, embedded in the binary.
//!
//! Scripts and styles are the committed bundles of `web/wait`. The server renders the page in the user's
//! language, and for browsers without scripts also the state of the ticket. What few users need is loaded on
//! demand: a second script with its style and texts.
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
use daegi_runtime::problem::BlockedNotice;

use self::messages::Messages;
use self::noscript::Still;
use crate::wire::{PageTexts, Ticket};

pub(crate) use colours::style_of;

/// The script of the page.
pub(crate) const SCRIPT: &str = include_str!("../../../web/wait/dist/wait.js");
/// The script that shows the widget of a third party, on pages of lines with one.
pub(crate) const WIDGET_SCRIPT: &str = include_str!("../../../web/wait/dist/widget.js");
/// The style sheet of the page.
pub(crate) const STYLE: &str = include_str!("../../../web/wait/dist/wait.css");

/// The script that is loaded on demand: invitations, the check of a draw, another device.
pub(crate) const MORE_SCRIPT: &str = include_str!("../../../web/wait/dist/more.js");
/// Its style sheet, which browsers without scripts load too.
pub(crate) const MORE_STYLE: &str = include_str!("../../../web/wait/dist/more.css");

/// Hash of all assets, part of their URLs, so that browsers can cache them without expiry.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let texts: String =
        Language::ALL.map(|language| messages::messages(language).for_more()).concat();
    build_hash(&[SCRIPT, WIDGET_SCRIPT, STYLE, MORE_SCRIPT, MORE_STYLE, &texts])
});

/// Returns the texts of the script that is loaded on demand, as JSON.
pub(crate) fn more_texts(language: Language) -> &'static str {
    messages::messages(language).for_more()
}

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
    /// The line challenges new users, which needs scripts or an invitation code.
    NeedsScripts,
    /// A rule blocks the user.
    Blocked(Box<BlockedNotice>),
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
    /// The operator's texts; `None` if there is no such item.
    pub(crate) texts: Option<&'a PageTexts>,
    /// Whether the line survives a restart of the processes.
    pub(crate) keeps_lines: bool,
    /// Whether a ticket ends when its user is absent for long.
    pub(crate) ends_absent: bool,
    /// Whether the item has lanes, so that users may have invitation codes.
    pub(crate) has_lanes: bool,
    /// Whether the policy of the page permits the widget of a third party.
    pub(crate) has_widget: bool,
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
    languages: Vec<Language>,
    messages: &'static Messages,
    item: &'a str,
    name: &'a str,
    title: String,
    revision: &'a str,
    version: &'static str,
    /// The version of the item's own style sheet, if it has one.
    look: Option<String>,
    /// The operator's links as JSON.
    links: String,
    keeps_lines: bool,
    ends_absent: bool,
    has_lanes: bool,
    has_widget: bool,
    needs_identity: bool,
    has_code_form: bool,
    is_code_refused: bool,
    refresh: Option<String>,
    logo: Option<&'a str>,
    message: Option<&'a str>,
    still: Still<'a>,
}

/// The values of the template of `/`.
#[derive(Template)]
#[template(path = "root.html")]
struct RootTemplate {
    language: Language,
    messages: &'static Messages,
    version: &'static str,
}

/// Renders the page of `/`, for people who open the host without the address of a line.
pub(crate) fn root(language: Language) -> String {
    RootTemplate { language, messages: messages::messages(language), version: VERSION.as_str() }
        .to_string()
}

/// Returns the version of an item's own style sheet, part of its URL.
pub(crate) fn look_version(look: &Branding) -> String {
    build_hash(&[&style_of(look)])
}

impl Page<'_> {
    /// Renders the page.
    pub(crate) fn render(&self) -> String {
        let messages = messages::messages(self.language);
        let texts = self.texts.map(|texts| texts.in_language(self.language));
        let name = texts.map_or(self.name, |texts| texts.name.as_str());
        let links = texts.map(|texts| &texts.links);
        let has_look = self.item.is_some() && self.look.has_style();
        let page = PageTemplate {
            language: self.language,
            languages: Language::ALL.to_vec(),
            messages,
            item: self.item.map(ItemId::as_str).unwrap_or_default(),
            name,
            title: messages.get("pageTitle").replace("{name}", name),
            revision: self.texts.map_or("", |texts| texts.revision.as_str()),
            version: VERSION.as_str(),
            look: has_look.then(|| look_version(self.look)),
            links: links.and_then(|links| serde_json::to_string(links).ok()).unwrap_or_default(),
            keeps_lines: self.keeps_lines,
            ends_absent: self.ends_absent,
            has_lanes: self.has_lanes,
            has_widget: self.has_widget,
            needs_identity: self.needs_identity,
            has_code_form: self.code != CodeForm::Folded,
            is_code_refused: self.code == CodeForm::Refused,
            refresh: noscript::refresh(&self.state, self.code),
            logo: self.look.logo.as_deref(),
            message: texts.and_then(|texts| texts.message.as_deref()),
            still: Still::new(&self.state, (name, self.has_lanes), messages, links),
        };
        page.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str, language: Language) -> String {
        let item = ItemId::parse("concert").unwrap();
        Page {
            language,
            item: Some(&item),
            name,
            look: &Branding::default(),
            texts: None,
            keeps_lines: true,
            ends_absent: true,
            has_lanes: true,
            has_widget: false,
            needs_identity: false,
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
    fn the_page_with_its_assets_is_below_its_limit() {
        for language in Language::ALL {
            let size = page("A concert", language).len() + SCRIPT.len() + STYLE.len();
            // 60 KiB. Letters of other languages take up to three bytes.
            let limit = match language {
                Language::English | Language::Spanish => 60 * 1024,
                _ => 64 * 1024,
            };
            assert!(size < limit, "{language}: {size} bytes");
        }
    }

    #[test]
    fn a_page_contains_the_texts_of_its_language_only() {
        let (korean, thai) = (page("A", Language::Korean), page("A", Language::Thai));
        for text in ["waitingHead", "pausedText", "completedText"] {
            let [korean_text, thai_text] = [Language::Korean, Language::Thai]
                .map(|language| messages::messages(language).get(text));
            assert!(korean.contains(korean_text) && !korean.contains(thai_text), "{text}");
            assert!(thai.contains(thai_text) && !thai.contains(korean_text), "{text}");
        }
    }
}
