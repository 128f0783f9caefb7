use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use daegi_runtime::{Code, Problem};

use super::Admin;

/// Lets only the bearer of the admin token through; everybody else learns nothing but that.
pub(super) async fn require_token(
    State(admin): State<Arc<Admin>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let given = bearer(request.headers());
    if given.is_some_and(|token| admin.token.matches(token)) {
        Ok(next.run(request).await)
    } else {
        let detail = "the admin token is missing or wrong";
        Err(Problem::new(Code::Unauthorized, detail))
    }
}

/// The token of `Authorization: Bearer <token>`; the scheme's case does not matter (RFC 9110).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bearer_scheme_carries_a_token() {
        let bearer_of = |text: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, text.parse().unwrap())]);
            bearer(&headers).map(ToOwned::to_owned)
        };
        assert_eq!(bearer_of("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(bearer_of("bearer abc").as_deref(), Some("abc"));
        assert_eq!(bearer_of("Basic abc"), None);
        assert_eq!(bearer_of("abc"), None);
        assert_eq!(bearer_of(""), None);
    }
}
