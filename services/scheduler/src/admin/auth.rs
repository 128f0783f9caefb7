use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use daegi_runtime::http::Peer;
use daegi_runtime::{Code, Problem};

use super::AdminState;

/// Forwards requests with the admin token. All others get the same 401, delayed after wrong tokens
/// of their address.
pub(super) async fn require_token(
    State(admin): State<Arc<AdminState>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    match bearer(request.headers()) {
        Some(token) if admin.token.matches(token) => return Ok(next.run(request).await),
        Some(_) => {
            let peer = request.extensions().get().map(|Peer(address)| address.ip());
            tokio::time::sleep(admin.sign_ins.wrong(peer)).await;
        }
        None => admin.sign_ins.missing(),
    }
    Err(Problem::new(Code::Unauthorized, "the admin token is missing or wrong"))
}

/// Returns the token of `Authorization: Bearer <token>`; the scheme is case-insensitive (RFC 9110).
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
