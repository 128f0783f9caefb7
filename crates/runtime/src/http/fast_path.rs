//! Responses without the router.

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, Request, Uri};
use axum::response::Response;
use futures_util::future::BoxFuture;

/// Answers simple requests before the router. Used for the few most frequent routes, because
/// copying a route, extracting path parameters and boxing the handler are a large part of the cost
/// of a small response. All other requests, including invalid ones, go to the router.
#[derive(Clone)]
pub(super) struct FastPath(Arc<dyn Fn(RequestHead<'_>) -> Option<FastResponse> + Send + Sync>);

/// A request whose body is empty.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path and query.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
}

/// The response of the fast path.
pub enum FastResponse {
    /// The response.
    Ready(Response),
    /// The future of the response. It must complete within [`super::REQUEST_DEADLINE`], because the
    /// service does not enforce the deadline on it.
    Pending(BoxFuture<'static, Response>),
}

impl FastPath {
    pub(super) fn new(
        respond: impl Fn(RequestHead<'_>) -> Option<FastResponse> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(respond))
    }

    pub(super) fn respond<B>(&self, request: &Request<B>) -> Option<FastResponse> {
        let head = RequestHead {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
        };
        (self.0)(head)
    }
}

impl fmt::Debug for FastPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FastPath")
    }
}

impl fmt::Debug for FastResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready(_) => "Ready",
            Self::Pending(_) => "Pending",
        })
    }
}
