//! The gate for proxies.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use daegi_runtime::http::{FastResponse, RequestHead};
use daegi_runtime::{Code, Problem};

use crate::gate::Subrequest;
use crate::tickets::TicketService;

/// Any method of `/gate/{itemId}` and of the paths below it.
pub(crate) async fn gate(
    State(service): State<Arc<TicketService>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let subrequest = Subrequest { method: &method, uri: &uri, headers: &headers };
    let answer = service.gate.check(subrequest).await;
    answer.unwrap_or_else(|| Problem::new(Code::NotFound, "there is no such route").into_response())
}

/// Fast path: answers requests whose pass was verified before. Returns `None` for all others, which the handler above
/// answers.
pub(crate) fn fast_path(service: &TicketService, head: RequestHead<'_>) -> Option<FastResponse> {
    let RequestHead { method, uri, headers, .. } = head;
    let known = service.gate.check_known(Subrequest { method, uri, headers })?;
    Some(FastResponse::Ready(known))
}
