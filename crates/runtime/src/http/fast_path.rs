//! Responses without the router.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, Request, Uri};
use axum::response::Response;
use futures_util::future::BoxFuture;

/// Answers simple requests before the router. Used for the few most frequent routes, because
/// copying a route, extracting path parameters and boxing the handler are a large part of the cost
/// of a small response. All other requests, including invalid ones, go to the router.
#[derive(Clone)]
pub(super) struct FastPath(Arc<dyn Fn(RequestHead<'_>) -> Option<FastResponse> + Send + Sync>);

/// A request without its body.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path and query.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The other end of the connection; `None` for a request without a connection.
    pub peer: Option<IpAddr>,
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

    pub(super) fn respond(&self, head: RequestHead<'_>) -> Option<FastResponse> {
        (self.0)(head)
    }
}

/// Refuses requests before anything else is done for them.
#[derive(Clone)]
pub(super) struct Filter(Arc<dyn Fn(RequestHead<'_>) -> Option<Response> + Send + Sync>);

impl Filter {
    pub(super) fn new(
        refuse: impl Fn(RequestHead<'_>) -> Option<Response> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(refuse))
    }

    pub(super) fn refuse(&self, head: RequestHead<'_>) -> Option<Response> {
        (self.0)(head)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Filter")
    }
}

impl<'a> RequestHead<'a> {
    pub(super) fn new<B>(request: &'a Request<B>, peer: Option<IpAddr>) -> Self {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        Self { method, uri, headers, peer }
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
