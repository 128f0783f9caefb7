//! The operator's console: a page on the internal listener, embedded in the binary. The page holds
//! no data; it reads every figure from the admin API with the admin token.
//!
//! Script and style come from `web/console`, bundled there and committed.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use daegi_runtime::http::{Asset, build_hash};

const TEMPLATE: &str = include_str!("../../../web/console/page.html");
const SCRIPT: Asset = Asset {
    kind: "text/javascript; charset=utf-8",
    text: include_str!("../../../web/console/dist/console.js"),
};
const STYLE: Asset = Asset {
    kind: "text/css; charset=utf-8",
    text: include_str!("../../../web/console/dist/console.css"),
};

/// Allows only files of this page; its icon is inline.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

static VERSION: LazyLock<String> = LazyLock::new(|| build_hash(&[SCRIPT.text, STYLE.text]));
static PAGE: LazyLock<String> = LazyLock::new(|| TEMPLATE.replace("{{version}}", &VERSION));

/// `GET /admin/`, and the files of that page.
pub fn router() -> Router {
    Router::new()
        .route("/admin", get(async || Redirect::permanent("/admin/")))
        .route("/admin/", get(page))
        .route("/admin/console.js", get(script))
        .route("/admin/console.css", get(style))
}

async fn page() -> Response {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, CSP),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, PAGE.as_str()).into_response()
}

async fn script(RawQuery(query): RawQuery) -> Response {
    SCRIPT.into_response(query.as_deref(), &VERSION)
}

async fn style(RawQuery(query): RawQuery) -> Response {
    STYLE.into_response(query.as_deref(), &VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_the_files_of_this_build_and_the_whole_is_small() {
        assert_eq!(PAGE.matches(&*VERSION).count(), 2);
        assert!(!PAGE.contains("{{"));
        let size = PAGE.len() + SCRIPT.text.len() + STYLE.text.len();
        assert!(size < 224 * 1024, "{size} bytes");
    }
}
