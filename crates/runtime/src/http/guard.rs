//! The guard around every router: whatever goes wrong, the answer is a problem.

use std::any::Any;
use std::future::{Ready, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::future::{BoxFuture, CatchUnwind, Either, UnwrapOrElse};
use futures_util::{FutureExt, TryFutureExt};
use tokio::time::Instant;
use tower::Service;

use super::body::{MAX_BODY, whole_body};
use super::client::Client;
use super::shortcut::{Head, Shortcut, Taken};
use crate::problem::{Code, Problem};

/// The longest path and query, in bytes.
pub const MAX_URI: usize = 8 * 1024;

/// The most bytes of header names and values together.
pub const MAX_HEADERS: usize = 16 * 1024;

/// How long a request may take until its answer starts. Above the longest long poll (30 s).
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(40);

/// A complete router behind the guard.
///
/// Not layers of the router: each of those is a box and a copy of every route per request, which
/// together cost as much as a poll itself.
#[derive(Debug, Clone)]
pub struct Guarded {
    router: Router,
    shortcut: Option<Shortcut>,
    body_limit: BodyLimit,
}

/// The most bytes of a body, by method and path.
pub type BodyLimit = fn(&Method, &str) -> usize;

/// An answer that is there, or one that is in the making. In a box, because a server keeps room for
/// it as long as a connection is open, and most answers are there at once.
pub(super) type Answering<'a> = Either<Ready<Response>, Caught<'a>>;

/// An answer, or a problem if there is a panic in the making of it. The panic hook has logged it, with
/// its place; the client learns nothing of it.
type Caught<'a> = UnwrapOrElse<CatchUnwind<AssertUnwindSafe<BoxFuture<'a, Response>>>, Instead>;
type Instead = fn(Box<dyn Any + Send>) -> Response;

/// Wraps a complete router, once per listener.
///
/// Unknown routes and methods, panics, requests over the limits and requests that take too long
/// all answer with a problem. Handlers see bodies that have arrived whole and within the limit of
/// their route.
pub fn guarded(router: Router) -> Guarded {
    let router = router.fallback(unknown_route).method_not_allowed_fallback(wrong_method);
    Guarded { router, shortcut: None, body_limit: |_, _| MAX_BODY }
}

impl Guarded {
    /// Offers every request without a body to `take` before the router sees it.
    #[must_use]
    pub fn with_shortcut(
        mut self,
        take: impl Fn(Head<'_>) -> Option<Taken> + Send + Sync + 'static,
    ) -> Self {
        self.shortcut = Some(Shortcut::new(take));
        self
    }

    /// Allows each route no larger body than it needs; without this every route takes
    /// [`super::MAX_BODY`] bytes. A limit of 0 refuses every body.
    #[must_use]
    pub fn with_body_limit(mut self, limit: BodyLimit) -> Self {
        self.body_limit = limit;
        self
    }

    /// Answers a request, whatever happens.
    pub async fn answer(&self, request: Request) -> Response {
        self.begin(request, &Client::unconnected()).await
    }

    /// The same for one of many requests of one client, one after the other.
    pub(super) fn begin<'a, B>(&self, request: Request<B>, client: &'a Client) -> Answering<'a>
    where
        B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
    {
        let short = || self.short(&request);
        match catch_unwind(AssertUnwindSafe(short)) {
            Ok(Ok(Some(Taken::Now(response)))) => at_once(response),
            Ok(Ok(Some(Taken::Soon(answer)))) => caught(answer),
            Ok(Ok(None)) => {
                let limit = (self.body_limit)(request.method(), request.uri().path());
                let request = request.map(Body::new);
                let answer = by_router(self.router.clone(), request, limit, client);
                caught(Box::pin(async { answer.await.into_response() }))
            }
            Ok(Err(problem)) => at_once(problem),
            Err(_) => at_once(Problem::internal()),
        }
    }

    /// The answer by the shortcut, if it takes the request; a problem if nobody may.
    fn short<B: HttpBody>(&self, request: &Request<B>) -> Result<Option<Taken>, Problem> {
        check_uri(request.uri())?;
        check_headers(request.headers())?;
        let shortcut = self.shortcut.as_ref().filter(|_| request.body().is_end_stream());
        Ok(shortcut.and_then(|shortcut| shortcut.take(request)))
    }
}

fn caught(answer: BoxFuture<'_, Response>) -> Answering<'_> {
    let instead: Instead = |_| Problem::internal().into_response();
    Either::Right(AssertUnwindSafe(answer).catch_unwind().unwrap_or_else(instead))
}

fn at_once(response: impl IntoResponse) -> Answering<'static> {
    Either::Left(ready(response.into_response()))
}

async fn by_router(
    mut router: Router,
    mut request: Request,
    limit: usize,
    client: &Client,
) -> Result<Response, Problem> {
    let deadline = Instant::now() + REQUEST_DEADLINE;
    let mut held = None;
    if !request.body().is_end_stream() {
        let held = held.insert(client.intake.reserve_body());
        let whole = client.alarm.by(deadline, whole_body(request, limit, held)).await;
        request = whole.ok_or_else(too_slow)??;
        client.intake.body_complete();
    }
    client.introduce(&mut request);
    // A router is always ready.
    let answer = client.alarm.by(deadline, router.call(request)).await;
    let Ok(response) = answer.ok_or_else(no_answer)?;
    Ok(response)
}

fn check_uri(uri: &Uri) -> Result<(), Problem> {
    let length = uri.path_and_query().map_or(0, |shown| shown.as_str().len());
    if length > MAX_URI {
        let detail = format!("the address has more than {MAX_URI} bytes");
        return Err(Problem::new(Code::UriTooLong, detail));
    }
    Ok(())
}

fn check_headers(headers: &HeaderMap) -> Result<(), Problem> {
    let sizes = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    if sizes.sum::<usize>() > MAX_HEADERS {
        let detail = format!("the headers have more than {MAX_HEADERS} bytes");
        return Err(Problem::new(Code::HeadersTooLarge, detail));
    }
    Ok(())
}

/// The client's fault: its body did not arrive.
fn too_slow() -> Problem {
    Problem::new(Code::RequestTimeout, "the request did not arrive in time")
}

/// Our fault, and one that passes. Logged here, because nobody else knows.
fn no_answer() -> Problem {
    tracing::error!(deadline = ?REQUEST_DEADLINE, "a request took too long to answer");
    Problem::unavailable("no answer in time")
}

async fn unknown_route() -> Problem {
    Problem::new(Code::NotFound, "there is no such route")
}

/// axum adds the `Allow` header.
async fn wrong_method(method: Method) -> Problem {
    let detail = format!("this route does not answer {method}");
    Problem::new(Code::MethodNotAllowed, detail)
}
