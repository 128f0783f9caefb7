use daegi_domain::Item;
use daegi_runtime::http::version_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The texts that the operator put on the waiting page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageTexts {
    /// Names this version of the texts. Equal on every pod of one build.
    pub(crate) revision: String,
    /// The name on the page.
    pub(crate) name: String,
    /// The operator's message; null if there is none.
    pub(crate) message: Option<String>,
}

/// The query of a stream.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct StreamQuery {
    /// The revision of the page's texts that the client shows.
    #[serde(default)]
    pub(crate) page: Option<String>,
}

impl PageTexts {
    pub(crate) fn new(item: &Item) -> Self {
        let page = &item.policy.page;
        let name = page.title.as_deref().unwrap_or(item.name.as_str()).to_owned();
        let message = page.message.clone();
        let revision = version_of(&[&name, message.as_deref().unwrap_or_default()]);
        Self { revision, name, message }
    }
}
