use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use daegi_runtime::http::{Peer, bearer};
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
