//! Tower layer that protects routes.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::http::header::{ACCEPT, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response};
use daegi_domain::ItemId;
use tower::{Layer, Service};

use crate::pass_source::cookie;
use crate::{Authorization, Entry, Guard, Refusal};

type ItemOf = Arc<dyn Fn(&Parts) -> Option<ItemId> + Send + Sync>;

/// Refuses requests without a valid pass. A [`Layer`] for axum and any other tower service.
#[derive(Clone)]
pub struct GuardLayer {
    guard: Guard,
    item: ItemOf,
    complete_on_success: bool,
}

/// The service that [`GuardLayer`] produces.
#[derive(Debug, Clone)]
pub struct GuardService<S> {
    layer: GuardLayer,
    inner: S,
}

impl Guard {
    /// Returns a layer for routes of one item.
    #[must_use]
    pub fn layer(&self, item: ItemId) -> GuardLayer {
        self.layer_with(move |_| Some(item.clone()))
    }

    /// Returns a layer that takes the item from the request. A request without an item gets 404.
    pub fn layer_with(
        &self,
        item: impl Fn(&Parts) -> Option<ItemId> + Send + Sync + 'static,
    ) -> GuardLayer {
        GuardLayer { guard: self.clone(), item: Arc::new(item), complete_on_success: false }
    }
}

impl GuardLayer {
    /// Completes the entry after each successful response (2xx), so that daegi can admit the next user.
    #[must_use]
    pub fn complete_on_success(mut self) -> Self {
        self.complete_on_success = true;
        self
    }

    /// Returns the entry and, if the response must set it, the cookie.
    async fn authorize(
        &self,
        parts: &Parts,
    ) -> Result<(Entry, Option<HeaderValue>), RefusedRequest> {
        let item =
            (self.item)(parts).ok_or(RefusedRequest { refusal: Refusal::NoItem, item: None })?;
        match self.guard.authorize(parts, &item).await {
            Ok(Authorization { entry, keep }) => {
                let cookie = keep.and_then(|pass| self.cookie(&entry, &pass));
                Ok((entry, cookie))
            }
            Err(refusal) => Err(RefusedRequest { refusal, item: Some(item) }),
        }
    }

    fn cookie(&self, entry: &Entry, pass: &str) -> Option<HeaderValue> {
        let left = entry.expires_at.saturating_sub(self.guard.now_ms() / 1000);
        let https = self.guard.waiting_page(&entry.item).starts_with("https:");
        cookie(&entry.item, pass, left, https)
    }

    fn refuse<B: From<String>>(&self, parts: &Parts, refused: RefusedRequest) -> Response<B> {
        let page = refused.item.map(|item| self.guard.waiting_page(&item)).unwrap_or_default();
        let accept = parts.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
        refused.refusal.to_response(accept.unwrap_or_default(), &page)
    }

    /// Completes the entry. A failure does not change the response: the entry expires.
    async fn complete(&self, entry: &Entry) {
        if let Err(error) = self.guard.complete(entry).await {
            tracing::warn!(%error, item.id = %entry.item, "entry not completed, it ends when its pass expires");
        }
    }
}

struct RefusedRequest {
    refusal: Refusal,
    item: Option<ItemId>,
}

impl<S> Layer<S> for GuardLayer {
    type Service = GuardService<S>;

    fn layer(&self, inner: S) -> GuardService<S> {
        GuardService { layer: self.clone(), inner }
    }
}

impl<S, Sent, Got> Service<Request<Sent>> for GuardService<S>
where
    S: Service<Request<Sent>, Response = Response<Got>> + Clone + Send + 'static,
    S::Future: Send,
    Sent: Send + 'static,
    Got: From<String> + Send,
{
    type Response = Response<Got>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Got>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        // Call the instance that was polled ready and keep its clone (see `tower::Service::call`).
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let layer = self.layer.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let (entry, cookie) = match layer.authorize(&parts).await {
                Ok(authorized) => authorized,
                Err(refused) => return Ok(layer.refuse(&parts, refused)),
            };
            parts.extensions.insert(entry.clone());
            let started = Instant::now();
            let mut response = {
                let outcome = inner.call(Request::from_parts(parts, body)).await;
                let is_error = !matches!(&outcome, Ok(got) if !got.status().is_server_error());
                layer.guard.record_response(&entry.item, started.elapsed(), is_error);
                outcome?
            };
            if let Some(cookie) = cookie {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            if layer.complete_on_success && response.status().is_success() {
                layer.complete(&entry).await;
            }
            Ok(response)
        })
    }
}

impl fmt::Debug for GuardLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let complete_on_success = &self.complete_on_success;
        f.debug_struct("GuardLayer")
            .field("complete_on_success", complete_on_success)
            .finish_non_exhaustive()
    }
}
