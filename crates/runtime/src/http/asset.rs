use std::hash::{DefaultHasher, Hash, Hasher};

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};

const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// A file of a page, embedded in the binary.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Its content type.
    pub kind: &'static str,
    /// What is in it.
    pub text: &'static str,
}

/// Names the files of this build, so that browsers may keep them for ever.
#[must_use]
pub fn version_of(files: &[&str]) -> String {
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl Asset {
    /// The file, for whoever asked with `?v=<version>`. Kept for ever under the name of this
    /// build. During an update a page may ask a pod of another build; that answer must not be
    /// kept.
    pub fn answer(self, query: Option<&str>, version: &str) -> Response {
        let is_ours = query.and_then(|query| query.strip_prefix("v=")) == Some(version);
        let caching = if is_ours { FOR_EVER } else { "no-store" };
        let headers = [
            (CONTENT_TYPE, self.kind),
            (CACHE_CONTROL, caching),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        (headers, self.text).into_response()
    }
}
