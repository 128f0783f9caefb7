use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, Request, Uri};
use axum::response::Response;
use futures_util::future::BoxFuture;

/// Answers plain requests before the router sees them. For the few routes that nearly everybody
/// asks: copying a route, naming the parameters of its path and boxing its handler are a good part of
/// what a small answer takes. Whatever is not plain is left to the router, so a shortcut never has to explain what is
/// wrong.
#[derive(Clone)]
pub(super) struct Shortcut(Arc<dyn Fn(Head<'_>) -> Option<Taken> + Send + Sync>);

/// A request without its body, which is empty.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// What is asked.
    pub method: &'a Method,
    /// Of what.
    pub uri: &'a Uri,
    /// By whom.
    pub headers: &'a HeaderMap,
}

/// The answer to a request that took the shortcut.
pub enum Taken {
    /// Here it is.
    Now(Response),
    /// It comes, and within the time a request may take: nobody else watches that.
    Soon(BoxFuture<'static, Response>),
}

impl Shortcut {
    pub(super) fn new(take: impl Fn(Head<'_>) -> Option<Taken> + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    pub(super) fn take<B>(&self, request: &Request<B>) -> Option<Taken> {
        let head =
            Head { method: request.method(), uri: request.uri(), headers: request.headers() };
        (self.0)(head)
    }
}

impl fmt::Debug for Shortcut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shortcut")
    }
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now(_) => "Now",
            Self::Soon(_) => "Soon",
        })
    }
}
