//! Files of a page, embedded in the binary.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};

const IMMUTABLE_CACHE: &str = "public, max-age=31536000, immutable";

/// A file of a page, embedded in the binary.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// The content type.
    pub kind: &'static str,
    /// The content.
    pub text: &'static str,
}

/// Returns a hash of files, which versions their URLs so that browsers may cache them without
/// expiry.
#[must_use]
pub fn build_hash(files: &[&str]) -> String {
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl Asset {
    /// Returns the file for a request with `?v=<version>`. The file of this build is cached without
    /// expiry. During a rolling update the page of another build may request this file; that
    /// response must not be cached.
    pub fn into_response(self, query: Option<&str>, version: &str) -> Response {
        let is_ours = query.and_then(|query| query.strip_prefix("v=")) == Some(version);
        let caching = if is_ours { IMMUTABLE_CACHE } else { "no-store" };
        let headers = [
            (CONTENT_TYPE, self.kind),
            (CACHE_CONTROL, caching),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        (headers, self.text).into_response()
    }
}
