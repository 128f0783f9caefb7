//! The tower layer that protects routes.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::header::{ACCEPT, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response};
use daegi_domain::ItemId;
use tower::{Layer, Service};

use crate::carrier::keep;
use crate::{Admission, Entry, Guard, Refusal};

type ItemOf = Arc<dyn Fn(&Parts) -> Option<ItemId> + Send + Sync>;

/// Protects what is behind it: a [`Layer`] for axum and everything else made of tower services.
#[derive(Clone)]
pub struct Protect {
    guard: Guard,
    item: ItemOf,
    completing: bool,
}

/// A service behind a guard.
#[derive(Debug, Clone)]
pub struct Protected<S> {
    protect: Protect,
    inner: S,
}

impl Guard {
    /// Protects routes that belong to one item.
    #[must_use]
    pub fn protect(&self, item: ItemId) -> Protect {
        self.protect_by(move |_| Some(item.clone()))
    }

    /// Protects routes whose item is part of the request. One that names none gets 404.
    pub fn protect_by(
        &self,
        item: impl Fn(&Parts) -> Option<ItemId> + Send + Sync + 'static,
    ) -> Protect {
        Protect { guard: self.clone(), item: Arc::new(item), completing: false }
    }
}

impl Protect {
    /// Completes the entry after every good answer (2xx), so that the next person is let in.
    #[must_use]
    pub fn completing(mut self) -> Self {
        self.completing = true;
        self
    }

    /// The entry, and the cookie in which the browser is to keep its pass.
    async fn admit(&self, parts: &Parts) -> Result<(Entry, Option<HeaderValue>), Denied> {
        let item = (self.item)(parts).ok_or(Denied { refusal: Refusal::NoItem, item: None })?;
        match self.guard.admit(parts, &item).await {
            Ok(Admission { entry, keep }) => {
                let cookie = keep.and_then(|pass| self.cookie(&entry, &pass));
                Ok((entry, cookie))
            }
            Err(refusal) => Err(Denied { refusal, item: Some(item) }),
        }
    }

    fn cookie(&self, entry: &Entry, pass: &str) -> Option<HeaderValue> {
        let left = entry.expires_at.saturating_sub(self.guard.now_ms() / 1000);
        let https = self.guard.waiting_page(&entry.item).starts_with("https:");
        keep(&entry.item, pass, left, https)
    }

    fn refuse<B: From<String>>(&self, parts: &Parts, denied: Denied) -> Response<B> {
        let page = denied.item.map(|item| self.guard.waiting_page(&item)).unwrap_or_default();
        let accept = parts.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
        denied.refusal.answer(accept.unwrap_or_default(), &page)
    }

    /// The work is done, so its answer stands: an entry that cannot be completed expires.
    async fn complete(&self, entry: &Entry) {
        if let Err(error) = self.guard.complete(entry).await {
            tracing::warn!(%error, item.id = %entry.item, "an entry was not completed");
        }
    }
}

struct Denied {
    refusal: Refusal,
    item: Option<ItemId>,
}

impl<S> Layer<S> for Protect {
    type Service = Protected<S>;

    fn layer(&self, inner: S) -> Protected<S> {
        Protected { protect: self.clone(), inner }
    }
}

impl<S, Sent, Got> Service<Request<Sent>> for Protected<S>
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
        // The one that was polled ready is used, its clone takes its place.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let protect = self.protect.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let (entry, cookie) = match protect.admit(&parts).await {
                Ok(admitted) => admitted,
                Err(denied) => return Ok(protect.refuse(&parts, denied)),
            };
            parts.extensions.insert(entry.clone());
            let mut answer = inner.call(Request::from_parts(parts, body)).await?;
            if let Some(cookie) = cookie {
                answer.headers_mut().append(SET_COOKIE, cookie);
            }
            if protect.completing && answer.status().is_success() {
                protect.complete(&entry).await;
            }
            Ok(answer)
        })
    }
}

impl fmt::Debug for Protect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let completing = &self.completing;
        f.debug_struct("Protect").field("completing", completing).finish_non_exhaustive()
    }
}
